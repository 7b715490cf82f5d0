"""The built extension is hardened, whatever compiler made it.

Read from the ELF file of `penstock._engine` itself: what counts is the module that users load, not
the options with which somebody meant to build it. PENSTOCK_ENGINE_FILE in the environment names
another file to read: that of a wheel, also one for another processor.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile

GIVEN = os.environ.get("PENSTOCK_ENGINE_FILE")
SHSTK = 1 << 1
ENDBR64 = b"\xf3\x0f\x1e\xfa"
PACIASP = b"\x3f\x23\x03\xd5"
BTI_C = b"\x5f\x24\x03\xd5"
DF_BIND_NOW = 1 << 3
DF_1_NOW = 1 << 0


@pytest.fixture(scope="module")
def elf() -> Iterator[ELFFile]:
    with Path(GIVEN or built_module()).open("rb") as file:
        yield ELFFile(file)


def within_relro(elf: ELFFile, section: Any) -> bool:
    (relro,) = segments(elf, "PT_GNU_RELRO")
    begin, end = relro["p_vaddr"], relro["p_vaddr"] + relro["p_memsz"]
    return bool(begin <= section["sh_addr"] and section["sh_addr"] + section["sh_size"] <= end)


def built_module() -> str:
    spec = find_spec("penstock._engine")
    assert spec is not None and spec.origin is not None
    return spec.origin


def segments(elf: ELFFile, kind: str) -> list[Any]:
    return [segment for segment in elf.iter_segments() if segment["p_type"] == kind]


def imported(elf: ELFFile) -> set[str]:
    table = elf.get_section_by_name(".dynsym")
    return {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}


def dynamic(elf: ELFFile) -> dict[str, int]:
    section = elf.get_section_by_name(".dynamic")
    return {tag.entry.d_tag: tag.entry.d_val for tag in section.iter_tags()}


def x86_features(elf: ELFFile) -> int:
    """The bits of the property note, by which the loader decides; 0 without one."""
    found = 0
    for segment in segments(elf, "PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_PROPERTY_TYPE_0":
                for item in note["n_desc"]:
                    if item["pr_type"] == "GNU_PROPERTY_X86_FEATURE_1_AND":
                        found |= item["pr_data"]
    return found


def code_of(elf: ELFFile, name: str, size: int) -> bytes:
    """The first bytes of an exported function."""
    (symbol,) = elf.get_section_by_name(".dynsym").get_symbol_by_name(name)
    (offset,) = elf.address_offsets(symbol["st_value"])
    elf.stream.seek(offset)
    return bytes(elf.stream.read(size))


def test_relocated_tables_are_read_only_after_loading(elf: ELFFile) -> None:
    assert len(segments(elf, "PT_GNU_RELRO")) == 1


def test_all_symbols_are_bound_when_the_module_is_loaded(elf: ELFFile) -> None:
    tags = dynamic(elf)
    assert tags.get("DT_FLAGS", 0) & DF_BIND_NOW or "DT_BIND_NOW" in tags
    assert tags.get("DT_FLAGS_1", 0) & DF_1_NOW
    table = elf.get_section_by_name(".got.plt")
    assert table is None or within_relro(elf, table)


def test_stacks_are_not_executable_and_no_memory_is_writable_and_executable(elf: ELFFile) -> None:
    (stack,) = segments(elf, "PT_GNU_STACK")
    assert not stack["p_flags"] & P_FLAGS.PF_X
    for segment in segments(elf, "PT_LOAD"):
        both = P_FLAGS.PF_W | P_FLAGS.PF_X
        assert segment["p_flags"] & both != both


def test_functions_with_buffers_check_their_stack_frame(elf: ELFFile) -> None:
    assert "__stack_chk_fail" in imported(elf)


def test_calls_that_fill_buffers_of_known_size_are_checked(elf: ELFFile) -> None:
    checked = {name for name in imported(elf) if name.endswith("_chk")}
    assert checked & {"__memcpy_chk", "__memset_chk", "__snprintf_chk", "__vsnprintf_chk"}


def test_memory_is_copied_by_the_c_library_of_the_machine(elf: ELFFile) -> None:
    # and not by a slower copy out of the compiler's run-time library
    assert {"memcpy", "memcmp", "memset"} <= imported(elf)


def test_code_is_never_written_by_relocations(elf: ELFFile) -> None:
    assert "DT_TEXTREL" not in dynamic(elf)


def test_libraries_are_searched_where_the_interpreter_lies_at_most(elf: ELFFile) -> None:
    allowed = set() if GIVEN else {sysconfig.get_config_var("LIBDIR")}  # no path in a wheel
    section = elf.get_section_by_name(".dynamic")
    for tag in section.iter_tags():
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            path = tag.runpath if tag.entry.d_tag == "DT_RUNPATH" else tag.rpath
            assert set(path.split(":")) <= allowed


def test_only_the_module_function_is_exported(elf: ELFFile) -> None:
    table = elf.get_section_by_name(".dynsym")
    own = {
        symbol.name
        for symbol in table.iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
    }
    assert own - {"_init", "_fini"} == {"PyInit__engine"}


def test_control_flow_is_protected_where_the_processor_can(elf: ELFFile) -> None:
    machine = elf.get_machine_arch()
    if machine == "x64":
        assert x86_features(elf) & SHSTK
        assert code_of(elf, "PyInit__engine", len(ENDBR64)) == ENDBR64
    elif machine == "AArch64":
        assert code_of(elf, "PyInit__engine", len(PACIASP)) in (PACIASP, BTI_C)
