"""The description of the files, the reader's declarations and the core's structs agree.

`python tests/journal/test_format.py` prints the worked example of csrc/FORMAT.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "python"))

import writer  # noqa: E402

from penstock.journal import MemoryFiles, QueueManagerFiles, checksum, segment  # noqa: E402
from penstock.journal import layout as L  # noqa: E402

FORMAT = ROOT / "csrc" / "FORMAT.md"

# Names of constants: the reader's and the core's.
CONSTANTS = {
    "MAJOR": "PS_FORMAT_MAJOR",
    "MINOR": "PS_FORMAT_MINOR",
    "MIN_SEGMENT": "PS_MIN_SEGMENT",
    "BATCH_MAGIC": "PS_BATCH_MAGIC",
    "BLOCK_MAGIC": "PS_BLOCK_MAGIC",
    "CHUNK_BYTES": "PS_CHUNK_BYTES",
    "INLINE_BODY_MAX": "PS_INLINE_BODY_MAX",
    "MUST_UNDERSTAND": "PS_MUST_UNDERSTAND",
    "FLAG_COMMITS": "PS_FLAG_COMMITS",
    "BLOCK_OBJECTS": "PSC_OBJECTS",
    "BLOCK_MESSAGES": "PSC_MESSAGES",
    "BLOCK_IMAGE": "PSC_IMAGE",
    "BLOCK_END": "PSC_END",
    "BLOCK_SEGMENTS": "PSC_SEGMENTS",
    "BLOCK_UNITS": "PSC_UNITS",
    "BLOCK_OPERATIONS": "PSC_OPERATIONS",
    "BLOCK_UNIT_PUTS": "PSC_UNIT_PUTS",
    "PAGE": "MQX_PAGE_SIZE",
    "PRIORITIES": "MQX_PRIORITY_COUNT",
    "BODY_MAX": "MQX_MAX_BODY",
    "RECORD_MAX": "MQX_RING_RECORD_MAX",
}


def example() -> dict[str, bytes]:
    """The files of the worked example."""
    store = writer.Store(size=32768)
    store.append(writer.define(1, 1, "Q", {15: 5}))
    store.append(writer.put(1, b"hi"))
    return store.files


def example_dump() -> str:
    """The worked example as FORMAT.md prints it."""
    return dump(example()["journal/0000000001.psj"][: 3 * L.PAGE])


def example_head_dump() -> str:
    """HEAD of the worked example."""
    return dump(example()["HEAD"])


def dump(data: bytes) -> str:
    """16 bytes a line, runs of equal lines as `*`."""
    lines: list[str] = []
    before = b""
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        if row == before:
            if lines[-1] != "*":
                lines.append("*")
            continue
        text = "".join(chr(c) if 32 <= c < 127 else "." for c in row)
        lines.append(f"{at:05x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{text}|")
        before = row
    return "\n".join([*lines, f"{len(data):05x}"])


def core_values() -> dict[str, int]:
    """Sizes, offsets and constants as the C compiler sees them, by name."""
    lines = []
    for struct in L.STRUCTS:
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        for name, _, _ in L.fields(struct):
            offset = f"offsetof(struct {struct}, {name})"
            size = f"sizeof(((struct {struct} *)0)->{name})"
            lines.append(f'printf("{struct}.{name} %zu\\n", {offset});')
            lines.append(f'printf("{struct}.{name}# %zu\\n", {size});')
    names = [*CONSTANTS.values(), *(f"PS_REC_{name}" for name in L.RECORD_TYPES.values())]
    names += [f"PS_SEC_{name}" for name in L.SECTIONS.values()]
    lines += [f'printf("{name} %llu\\n", (unsigned long long)({name}));' for name in names]
    source = '#include <stdio.h>\n#include "format/format.h"\nint main(void)\n{\n'
    source += "\n".join(lines) + "\nreturn 0;\n}\n"
    return run_c(source)


def run_c(source: str, *more: Path) -> dict[str, int]:
    """Compiles and runs a program that prints `name value` lines."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler is not None, "the tests need a C compiler, as the build does"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        (Path(folder) / "program.c").write_text(source)
        include = [f"-I{ROOT / name}" for name in ("csrc", "csrc/include")]
        command = [compiler, "-std=gnu11", *include, "-o", str(program)]
        command += [f"{program}.c", *map(str, more)]
        subprocess.run(command, check=True, timeout=60)
        output = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    return {name: int(value) for name, value in map(str.split, output.stdout.splitlines())}


@pytest.fixture(scope="module")
def core() -> dict[str, int]:
    return core_values()


@pytest.fixture(scope="module")
def page() -> str:
    return FORMAT.read_text(encoding="utf-8")


def core_structs() -> str:
    """The two headers that declare the structs of the files."""
    names = ("format/format.h", "include/penstock/descriptor.h")
    return "\n".join((ROOT / "csrc" / name).read_text() for name in names)


@pytest.mark.parametrize("struct", L.STRUCTS)
def test_reader_and_core_agree_on_every_size_and_offset(core: dict[str, int], struct: str) -> None:
    assert core[struct] == L.size_of(struct)
    for name, kind, offset in L.fields(struct):
        assert core[f"{struct}.{name}"] == offset, name
        assert core[f"{struct}.{name}#"] == L.ffi.sizeof(kind), name


def test_reader_knows_every_struct_and_field_of_the_core() -> None:
    header = core_structs()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = dict(
        re.findall(r"^struct (psj_\w+|psh_\w+|psc_\w+|ps_\w+) \{(.*?)\n\};", header, re.S | re.M)
    )
    assert set(found) == set(L.STRUCTS)
    for struct, body in found.items():
        names = re.findall(r"(\w+)(?:\[\w+\])?;", body)
        assert names == [name for name, _, _ in L.fields(struct)], struct


def test_reader_and_core_agree_on_every_constant(core: dict[str, int]) -> None:
    for ours, theirs in CONSTANTS.items():
        assert getattr(L, ours) == core[theirs], ours
    for number, name in L.RECORD_TYPES.items():
        assert core[f"PS_REC_{name}"] == number
    for number, name in L.SECTIONS.items():
        assert core[f"PS_SEC_{name}"] == number


def test_reader_names_every_record_type_and_section_of_the_core() -> None:
    header = core_structs()
    assert set(re.findall(r"PS_REC_(\w+) =", header)) == set(L.RECORD_TYPES.values())
    assert set(re.findall(r"PS_SEC_(\w+) =", header)) == set(L.SECTIONS.values())


def test_format_page_describes_every_field_where_it_lies(page: str) -> None:
    tables = re.findall(r"^`(\w+)`, (\d+) bytes\n\n((?:\|.*\n)+)", page, re.M)
    assert [name for name, _, _ in tables if name in L.STRUCTS] == [t[0] for t in tables]
    assert {name for name, _, _ in tables} == set(L.STRUCTS)
    for struct, size, table in tables:
        assert int(size) == L.size_of(struct)
        rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
        said = [(name.strip(" `"), where.strip().split("-")) for where, name in rows]
        for (name, where), (field, kind, offset) in zip(said, L.fields(struct), strict=True):
            assert name == field
            assert (int(where[0]), int(where[-1])) == (offset, offset + L.ffi.sizeof(kind) - 1)


def test_format_page_lists_every_record_type_and_section(page: str) -> None:
    for names in (L.RECORD_TYPES, L.SECTIONS, L.BLOCK_TYPES):
        for number, name in names.items():
            row = re.search(
                rf"^\| [\d, ]*\b{number}\b[\d, ]* \| [^|]*\b{name}\b[^|]*\|", page, re.M
            )
            assert row is not None, name


def test_worked_example_is_what_the_writer_makes(page: str) -> None:
    assert f"```text\n{example_dump()}\n```" in page
    assert f"```text\n{example_head_dump()}\n```" in page


def test_worked_example_reads_as_described() -> None:
    state = QueueManagerFiles(MemoryFiles(example())).replay()
    (message,) = state.messages("Q")
    assert (message.identity, message.body()) == (1, b"hi")
    assert next(iter(state.objects.values())).attributes == {15: 5}


def test_fast_batch_header_decoding_agrees_with_the_declaration() -> None:
    assert segment._HEADER.size == L.size_of("psj_batch")
    data = bytes(range(64))
    at = L.overlay("psj_batch", data)[0]
    names = [name for name, _, _ in L.fields("psj_batch")]
    assert segment._HEADER.unpack(data) == tuple(int(getattr(at, name)) for name in names)


def test_crc_and_tag_agree_with_the_core() -> None:
    data = bytes(k * 7 & 255 for k in range(100))
    listed = ",".join(map(str, data))
    source = '#include <stdio.h>\n#include "base/checksum.h"\n'
    source += f"static const unsigned char data[] = {{{listed}}};\n"
    source += "int main(void)\n{\nfor (size_t n = 0; n <= sizeof data; n++) {\n"
    source += 'printf("crc%zu %u\\n", n, mqx_crc32c((uint32_t)n, data, n));\n'
    source += 'printf("tag%zu %llu\\n", n, (unsigned long long)mqx_hash64(data, n, 0x123u));\n'
    source += "}\nreturn 0;\n}\n"
    core = ROOT / "csrc" / "base"
    values = run_c(source, core / "checksum.c", core / "assert.c", core / "error.c")
    key = (0x123 ^ 0x456).to_bytes(8, "little") + (0x456).to_bytes(8, "little")
    for n in range(len(data) + 1):
        assert checksum.crc32c(data[:n], n) == values[f"crc{n}"]
        assert checksum.tag(data[:n], key) == values[f"tag{n}"]


if __name__ == "__main__":
    print(example_dump(), "", example_head_dump(), sep="\n")
