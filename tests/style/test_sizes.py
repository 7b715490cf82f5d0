"""Sizes that keep the tree readable: lines of functions and files, columns of lines."""

from __future__ import annotations

import ast
from pathlib import Path

import c_source
import cython_source
from c_source import C_FILES, PROSE, SOURCES, relative

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 900
COLUMNS_MAX = 100


def python_functions(text: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function."""
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, nodes)
    ]


def functions(path: Path) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function of a source file."""
    text = path.read_text()
    if path.suffix in (".c", ".h"):
        return [(f.line, f.lines) for f in c_source.functions(text)]
    if path.suffix == ".py":
        return python_functions(text)
    return cython_source.functions(text)


def test_the_checks_look_at_everything_that_is_c_cython_or_python() -> None:
    folders = {relative(path).split("/")[0] for path in SOURCES}
    assert {"csrc", "pyext", "python", "tests", "bench"} <= folders
    c_folders = {relative(path.parent) for path in C_FILES}
    assert {"tests/crash", "bench", "bench/raw"} <= c_folders


def test_the_finder_of_c_functions_sees_where_one_begins_and_ends() -> None:
    text = "/* x */\nstatic int f(int a,\n             int b)\n{\n    g();\n}\n\nint v;\n"
    found = c_source.functions(text)
    assert [(f.line, f.lines) for f in found] == [(2, 5)]


def test_the_finder_of_cython_functions_sees_where_one_begins_and_ends() -> None:
    text = (
        "cdef class A:\n    cdef int x\n\n    cdef int get(self,\n"
        "                 int n) except -1:\n"
        "        # y\n        return n\n\n    def put(self): return 1\n\n"
        "cdef int f(int a) nogil\ncdef inline int g(int a) nogil:\n    return a\n"
    )
    assert cython_source.functions(text) == [(4, 4), (12, 2)]


def test_functions_have_at_most_70_lines() -> None:
    long = [
        f"{relative(path)}:{line}: {lines}"
        for path in SOURCES
        for line, lines in functions(path)
        if lines > FUNCTION_LINES_MAX
    ]
    assert not long, long


GENERATED = {"csrc/base/mqi_constants.h", "pyext/constants.pxd"}  # tables, by tools/make_mqi.py


def test_files_have_at_most_900_lines() -> None:
    written = [path for path in SOURCES if relative(path) not in GENERATED]
    long = [relative(p) for p in written if len(p.read_text().splitlines()) > FILE_LINES_MAX]
    assert not long, long


def test_lines_have_at_most_100_columns() -> None:
    wide = []
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > COLUMNS_MAX and path.name != "reason_codes.def":
                wide.append(f"{relative(path)}:{number}: {len(line)}")
    assert not wide, wide


def test_no_line_ends_in_blanks_and_every_file_ends_in_one_newline() -> None:
    bad = []
    for path in [*SOURCES, *PROSE]:
        text = path.read_text()
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            bad.append(f"{relative(path)}: end of file")
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip() or ("\t" in line and path.name != "Makefile" and path.suffix):
                bad.append(f"{relative(path)}:{number}")
    assert not bad, bad
