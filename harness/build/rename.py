"""Give a copy of the upstream Python layer another package name.

Only statements that import the package, and references in documentation, change. Everything else that reads
`datafusion` is a configuration key (`datafusion.execution.batch_size`), the default catalog, or prose.
"""

from __future__ import annotations

import ast
import re

from harness.build.sdist import Tree
from harness.errors import HarnessFault

OLD = "datafusion"

_BARE = re.compile(rf"^(\s*(?:>>> |\.\.\. )?)import {OLD}$", re.MULTILINE)
"""An import that binds the package's own name, which the lines after it use: the name must stay."""

_STATEMENT = re.compile(rf"^(\s*(?:>>> |\.\.\. )?(?:from|import) ){OLD}(?=[.\s])", re.MULTILINE)
"""An import statement of code, of a doctest or of an indented example."""

_REFERENCE = re.compile(rf"(:\w+(?::\w+)?:`(?:[^`<]*<)?~?){OLD}(?=\.)")
"""A Sphinx role that names a Python object of the package."""


def rename_package(tree: Tree, prefix: str, new: str) -> Tree:
    """Return the Python package below `prefix` of a source tree under a new name, by path below the package.

    Args:
        tree: source tree.
        prefix: folder of the package, for example `python/datafusion/`.
        new: name of the copy.

    Raises:
        HarnessFault: a module does not parse or still imports the old name; upstream began to use a form of import
            that this function does not know.
    """
    renamed: Tree = {}
    for path, content in tree.items():
        if not path.startswith(prefix):
            continue
        relative = path[len(prefix) :]
        renamed[relative] = rename_module(content, relative, new) if path.endswith(".py") else content
    if "__init__.py" not in renamed:
        msg = f"no Python package at {prefix} in the source tree"
        raise HarnessFault(msg)
    return renamed


def rename_module(content: bytes, path: str, new: str) -> bytes:
    """Return one module with its absolute imports of the old package rewritten."""
    text = content.decode("utf-8")
    text = _BARE.sub(rf"\g<1>import {new} as {OLD}", text)
    text = _STATEMENT.sub(rf"\g<1>{new}", text)
    text = _REFERENCE.sub(rf"\g<1>{new}", text)
    left = leftover_imports(text, path)
    if left:
        msg = f"{path}: still imports {OLD} at line {', '.join(map(str, left))} after renaming to {new}"
        raise HarnessFault(msg)
    return text.encode("utf-8")


def leftover_imports(text: str, path: str) -> list[int]:
    """Return the lines of a module that import the old package by its absolute name, or would miss its name.

    `import datafusion_x.y` without `as` binds `datafusion_x`, which code that says `datafusion.y` does not find.
    """
    try:
        module = ast.parse(text, filename=path)
    except SyntaxError as error:
        msg = f"{path}: does not parse after renaming: {error}"
        raise HarnessFault(msg) from error
    lines: list[int] = []
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_old(node.module or ""):
            lines.append(node.lineno)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bare = alias.asname is None and alias.name.split(".")[0].startswith(OLD)
                if _is_old(alias.name) or bare:
                    lines.append(node.lineno)
    return lines


def _is_old(name: str) -> bool:
    return name == OLD or name.startswith(OLD + ".")
