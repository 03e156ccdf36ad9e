"""An overlay goes to its one place or says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_helpers import REPOSITORY
from harness.build.generate import UPSTREAM_PYTHON, overlaid_tree, upstream_tree
from harness.build.overlay import Insertion, Overlay, OverlayError, Replacement, apply_overlay, load_overlay
from harness.build.rename import rename_package
from harness.build.sdist import Tree

TREE: Tree = {"a.rs": b"one\ntwo\nthree\n", "b.rs": b"two two\n"}


def insertion(anchor: str, side: str = "after", lines: str = "new\n", file: str = "a.rs") -> Overlay:
    return Overlay(
        name="test",
        insertions=(Insertion.model_validate({"file": file, "anchor": anchor, "side": side, "lines": lines}),),
    )


@pytest.mark.parametrize(
    ("anchor", "side", "expected"),
    [
        ("one", "before", b"new\none\ntwo\nthree\n"),
        ("tw", "after", b"one\ntwo\nnew\nthree\n"),
        ("three", "after", b"one\ntwo\nthree\nnew\n"),
    ],
)
def test_lines_go_next_to_the_anchor(anchor: str, side: str, expected: bytes) -> None:
    result = apply_overlay(TREE, insertion(anchor, side))
    assert result["a.rs"] == expected
    assert TREE["a.rs"] == b"one\ntwo\nthree\n"
    assert apply_overlay(result, insertion(anchor, side)) == result


def test_several_insertions_do_not_shift_each_other() -> None:
    parts = [insertion("one", "after", "1\n"), insertion("three", "before", "3\n"), insertion("two", "after", "2\n")]
    with pytest.raises(OverlayError, match="share one place"):
        apply_overlay(TREE, Overlay(name="test", insertions=tuple(part.insertions[0] for part in parts)))
    two = Overlay(name="test", insertions=(parts[1].insertions[0], parts[0].insertions[0]))
    assert apply_overlay(TREE, two)["a.rs"] == b"one\n1\ntwo\n3\nthree\n"


def test_missing_anchor_names_itself_and_the_file() -> None:
    with pytest.raises(OverlayError, match=r"'four' must occur exactly once in a\.rs: not found"):
        apply_overlay(TREE, insertion("four"))


def test_repeated_anchor_names_the_lines() -> None:
    with pytest.raises(OverlayError, match=r"found at lines 1, 2, 3"):
        apply_overlay({"a.rs": b"x\nxx\nyx\n"}, insertion("x"))
    with pytest.raises(OverlayError, match="found at lines 1;"):
        apply_overlay(TREE, insertion("two", file="b.rs"))


def test_missing_file_is_named() -> None:
    with pytest.raises(OverlayError, match=r"c\.rs is not in the source tree"):
        apply_overlay(TREE, insertion("one", file="c.rs"))


def test_inserted_lines_may_not_hold_their_own_anchor() -> None:
    with pytest.raises(OverlayError, match="repeat their anchor"):
        apply_overlay(TREE, insertion("one", lines="one more\n"))


def test_new_file_must_not_exist_upstream() -> None:
    overlay = Overlay(name="test", new_files={"a.rs": b"mine"})
    with pytest.raises(OverlayError, match=r"new file a\.rs exists"):
        apply_overlay(TREE, overlay)
    fresh = Overlay(name="test", new_files={"c.rs": b"mine"})
    assert apply_overlay(apply_overlay(TREE, fresh), fresh)["c.rs"] == b"mine"


def test_replacement_needs_exactly_one_place() -> None:
    once = Overlay(name="test", replacements=(Replacement(file="a.rs", old="two", new="2"),))
    done = apply_overlay(TREE, once)
    assert done["a.rs"] == b"one\n2\nthree\n"
    assert apply_overlay(done, once) == done
    with pytest.raises(OverlayError, match="found 2 times"):
        apply_overlay(TREE, Overlay(name="test", replacements=(Replacement(file="b.rs", old="two", new="2"),)))


@pytest.mark.parametrize(
    "text",
    [
        '[[insert]]\nfile = "a"\nlines = "x"\n',
        '[[insert]]\nfile = "a"\nafter = "x"\nbefore = "y"\nlines = "x"\n',
        '[[insert]]\nfile = "a"\nafter = "x"\ntext = "nowhere.txt"\n',
        '[[replace]]\nfile = "a"\n',
    ],
)
def test_wrong_tables_are_reported_with_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "overlay.toml").write_text(text)
    with pytest.raises(OverlayError, match=r"overlay\.toml"):
        load_overlay(tmp_path)


def test_inline_anchors_occur_once_in_the_pinned_sdist() -> None:
    tree = upstream_tree()
    overlay = load_overlay(REPOSITORY / "strategies" / "inline" / "overlay")
    assert overlay.replacements == (), "a pull request that only adds lines is the easiest to review"
    for part in overlay.insertions:
        assert tree[part.file].decode().count(part.anchor) == 1, part


def test_external_anchors_occur_once_in_the_renamed_layer() -> None:
    layer = rename_package(upstream_tree(), UPSTREAM_PYTHON, "datafusion_external")
    overlay = load_overlay(REPOSITORY / "strategies" / "external" / "overlay")
    for part in overlay.insertions:
        assert layer[part.file].decode().count(part.anchor) == 1, part
    for phrase in overlay.replacements:
        assert layer[phrase.file].decode().count(phrase.old) == 1, phrase


def test_inline_overlay_applied_twice_is_applied_once() -> None:
    overlay = load_overlay(REPOSITORY / "strategies" / "inline" / "overlay")
    once = apply_overlay(upstream_tree(), overlay)
    assert apply_overlay(once, overlay) == once
    assert once.keys() <= overlaid_tree(REPOSITORY).keys()


def runs(text: str, length: int = 3) -> set[tuple[str, ...]]:
    """Every run of consecutive lines that say something."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 12]
    return {tuple(lines[at : at + length]) for at in range(len(lines) - length + 1)}


@pytest.mark.parametrize("name", ["inline", "external"])
def test_committed_text_is_our_own(name: str) -> None:
    """Anchors are fragments. Several lines in a row that upstream has too would be upstream's text."""
    overlay = load_overlay(REPOSITORY / "strategies" / name / "overlay")
    upstream = set().union(*(runs(content.decode()) for content in upstream_tree().values()))
    ours = [part.lines for part in overlay.insertions] + [content.decode() for content in overlay.new_files.values()]
    assert set().union(*map(runs, ours)) & upstream == set()
