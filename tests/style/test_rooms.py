"""The core's rooms: nothing uses what lies above it, and no files tie each other in a circle."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from c_source import CSRC, ROOT
from rooms import Core, circles, order, symbol_graph

ROOMS = order((CSRC / "README.md").read_text())
CORE = Core(CSRC, ROOMS)


@pytest.fixture(scope="module")
def objects() -> Path:
    """The core's object files as the C tests link them."""
    make = ["make", "-s", f"-j{os.cpu_count()}", "-C", str(ROOT / "tests" / "c"), "core"]
    made = subprocess.run(make, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    return ROOT / "build" / "c" / "plain" / "core"


def sources(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root))[:-2] for p in root.rglob("*.c"))


def test_the_table_of_rooms_names_every_folder_of_the_core_and_no_other() -> None:
    folders = {str(p.parent.relative_to(CSRC)) for p in CSRC.rglob("*.[ch]")}
    assert len(ROOMS) == len(set(ROOMS)) and set(ROOMS) == folders


def test_includes_point_downward_only() -> None:
    upward = CORE.upward(CORE.include_graph())
    assert not upward, "\n".join(upward)


def test_calls_point_downward_only(objects: Path) -> None:
    upward = CORE.upward(symbol_graph(objects, sources(CSRC)))
    assert not upward, "\n".join(upward)


def test_no_files_include_each_other_in_a_circle() -> None:
    found = circles(CORE.include_graph())
    assert not found, "\n".join(found)


def test_no_files_call_each_other_in_a_circle(objects: Path) -> None:
    found = circles(symbol_graph(objects, sources(CSRC)))
    assert not found, "\n".join(found)


def test_every_room_says_what_it_promises() -> None:
    missing = [room for room in ROOMS if not (CSRC / room / "README.md").exists()]
    assert not missing, missing


# ---- the checks see what they are for ----


def write(root: Path, files: dict[str, str]) -> Core:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Core(root, ["low", "high"])


def compiled(root: Path) -> Path:
    """Compiles the sources below a folder; the folder with the objects."""
    for name in sources(root):
        target = root / "objects" / f"{name}.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        source = str(root / f"{name}.c")
        subprocess.run(["cc", "-c", f"-I{root}", source, "-o", str(target)], check=True)
    return root / "objects"


def test_an_upward_include_is_found(tmp_path: Path) -> None:
    core = write(tmp_path, {"low/a.h": '#include "high/b.h"\n', "high/b.h": ""})
    assert core.upward(core.include_graph()) == ["low/a.h -> high/b.h (high/b.h)"]


def test_an_upward_call_without_an_include_is_found(tmp_path: Path) -> None:
    low = "void high(void);\nvoid low(void);\nvoid low(void)\n{\n    high();\n}\n"
    high = "void high(void);\nvoid high(void)\n{\n}\n"
    core = write(tmp_path, {"low/a.c": low, "high/b.c": high})
    graph = symbol_graph(compiled(tmp_path), sources(tmp_path))
    assert core.upward(graph) == ["low/a -> high/b (high)"]


def test_a_circle_of_calls_in_one_folder_is_found(tmp_path: Path) -> None:
    def calls(this: str, other: str) -> str:
        return f"void {other}(void);\nvoid {this}(void)\n{{\n    {other}();\n}}\n"

    write(tmp_path, {"low/a.c": calls("a", "b"), "low/b.c": calls("b", "c")})
    write(tmp_path, {"low/c.c": calls("c", "a"), "low/d.c": calls("d", "a")})
    found = circles(symbol_graph(compiled(tmp_path), sources(tmp_path)))
    assert found == ["low/a -> low/b (b); low/b -> low/c (c); low/c -> low/a (a)"]


def test_a_tie_downward_is_none(tmp_path: Path) -> None:
    core = write(tmp_path, {"low/a.h": "", "high/b.h": '#include "low/a.h"\n'})
    assert core.upward(core.include_graph()) == [] and circles(core.include_graph()) == []
