"""The layout of the binding: parts in any order, no import of the package, named numbers."""

from __future__ import annotations

import importlib.machinery
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from Cython.Compiler.Errors import CompileError
from Cython.Compiler.Main import CompilationOptions, compile_single
from Cython.Compiler.Options import get_directive_defaults

from penstock import _engine, mqi

ROOT = Path(__file__).resolve().parents[2]
PYEXT = ROOT / "pyext"
PARTS = sorted(PYEXT.glob("*/*.pyx"))
INCLUDE = re.compile(r'^include ".*\.pyx"\n', re.MULTILINE)
NUMBER = re.compile(r"^    (\w+) = ((?:0x)?[0-9A-Fa-f]+|-\d+)(?![^\s])", re.MULTILINE)
FUNCTION_LINES_MAX = 70
PART_LINES_MAX = 500


def constants() -> dict[str, int]:
    """Name -> number of constants.pxd, but for those that are made of others."""
    text = (PYEXT / "constants.pxd").read_text()
    return {name: int(number, 0) for name, number in NUMBER.findall(text)}


def functions(text: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function and method of a Cython file."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        start = re.match(r"( *)(?:def|cdef (?!class|enum|struct|extern)[^=]*?\w\() ?", line)
        if not start:
            continue
        end = number + 1
        depth = re.compile(rf" {{{len(start[1]) + 1}}}|\s*$|{start[1]}\)")
        while end < len(lines) and depth.match(lines[end]):
            end += 1
        while not lines[end - 1].strip():
            end -= 1
        found.append((number + 1, end - number))
    return found


def test_the_function_finder_sees_where_a_cython_function_ends() -> None:
    text = (
        "cdef class A:\n    cdef int f(\n        self\n    ) except -1:\n        return 0\n\n    x"
    )
    assert functions(text) == [(2, 4)]
    assert functions("def f():\n    pass\n\n\ncdef int g() noexcept:\n    return 1\n") == [
        (1, 2),
        (5, 2),
    ]


def test_functions_of_the_binding_have_at_most_70_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{line}: {length}"
        for path in PARTS
        for line, length in functions(path.read_text())
        if length > FUNCTION_LINES_MAX
    ]
    assert sum(len(functions(path.read_text())) for path in PARTS) > 300
    assert not long, long


def test_parts_of_the_binding_have_at_most_500_lines() -> None:
    long = [p.name for p in PARTS if len(p.read_text().splitlines()) > PART_LINES_MAX]
    assert not long, long


def test_every_part_and_every_declaration_is_included_once() -> None:
    for ending in ("pyx", "pxd"):
        text = (PYEXT / "penstock" / f"_engine.{ending}").read_text()
        included = re.findall(rf'^include "(.*\.{ending})"$', text, re.MULTILINE)
        files = [
            str(p.relative_to(PYEXT))
            for p in PYEXT.glob(f"*/*.{ending}")
            if p.parent.name != "penstock"
        ]
        assert sorted(included) == sorted(files)


@pytest.mark.parametrize("seed", [1, 2])
def test_parts_may_be_included_in_any_order(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "pyext"
    shutil.copytree(PYEXT, folder)
    source = folder / "penstock" / "_engine.pyx"
    text = source.read_text()
    parts = INCLUDE.findall(text)
    shuffled = random.Random(seed).sample(parts, len(parts))
    assert shuffled != parts
    source.write_text(INCLUDE.sub("", text) + "".join(shuffled))
    options = CompilationOptions(
        include_path=[str(folder)],
        output_file=str(tmp_path / "_engine.c"),
        compiler_directives={**get_directive_defaults(), "language_level": 3},
    )
    try:
        result = compile_single(str(source), options, full_module_name="penstock._engine")
    except CompileError as error:
        pytest.fail(f"{error}")
    assert result.num_errors == 0


def test_parts_have_definitions_only() -> None:
    """No statement that runs at import: but for values, which no other part uses at import."""
    allowed = re.compile(r"(cdef|def|@|#|\)|\]|\}|$|[A-Z_]+ = )")
    bad = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in PARTS
        if path.parent.name != "penstock"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line[:1] != " " and not allowed.match(line)
    ]
    assert not bad, bad


def test_the_binding_imports_nothing_of_the_package() -> None:
    imports = re.compile(r"^\s*(?:from|import) +(?:penstock|\.)", re.MULTILINE)
    assert not [p for p in PYEXT.rglob("*.p[yx][xd]") if imports.search(p.read_text())]


def test_without_the_package_the_binding_says_what_is_missing() -> None:
    program = (
        "import sys, importlib.util as u\n"
        "from importlib.machinery import ExtensionFileLoader\n"
        f"spec = u.spec_from_file_location('penstock._engine', {_engine.__file__!r})\n"
        "engine = u.module_from_spec(spec); spec.loader.exec_module(engine)\n"
        "assert 'penstock' not in sys.modules\n"
        "try: engine.create_files('x\\0', {})\n"
        "except RuntimeError as error: print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "import penstock first" in ended.stdout
    assert importlib.machinery.EXTENSION_SUFFIXES[0] in str(_engine.__file__)


def test_reason_codes_of_the_binding_are_those_of_the_table() -> None:
    codes = {name[3:]: n for name, n in constants().items() if name.startswith("RC_")}
    assert len(codes) > 50
    assert codes == {name: getattr(mqi, f"MQRC_{name}") for name in codes}


def test_constants_of_the_binding_are_those_of_the_mqi() -> None:
    named = {name: n for name, n in constants().items() if name.startswith("MQ")}
    known = {name: n for name, n in named.items() if hasattr(mqi, name)}
    assert len(known) > 100
    for name, number in known.items():
        value = getattr(mqi, name)
        assert (ord(value) if isinstance(value, str) else value) == number, name
    own = {name for name in set(named) - set(known) if not name.endswith("_CURRENT_VERSION")}
    assert own == {"MQ_NUMBER_MAX", "MQCCSI_UTF8"}


OFFSETS = {"MD": mqi.MQMD, "MDE": mqi.MQMDE, "PMO": mqi.MQPMO, "GMO": mqi.MQGMO, "OD": mqi.MQOD,
           "XQH": mqi.MQXQH}  # fmt: skip
NOT_FIELDS = {  # masks of options
    "GMO_BROWSES", "GMO_CURSOR", "GMO_NEEDS_VERSION_2", "GMO_MSG_TOKEN_QUEUE", "PMO_PASSES",
    "PMO_SETS", "PMO_NEEDS_RIGHT", "PMO_CONTEXTS", "OD_OBJECT_STRING_LENGTH",
}  # fmt: skip


def test_offsets_of_the_binding_are_those_of_the_structures() -> None:
    compared = 0
    for name, offset in constants().items():
        prefix, _, field = name.partition("_")
        if prefix in OFFSETS and name not in NOT_FIELDS:
            kind, wanted = OFFSETS[prefix], field.replace("_", "")
        else:
            continue
        fields = {known.lower(): at for known, at in vars(kind).items()}
        assert fields[wanted.lower()].offset == offset, name
        compared += 1
    assert compared > 60
    sizes = constants()
    assert len(mqi.MQMD(Version=1).pack()) == sizes["MQMD_LENGTH_1"]
    assert len(mqi.MQMD(Version=2).pack()) == sizes["MQMD_LENGTH_2"]
    assert len(mqi.MQMDE().pack()) == sizes["MQMDE_LENGTH_2"]
    assert len(mqi.MQXQH().pack()) == sizes["MQXQH_LENGTH_1"]


def test_a_call_site_has_a_name_for_every_number_of_mq() -> None:
    """No reason code, and no power of two from 16 on, stands in a part."""
    number = re.compile(
        r"(?<![\w.\[{-])(?<!freelist\()"
        r"(2[0-5]\d\d|16|32|64|128|256|512|1024|2048|4096|8192|16384)\b"
    )
    text = re.compile(r'""".*?"""|"[^"\n]*"|#[^\n]*', re.DOTALL)
    bad = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in PARTS
        if path.parent.name != "penstock"
        for found in number.finditer(text.sub("", path.read_text()))
    ]
    assert not bad, bad
