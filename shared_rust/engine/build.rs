//! Computes the parts of the build fingerprint that only the compiler's environment knows.
//!
//! The source hash is also computed by the harness, over the same files in the same order, so that a wheel built
//! from other sources than the checkout can be told apart. It reads only `shared_rust/{engine,bindings,unified}`:
//! the code every arm shares. What a strategy adds on top has a hash of its own, written by the packaging step.

use std::{env, fs, io, path::Path, path::PathBuf, process::Command};

use sha2::{Digest, Sha256};

const SHARED: [&str; 3] = [
    "shared_rust/bindings",
    "shared_rust/engine",
    "shared_rust/unified",
];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by Cargo"))
        .join("../..")
        .canonicalize()?;
    let mut files = vec!["Cargo.toml".to_string()];
    for folder in SHARED {
        collect(&root, Path::new(folder), &mut files)?;
    }
    files.sort();

    let mut source = Sha256::new();
    for file in &files {
        println!("cargo:rerun-if-changed={}", root.join(file).display());
        source.update(file.as_bytes());
        source.update([0]);
        source.update(fs::read(root.join(file))?);
        source.update([0]);
    }
    let lock_path = root.join("Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock_path.display());
    let lock = Sha256::digest(fs::read(lock_path)?);

    let rustc = Command::new(env::var("RUSTC").expect("set by Cargo"))
        .arg("--version")
        .output()?;
    let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_string();

    set("SOURCE_HASH", &hex(&source.finalize()));
    set("LOCK_HASH", &hex(&lock));
    set("RUSTC", &rustc);
    set("TARGET", &env::var("TARGET").expect("set by Cargo"));
    set("PROFILE", &profile());
    Ok(())
}

/// The profile's own name: Cargo's `PROFILE` only tells `debug` from `release`.
fn profile() -> String {
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by Cargo"));
    // OUT_DIR is <target>/<profile>/build/<package>-<hash>/out
    out.ancestors()
        .nth(3)
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn set(name: &str, value: &str) {
    println!("cargo:rustc-env=DF_STRATEGIES_{name}={value}");
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs")
            || path.file_name().is_some_and(|n| n == "Cargo.toml")
        {
            files.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
