"""The layers of the Python package: imports point downward, without circles, by folder.

The order of the folders is the table of python/penstock/README.md. Imports inside functions and
those for type checking count like any other. Implicit imports of a parent package do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "penstock"
MODULES, NAMES = "(modules)", "(package)"


def order() -> list[str]:
    """The folders, ground floor first."""
    text = (PACKAGE / "README.md").read_text("utf-8")
    return [cell.strip("`") for cell in re.findall(r"^\| ([^ |]+) \|", text, re.MULTILINE)][1:]


def sources() -> dict[str, str]:
    """Module name, without ``penstock.``, -> text. The package itself is the empty name."""
    found = {"_engine": ""}  # compiled: what it imports is not seen here
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text("utf-8")
    return found


def folder_of(name: str) -> str:
    """The row of the table that a module belongs to."""
    if name in ("", "_registration"):
        return NAMES
    parts = name.split(".")
    folder = "/".join(parts if is_folder(name) else parts[:-1])
    return folder or MODULES


def is_folder(name: str) -> bool:
    return (PACKAGE.joinpath(*name.split(".")) / "__init__.py").is_file()


def imports(name: str, text: str, modules: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(module, line) of each import of one of our own modules."""
    package = name.split(".") if name and is_folder(name) else name.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "penstock" or alias.name.startswith("penstock."):
                    yield alias.name.removeprefix("penstock").lstrip("."), node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                above = package[: len(package) - node.level + 1]
                source = ".".join([*above, *([node.module] if node.module else [])])
            elif node.module == "penstock" or (node.module or "").startswith("penstock."):
                source = str(node.module).removeprefix("penstock").lstrip(".")
            else:
                continue
            for alias in node.names:
                deeper = f"{source}.{alias.name}".lstrip(".")
                yield deeper if deeper in modules else source, node.lineno


def ties(modules: Mapping[str, str]) -> list[tuple[str, str, int]]:
    """(module, module that it imports, line)."""
    return [
        (name, target, line)
        for name, text in modules.items()
        for target, line in imports(name, text, modules)
        if target in modules and target != name
    ]


def upward(modules: Mapping[str, str]) -> list[str]:
    """Imports that point to a folder further down in the table."""
    rank = {folder: at for at, folder in enumerate(order())}
    return [
        f"{name or 'penstock'}:{line} imports {target or 'penstock'}"
        for name, target, line in ties(modules)
        if rank[folder_of(target)] > rank[folder_of(name)]
    ]


def circles(modules: Mapping[str, str]) -> list[list[str]]:
    """Circles of imports between modules of one folder."""
    graph: dict[str, set[str]] = {}
    for name, target, _ in ties(modules):
        if folder_of(name) == folder_of(target):
            graph.setdefault(name, set()).add(target)
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            found.append([*way[way.index(name) :], name])
        elif name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, [*way, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return found


def test_every_folder_of_the_package_is_a_row_of_the_table_and_no_other() -> None:
    modules = sources()
    used = {folder_of(name) for name in modules}
    assert used == set(order()), used ^ set(order())


def test_imports_point_downward_only() -> None:
    assert upward(sources()) == []


def test_files_of_one_folder_do_not_import_each_other_in_a_circle() -> None:
    assert circles(sources()) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("objects.names", "from ..client import queue"),
        ("client.queue", "from penstock.cli.common import fail"),
        ("errors", "from . import client"),
        ("client.status", "def f():\n    import penstock.mqi.verbs"),
        ("batch", "if TYPE_CHECKING:\n    from penstock import QueueManager"),
    ],
)
def test_an_upward_import_is_found(module: str, line: str) -> None:
    modules = sources() | {module: line}
    assert len(upward(modules)) == 1


def test_a_circle_is_found() -> None:
    modules = sources() | {"admin.one": "from . import two", "admin.two": "from .one import x"}
    assert circles(modules) == [["admin.one", "admin.two", "admin.one"]]
