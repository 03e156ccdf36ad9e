"""The copy of the Python layer under another name imports nothing of the stock package."""

from __future__ import annotations

import ast

import pytest

from build_helpers import REPOSITORY
from harness.build.generate import UPSTREAM_PYTHON, generated_tree, upstream_tree
from harness.build.rename import leftover_imports, rename_module, rename_package
from harness.errors import HarnessFault

NEW = "datafusion_external"


def renamed(text: str) -> str:
    return rename_module(text.encode(), "module.py", NEW).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from datafusion import col\n", f"from {NEW} import col\n"),
        ("from datafusion.expr import Expr\n", f"from {NEW}.expr import Expr\n"),
        ("import datafusion._internal as df\n", f"import {NEW}._internal as df\n"),
        ("import datafusion\n", f"import {NEW} as datafusion\n"),
        ('"""\n>>> import datafusion\n"""\n', f'"""\n>>> import {NEW} as datafusion\n"""\n'),
        ("def f():\n    from datafusion.ipc import x\n", f"def f():\n    from {NEW}.ipc import x\n"),
        ('"""\n>>> from datafusion import lit\n"""\n', f'"""\n>>> from {NEW} import lit\n"""\n'),
        ('"""See :py:class:`~datafusion.Expr`."""\n', f'"""See :py:class:`~{NEW}.Expr`."""\n'),
        ('"""See :class:`it <datafusion.expr.Expr>`."""\n', f'"""See :class:`it <{NEW}.expr.Expr>`."""\n'),
    ],
)
def test_imports_and_references_are_renamed(before: str, after: str) -> None:
    assert renamed(before) == after
    assert renamed(after) == after


@pytest.mark.parametrize(
    "text",
    [
        'KEY = "datafusion.execution.batch_size"\n',
        'def catalog(name: str = "datafusion") -> None: ...\n',
        "from .datafusion import x\n",
        "from datafusion_ffi_example import y\n",
        '"""https://datafusion.apache.org/python"""\n',
        '"""The ``datafusion.runtime.memory_limit`` option."""\n',
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert renamed(text) == text


def test_import_forms_that_cannot_be_renamed_are_refused() -> None:
    with pytest.raises(HarnessFault, match=r"module\.py: still imports datafusion at line 1"):
        renamed("import datafusion.expr\n")
    with pytest.raises(HarnessFault, match="line 2"):
        renamed("x = 1; import os\nif x: import datafusion.expr\n")


def test_module_that_does_not_parse_is_named() -> None:
    with pytest.raises(HarnessFault, match=r"module\.py: does not parse"):
        renamed("def (:\n")


def test_whole_layer_is_renamed() -> None:
    layer = rename_package(upstream_tree(), UPSTREAM_PYTHON, NEW)
    modules = {path: content.decode() for path, content in layer.items() if path.endswith(".py")}
    assert len(modules) >= 20
    for path, text in modules.items():
        assert leftover_imports(text, path) == [], path
        assert ">>> from datafusion import" not in text, path


def test_configuration_keys_survive_in_the_layer() -> None:
    layer = rename_package(upstream_tree(), UPSTREAM_PYTHON, NEW)
    assert b"datafusion.execution.batch_size" in layer["context.py"]
    assert f"{NEW}.execution".encode() not in b"".join(layer.values())


def test_missing_package_is_reported() -> None:
    with pytest.raises(HarnessFault, match="no Python package"):
        rename_package({"python/other/x.py": b""}, UPSTREAM_PYTHON, NEW)


def test_packages_that_stand_alone_do_not_import_the_stock_one() -> None:
    """external never does; decorator is the one that builds on it."""
    for path, content in generated_tree(REPOSITORY, "external").items():
        if path.endswith((".py", ".pyi")):
            assert leftover_imports(content.decode(), path) == [], path
    decorator = generated_tree(REPOSITORY, "decorator")["python/datafusion_decorator/extension.py"]
    assert leftover_imports(decorator.decode(), "extension.py")


def test_decorator_uses_only_public_names_of_the_stock_package() -> None:
    for path, content in generated_tree(REPOSITORY, "decorator").items():
        if not path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("datafusion"):
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not any(part.startswith("_") for part in parts if part != "__future__"), (path, parts)
