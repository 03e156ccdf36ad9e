//! What this binary was built from.
//!
//! A comparison between two arms says nothing if their engines were compiled differently, and a plan encoded by one
//! build may not decode on another. So every process can tell its fingerprint, and peers compare before they work.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use serde::Serialize;

/// Features that every arm compiles with; [`BuildInfo::features`] tells them.
const FEATURES: &str = "avro,unicode_expressions,mimalloc,substrait,tls-ring";

/// The build of this binary. All fields but `fingerprint` go into the fingerprint.
#[derive(Debug, Clone, Serialize)]
pub struct BuildInfo {
    /// Hash over the other fields: equal exactly when all of them are.
    pub fingerprint: String,
    /// SHA-256 over the shared Rust sources and manifests.
    pub source_hash: &'static str,
    /// SHA-256 of `Cargo.lock`.
    pub lock_hash: &'static str,
    /// Cargo features that change what the engine can do.
    pub features: &'static str,
    /// Cargo profile, for example `release`.
    pub profile: &'static str,
    /// `rustc --version`.
    pub rustc: &'static str,
    /// Target triple.
    pub target: &'static str,
    /// Version of the engine crate.
    pub engine_version: &'static str,
}

static BUILD: LazyLock<BuildInfo> = LazyLock::new(|| {
    let mut info = BuildInfo {
        fingerprint: String::new(),
        source_hash: env!("DF_STRATEGIES_SOURCE_HASH"),
        lock_hash: env!("DF_STRATEGIES_LOCK_HASH"),
        features: FEATURES,
        profile: env!("DF_STRATEGIES_PROFILE"),
        rustc: env!("DF_STRATEGIES_RUSTC"),
        target: env!("DF_STRATEGIES_TARGET"),
        engine_version: env!("CARGO_PKG_VERSION"),
    };
    // The two long hashes carry the entropy; this only folds everything into one comparable word.
    let mut hasher = DefaultHasher::new();
    for field in [
        info.source_hash,
        info.lock_hash,
        info.features,
        info.profile,
        info.rustc,
        info.target,
        info.engine_version,
    ] {
        field.hash(&mut hasher);
    }
    info.fingerprint = format!("{}-{:016x}", &info.source_hash[..12], hasher.finish());
    info
});

/// The build of this binary.
pub fn build_info() -> &'static BuildInfo {
    &BUILD
}

/// [`build_info`] as JSON.
pub fn build_info_json() -> String {
    serde_json::to_string(build_info()).expect("plain strings always serialize")
}
