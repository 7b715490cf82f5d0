"""Functions of Cython sources, found by indentation."""

from __future__ import annotations

import re

_DEFINITION = re.compile(
    r"^( *)(?:async )?(?:def|cpdef|cdef)\b(?! (?:class|enum|struct|extern|union|packed)\b)"
    r"[^#=]*\((?:.*\)[^:]*:\s*(?:#.*)?$|[^)]*$|.*,\s*$)"
)


def functions(text: str) -> list[tuple[int, int]]:
    """(first line, number of lines) of each function or method of a .pyx or .pxi file."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        match = _DEFINITION.match(line)
        if match is None:
            continue
        end = _end(lines, number, len(match[1]))
        if end > number:
            found.append((number + 1, end - number + 1))
    return found


def _end(lines: list[str], start: int, indent: int) -> int:
    """Index of the last line of the definition begun at `start`; `start` for a declaration."""
    header = start
    depth = 0
    while header < len(lines):
        code = lines[header].split("#")[0]
        depth += code.count("(") + code.count("[") - code.count(")") - code.count("]")
        if depth <= 0:
            break
        header += 1
    if header >= len(lines) or not lines[header].split("#")[0].rstrip().endswith(":"):
        return start
    last = header
    for number in range(header + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        if line.strip():
            last = number
    return last
