"""The rules that keep the tree readable, checked like any other claim."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 900
COLUMNS_MAX = 100

# Layers of the core, lowest first. A header includes only headers of its own layer or below it, a
# source file also those of its own layer: what lies above is never named.
LAYERS = (
    "base amq atomic check checksum error format futex reason_codes wiped yield",
    "io kept message record surroundings",
    "lock region arena store body attributes",
    "segment journal journal_files journal_read commit heap lookup queue select mqe notify "
    "browse_lock scan",
    "catalog catalog_delete catalog_names structure uow unit_log xids prepared",
    "recovery recovery_scan recovery_replay recovery_sort recovery_load checkpoint checkpoint_file "
    "journal_create",
    "attach attach_region attachment errlog forked helper lockfile orphan sweep watch",
    "handle twophase prepared_browse path put get oldest batch batch_rows browse_batch manager "
    "control",
)
LAYER_OF = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}

# The core talks to files through io.c alone (crash-safety rule 2).
FILE_CALL = re.compile(
    "openat2?|open|creat|p?readv?|p?writev?2?|f(data)?sync|sync_file_range|msync|f?truncate|"
    "(posix_)?fallocate|rename(at2?)?|unlink(at)?|link(at)?|mkdir(at)?|f(open|read|write|close)|"
    "mmap|munmap|flock|fcntl"
)
# ... but for what is no file of a queue manager.
NOT_STORAGE = {
    "check": {"write"},  # the last words of a failed check, on stderr
    "surroundings": {"open", "read"},  # /proc
    "wiped": {"mmap", "munmap"},  # the page that a fork empties
}
UNSAFE_CALL = re.compile("gets|strcpy|strcat|v?sprintf|alloca|system|popen|atoi|strtok")
_CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
_COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, or of the tree when it is no repository, that match."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = listing.stdout.splitlines()
    else:
        names = [str(p.relative_to(ROOT)) for pattern in patterns for p in ROOT.glob(pattern)]
    return sorted({ROOT / name for name in names if (ROOT / name).is_file()})


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code_only(text: str) -> str:
    """C without comments and strings, line numbers kept."""
    return _COMMENT_OR_TEXT.sub(lambda m: "\n" * m.group().count("\n"), text)


CORE = tracked("csrc/*.c", "csrc/*.h")
C_FILES = CORE + tracked("tests/c/*.c", "tests/c/*.h", "bench/raw/*.c", "bench/raw/*.h")
PYTHON_FILES = tracked("*.py", "python/**/*.py", "tests/**/*.py", "bench/**/*.py")
BINDING_FILES = tracked("pyext/*.pyx", "pyext/*.pxi", "pyext/*.pxd", "pyext/*.h")
SOURCES = sorted({*C_FILES, *PYTHON_FILES, *BINDING_FILES})
PROSE = tracked("*.md", "csrc/*.md", "tests/*.md", "bench/*.md", "Makefile", ".ci/run")


def c_functions(text: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function: braces in column 1."""
    found = []
    start = 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
            while start > 1 and re.match(r"[\w ].*[^;}{/]$", lines[start - 2]):
                start -= 1
        elif line == "}" and start:
            found.append((start, number - start + 1))
            start = 0
    return found


def python_functions(text: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function."""
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, nodes)
    ]


def test_the_checks_look_at_the_core_the_binding_the_package_and_the_tests() -> None:
    assert len(CORE) > 20
    assert all(
        folder in {p.parent.name for p in SOURCES} for folder in ("csrc", "pyext", "penstock")
    )


def test_the_function_finder_sees_where_a_c_function_begins_and_ends() -> None:
    text = "/* x */\nstatic int f(int a,\n             int b)\n{\n    g();\n}\n\nint v;\n"
    assert c_functions(text) == [(2, 5)]


def test_functions_have_at_most_70_lines() -> None:
    long = []
    for path in SOURCES:
        if path.suffix in (".c", ".h"):
            functions = c_functions(path.read_text())
        elif path.suffix == ".py":
            functions = python_functions(path.read_text())
        else:
            continue
        long += [f"{relative(path)}:{line}: {n}" for line, n in functions if n > FUNCTION_LINES_MAX]
    assert not long, long


def test_files_have_at_most_900_lines() -> None:
    long = [relative(p) for p in SOURCES if len(p.read_text().splitlines()) > FILE_LINES_MAX]
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


def test_nothing_is_left_to_do_in_the_sources() -> None:
    word = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    here = Path(__file__).name
    bad = [relative(p) for p in SOURCES if p.name != here and word.search(p.read_text())]
    assert not bad, bad


def includes(path: Path) -> list[str]:
    """Names of the core's own headers that a file includes, without the ending."""
    names = re.findall(r'^#include "([\w./]+)"', path.read_text(), re.MULTILINE)
    return [Path(name).stem for name in names]


def test_every_module_of_the_core_has_a_layer() -> None:
    unknown = {p.stem for p in CORE if p.stem not in LAYER_OF and p.suffix in (".c", ".h")}
    assert not unknown, f"say in LAYERS where these belong: {sorted(unknown)}"


def test_includes_point_downward_only() -> None:
    upward = []
    for path in CORE:
        rank = LAYER_OF.get(path.stem, len(LAYERS))
        upward += [
            f"{relative(path)} includes {name}.h"
            for name in includes(path)
            if LAYER_OF.get(name, -1) > rank
        ]
    assert not upward, upward


def test_headers_do_not_include_each_other_in_a_circle() -> None:
    graph = {p.stem: set(includes(p)) for p in CORE if p.suffix == ".h"}

    def reach(name: str, seen: frozenset[str]) -> None:
        assert name not in seen, f"{name}.h includes itself by way of {sorted(seen)}"
        for other in graph.get(name, ()):
            reach(other, seen | {name})

    for name in graph:
        reach(name, frozenset())


# Modules that no test calls by name -> the module through which its test file reaches them.
REACHED_BY = {
    "attach_region": "attach",
    "body": "recovery",
    "checkpoint_file": "recovery",
    "recovery_load": "recovery",
    "recovery_replay": "recovery",
    "recovery_scan": "recovery",
    "recovery_sort": "recovery",
    "browse_lock": "get",
    "wiped": "kept",
    "batch_rows": "batch",
}


def test_every_module_of_the_core_has_a_c_test_or_is_called_by_one_of_another() -> None:
    tests = {p.stem: p.read_text() for p in tracked("tests/c/*.[ch]", "tests/crash/*.[ch]")}
    called = set(re.findall(r"\bmq[xe]_\w+", "\n".join(tests.values())))
    bad = []
    for path in CORE:
        functions = set(re.findall(r"^\w[^;=\n]*?\b(mq[xe]_\w+)\(", path.read_text(), re.M))
        tested = f"test_{path.stem}" in tests or bool(functions & called)
        if path.suffix == ".c" and not tested and f"test_{REACHED_BY.get(path.stem)}" not in tests:
            bad.append(relative(path))
    assert not bad, bad


def calls(path: Path) -> list[tuple[int, str]]:
    """(line, name) of what looks like a call in a C file."""
    found = []
    for number, line in enumerate(code_only(path.read_text()).splitlines(), 1):
        found += [(number, name) for name in _CALL.findall(line)]
    return found


def test_only_io_talks_to_files() -> None:
    outside = [p for p in CORE if p.suffix == ".c" and p.stem != "io"]
    bad = [
        f"{relative(p)}:{line}: {name}()"
        for p in outside
        for line, name in calls(p)
        if FILE_CALL.fullmatch(name) and name not in NOT_STORAGE.get(p.stem, ())
    ]
    assert not bad, bad


def test_no_unsafe_calls() -> None:
    bad = [
        f"{relative(p)}:{line}: {name}()"
        for p in CORE
        for line, name in calls(p)
        if UNSAFE_CALL.fullmatch(name)
    ]
    assert not bad, bad


def test_every_source_file_opens_with_its_specification() -> None:
    bad = []
    for path in SOURCES:
        text = path.read_text()
        if path.suffix == ".py":
            opened = not text.strip() or ast.get_docstring(ast.parse(text)) is not None
        else:
            opened = text.startswith(("/*", "#"))
        if not opened:
            bad.append(relative(path))
    assert not bad, bad
