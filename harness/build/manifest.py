"""Does our committed manifest of `inline` say what the patched upstream manifest says? And what enters the lock?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.build.generate import overlaid_tree
from harness.build.overlay import load_overlay
from harness.build.paths import CRATES, strategy_dir
from harness.build.sdist import Tree, read_sdist
from harness.build.tomlfile import parse_toml

CORE_MANIFEST = "crates/core/Cargo.toml"


def manifest_differences(root: Path) -> list[str]:
    """Return every way in which strategies/inline/Cargo.toml departs from upstream's manifest plus the overlay.

    Compared are the dependencies, their features, and the crate's features. Versions are not: the workspace pins them
    for all arms.
    """
    tree = overlaid_tree(root)
    upstream = parse_toml(tree[CORE_MANIFEST].decode(), CORE_MANIFEST)
    path = strategy_dir(root, "inline") / "Cargo.toml"
    ours = parse_toml(path.read_text(encoding="utf-8"), str(path))
    extra = set(load_overlay(strategy_dir(root, "inline") / "overlay").declared["manifest"]["workspace_only"])
    workspace = parse_toml((root / "Cargo.toml").read_text(encoding="utf-8"), "Cargo.toml")["workspace"]["dependencies"]
    found: list[str] = []
    for table in ("dependencies", "build-dependencies"):
        found += _compare_tables(table, upstream.get(table, {}), ours.get(table, {}), workspace, extra)
    return found + _compare_features(upstream, ours, tree)


def _compare_tables(
    table: str, upstream: dict[str, Any], ours: dict[str, Any], workspace: dict[str, Any], extra: set[str]
) -> list[str]:
    found = [f"{table}: {name} is missing" for name in sorted(upstream.keys() - ours.keys())]
    found += [f"{table}: {name} is not upstream's" for name in sorted(ours.keys() - upstream.keys() - extra)]
    for name in sorted(upstream.keys() & ours.keys()):
        wanted = set(_features(upstream[name]))
        given = set(_features(ours[name])) | set(_features(workspace.get(name, {})))
        if wanted - given and "full" not in given:  # tokio's name for "every feature"
            found.append(f"{table}: {name} lacks features {sorted(wanted - given)}")
        if _optional(upstream[name]) != _optional(ours[name]):
            found.append(f"{table}: {name} is optional in one manifest only")
    return found


def _compare_features(upstream: dict[str, Any], ours: dict[str, Any], tree: Tree) -> list[str]:
    maturin = parse_toml(tree["pyproject.toml"].decode(), "pyproject.toml")["tool"]["maturin"]
    wanted = set(upstream["features"]["default"]) | set(maturin.get("features", []))
    given = set(ours["features"]["default"])
    return [] if wanted == given else [f"features: default is {sorted(given)}, the stock wheel has {sorted(wanted)}"]


def _features(dependency: Any) -> list[str]:
    return dependency.get("features", []) if isinstance(dependency, dict) else []


def _optional(dependency: Any) -> bool:
    return bool(dependency.get("optional", False)) if isinstance(dependency, dict) else False


def lock_additions(root: Path) -> list[str]:
    """Return the names of the packages that `inline` brings into upstream's lock, sorted.

    This workspace's own crates count as well: they stand for the engine crate that would be published. Only
    `df-strategies-unified` does not; it exists so that the arms of the comparison share their compiled dependencies.
    """
    lock = parse_toml((root / "Cargo.lock").read_text(encoding="utf-8"), "Cargo.lock")
    upstream = parse_toml(read_sdist()["Cargo.lock"].decode(), "Cargo.lock of the sdist")
    links: dict[str, set[str]] = {}
    for package in lock["package"]:
        names = {entry.split()[0] for entry in package.get("dependencies", [])}
        links.setdefault(package["name"], set()).update(names)
    todo, seen = [CRATES["inline"], "datafusion-distributed"], set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and name != "df-strategies-unified":
            seen.add(name)
            todo += links.get(name, set())
    return sorted(seen - {package["name"] for package in upstream["package"]} - {CRATES["inline"]})
