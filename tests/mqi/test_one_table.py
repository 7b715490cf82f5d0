"""One table of MQ's numbers: C, Cython and Python have what tools/mqi says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import penstock.constants
from penstock import _engine, mqi, rpg

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "tools" / "mqi").is_dir(), reason="the tools are not in this tree"
)


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_mqi", ROOT / "tools" / "make_mqi.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_mqi"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make_mqi = load_generator()
TABLE = make_mqi.load()


def test_every_written_file_is_as_the_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_mqi.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_the_check_names_a_file_that_was_edited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in make_mqi.outputs(TABLE):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    header = tmp_path / "csrc" / "base" / "mqi_constants.h"
    header.write_text(header.read_text().replace("MQOO_BROWSE = 8,", "MQOO_BROWSE = 9,"))
    binding = tmp_path / "pyext" / "constants.pxd"
    binding.write_text(binding.read_text().replace("RC_MD_ERROR = 2026", "RC_MD_ERROR = 2027"))
    monkeypatch.setattr(make_mqi, "ROOT", tmp_path)
    original = make_mqi.outputs
    monkeypatch.setattr(make_mqi, "outputs", lambda table: original(table, tmp_path))
    assert make_mqi.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines() == [
        "csrc/base/mqi_constants.h: not as tools/mqi says",
        "pyext/constants.pxd: not as tools/mqi says",
    ]
    assert make_mqi.main([]) == 0
    assert make_mqi.main(["--check"]) == 0


def test_a_missing_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="'offsets'"):
        make_mqi.replaced("# generated: codes\n# end of generated: codes\n", "offsets", [])


def compiler() -> list[str]:
    command = os.environ.get("CC", "cc").split()
    if shutil.which(command[0]) is None:
        pytest.skip("no C compiler")
    return command


def printed(program: Path) -> dict[str, int]:
    """What a program prints: name and number a line."""
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in (line.split() for line in out.splitlines())}


def test_c_has_the_numbers_of_the_table(tmp_path: Path) -> None:
    wanted = {n: v for group in TABLE.groups() for n, v in make_mqi.used(group, "c").items()}
    wanted |= {f"MQRC_{reason.name}": reason.code for reason in TABLE.reasons if reason.core}
    lines = [f'    printf("{name} %d\\n", (int){name});' for name in wanted]
    source = tmp_path / "numbers.c"
    source.write_text(
        '#include "base/error.h"\n#include <stdio.h>\nint main(void)\n{\n'
        + "\n".join(lines)
        + "\n    return 0;\n}\n"
    )
    program = tmp_path / "numbers"
    command = [*compiler(), "-std=gnu11", f"-I{ROOT / 'csrc'}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    assert len(wanted) > 800
    assert printed(program) == wanted


def binding_numbers() -> dict[str, int]:
    """Everything that the table gives the binding, by name."""
    found = {f"RC_{reason.name}": reason.code for reason in TABLE.reasons if reason.core}
    for group in TABLE.groups():
        found |= make_mqi.used(group, "binding")
    for known in TABLE.structures:
        for field in known.fields if known.binding else ():
            if field.name != "StrucId":
                found[f"{known.name[2:]}_{make_mqi.snake(field.name)}"] = field.offset
    return found


def test_cython_has_the_numbers_of_the_table(tmp_path: Path) -> None:
    """A program with the binding's constants, built by Cython and the C compiler, prints them."""
    main = pytest.importorskip("Cython.Compiler.Main")
    wanted = binding_numbers()
    source = tmp_path / "numbers.pyx"
    source.write_text(
        'include "constants.pxd"\nfrom libc.stdio cimport printf\ncdef public void show():\n'
        + "\n".join(f'    printf(b"{name} %d\\n", <int>{name})' for name in wanted)
        + "\n"
    )
    options = main.CompilationOptions(
        include_path=[str(ROOT / "pyext")],
        output_file=str(tmp_path / "numbers.c"),
        language_level=3,
    )
    assert main.compile_single(str(source), options, full_module_name="numbers").num_errors == 0
    enums = re.findall(r"^ *__pyx_e_\w*?_((?:RC|MQ|MD|MDE|OD|PMO|GMO|XQH)_?\w*) = (-?\w+)", (
        tmp_path / "numbers.c"
    ).read_text(), re.MULTILINE)  # fmt: skip
    built = {name: int(number.rstrip("L"), 0) for name, number in enums if name in wanted}
    assert len(wanted) > 1000
    assert {name: built[name] for name in wanted} == wanted


def test_the_package_has_the_numbers_of_the_table() -> None:
    compared = 0
    for group in TABLE.groups():
        for name, value in group.constants.items():
            native = getattr(value, sys.byteorder, value)
            assert getattr(mqi, name) == native, name
            assert type(getattr(mqi, name)) is type(native), name
            compared += 1
    assert compared > 1500


def test_the_package_has_the_reason_codes_of_the_table() -> None:
    numbers = {"OK": 0, "WARNING": 1, "FAILED": 2}
    for reason in TABLE.reasons:
        assert mqi.REASONS[reason.code].name == f"MQRC_{reason.name}"
        assert mqi.REASONS[reason.code].meaning == reason.text
        assert mqi.REASONS[reason.code].comp_code == numbers[reason.comp_code]
        if reason.core:
            assert penstock.constants.ReasonCode[reason.name] == reason.code
            assert _engine.reason_text(reason.code) == reason.text
            assert _engine.comp_code(reason.code) == numbers[reason.comp_code]
    assert len(mqi.REASONS) == len(TABLE.reasons)


def test_structures_have_the_fields_of_the_table() -> None:
    for known in TABLE.structures:
        cls = getattr(mqi, known.name)
        assert cls.layout.struc_id == known.struc_id
        assert dict(cls.layout.lengths) == dict(known.versions)
        end = 0
        for field in known.fields:
            at = vars(cls)[field.name]
            assert (at.offset, at.size) == (field.offset, field.size), (known.name, field.name)
            assert field.offset >= end, (known.name, field.name)
            end = field.offset + field.size
        assert end <= max(known.versions.values())


def test_rpg_names_are_those_of_the_table() -> None:
    compared = 0
    for _title, names in TABLE.rpg:
        for name, constant in names.items():
            assert getattr(rpg, name) == getattr(mqi, constant), name
            compared += 1
    for known in TABLE.structures:
        for field in known.fields if known.rpg else ():
            assert rpg.POSITIONS[field.rpg] == (field.offset + 1, field.offset + field.size)
            compared += 1
    assert compared > 300


def test_names_occur_once_and_reason_codes_ascend() -> None:
    names = [name for group in TABLE.groups() for name in group.constants]
    assert len(names) == len(set(names))
    codes = [reason.code for reason in TABLE.reasons]
    assert codes == sorted(set(codes))
    rpg_names = [name for _title, group in TABLE.rpg for name in group]
    assert len(rpg_names) == len(set(rpg_names))


def test_no_line_of_the_table_is_longer_than_100_columns() -> None:
    for path in make_mqi.TABLE.glob("*.toml"):
        wide = [n for n, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 100]
        assert not wide, (path.name, wide)
