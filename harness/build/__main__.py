"""Command line of the build: `python -m harness.build`."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.build.build import ensure_wheels, export
from harness.build.compile import PROFILES
from harness.build.generate import generate, overlaid_tree, upstream_tree
from harness.build.manifest import lock_additions, manifest_differences
from harness.build.patch import count_lines, make_patch
from harness.build.paths import STRATEGIES, TARGETS, check_names, checkout
from harness.build.toolchain import (
    build_environment,
    build_variables,
    check_rust,
    ensure_build_env,
    write_pyo3_config,
)
from harness.errors import EXIT_OK, EXIT_REGRESSION, UserError

LINTED_CRATES = ("engine", "bindings", "native", "external", "decorator")
"""Crates of our own text. inline's is upstream's source with a few lines of ours, which upstream's own rules cover."""

EPILOG = """\
other commands:
  generate [NAME..]          write the generated sources of the strategies, compile nothing
  overlay --patch            print what inline adds to datafusion-python as a patch for `git apply`
  overlay --stats            print the size of that patch by kind of line, and what it adds to the lock
  overlay --check            check inline's manifest against upstream's; exit 1 on a difference
  lint                       cargo fmt and clippy over the workspace's own crates, warnings denied
  cargo ARG..                run cargo with the variables of a build, for example: cargo test -p df-strategies-engine
  env                        print the variables for calling cargo by hand: eval "$(python -m harness.build env)"

Cargo run by hand without these variables recompiles DataFusion, which takes half an hour.
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = COMMANDS.get(arguments[0]) if arguments else None
        return command(arguments[1:]) if command is not None else _build(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: nothing half-written was left behind; run it again to go on", file=sys.stderr)
        return 130


def _build(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m harness.build",
        description="Build the strategies and the native binary from this checkout; what is up to date is not built.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--profile", choices=PROFILES, default="release", help="Cargo profile (default: release)")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="check and use prebuilt files, compile nothing")
    parser.add_argument("--out", type=Path, metavar="DIR", help="copy the results there, in the form --wheels takes")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    names = check_names(options.names or list(TARGETS))
    built = ensure_wheels(names, wheels_dir=options.wheels, profile=options.profile, progress=not options.quiet)
    if options.out:
        export(built, options.out)
    for name, artifact in built.items():
        how = "built" if artifact.built else "up to date"
        print(f"{name:<10} {how:<10} {artifact.seconds:7.1f} s  {artifact.path}")
    return EXIT_OK


def _generate(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.build generate")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(STRATEGIES)}; default: all")
    options = parser.parse_args(arguments)
    root = checkout()
    for name in check_names(options.names or list(STRATEGIES)):
        if name in STRATEGIES:
            print(generate(root, name))
    return EXIT_OK


def _overlay(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.build overlay")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--patch", action="store_true", help="print the patch; the counts go to standard error")
    group.add_argument("--stats", action="store_true", help="print the counts only")
    group.add_argument("--check", action="store_true", help="compare the manifests")
    options = parser.parse_args(arguments)
    root = checkout()
    if options.check:
        differences = manifest_differences(root)
        print("\n".join(differences) or "inline's manifest equals upstream's plus the declared additions")
        return EXIT_REGRESSION if differences else EXIT_OK
    old, new = upstream_tree(), overlaid_tree(root)
    if options.patch:
        sys.stdout.write(make_patch(old, new))
    print(overlay_stats(root, old, new), file=sys.stderr if options.patch else sys.stdout)
    return EXIT_OK


def overlay_stats(root: Path, old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """Return the size of the overlay as a small table."""
    counts = count_lines(old, new)
    lines = [f"{'kind':<10}{'files':>6}{'added':>8}{'removed':>9}"]
    lines += [f"{kind.value:<10}{n.files:>6}{n.added:>8}{n.removed:>9}" for kind, n in counts.items()]
    total = [sum(getattr(count, field) for count in counts.values()) for field in ("files", "added", "removed")]
    lines.append(f"{'total':<10}{total[0]:>6}{total[1]:>8}{total[2]:>9}")
    added = lock_additions(root)
    lines.append(f"packages added to the lock: {len(added)} ({', '.join(added)})")
    return "\n".join(lines)


def _env(arguments: list[str]) -> int:
    argparse.ArgumentParser(prog="python -m harness.build env").parse_args(arguments)
    ensure_build_env()
    write_pyo3_config()
    for name, value in build_variables().items():
        print(f"export {name}={shlex.quote(value)}")
    return EXIT_OK


def _cargo(arguments: list[str]) -> int:
    root = checkout()
    check_rust(root)
    ensure_build_env()
    write_pyo3_config()
    # Cargo does not load the workspace without the sources of every member it is asked about.
    generate(root, "inline")
    return subprocess.run(["cargo", *arguments], cwd=root, env=build_environment(), check=False).returncode


def _lint(arguments: list[str]) -> int:
    argparse.ArgumentParser(prog="python -m harness.build lint").parse_args(arguments)
    packages = [part for crate in LINTED_CRATES for part in ("-p", f"df-strategies-{crate}")]
    code = _cargo(["fmt", "--check", *packages])
    return _cargo(["clippy", "--release", "--locked", *packages, "--", "--deny", "warnings"]) or code


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "overlay": _overlay,
    "generate": _generate,
    "lint": _lint,
    "cargo": _cargo,
    "env": _env,
}

if __name__ == "__main__":
    sys.exit(main())
