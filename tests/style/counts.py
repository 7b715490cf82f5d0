"""Counts over the core: printed by ``make style``, held to bounds by the tests beside this file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from c_source import CSRC, ROOT, assertions, comment_lines, functions
from rooms import order


@dataclass(frozen=True)
class Counts:
    """What a folder holds."""

    files: int
    lines: int
    functions: int
    assertions: int
    comments: int
    longest_function: int
    longest_file: int

    @property
    def comment_share(self) -> float:
        """Lines with a comment, of all lines."""
        return self.comments / max(self.lines, 1)


def folder_counts(folder: Path) -> Counts:
    """The counts of the C files in a folder."""
    texts = [path.read_text() for path in sorted(folder.glob("*.[ch]"))]
    found = [function for text in texts for function in functions(text)]
    lines = [text.count("\n") for text in texts]
    return Counts(
        files=len(texts),
        lines=sum(lines),
        functions=len(found),
        assertions=sum(map(assertions, texts)),
        comments=sum(map(comment_lines, texts)),
        longest_function=max((function.lines for function in found), default=0),
        longest_file=max(lines, default=0),
    )


def serves_a_folder(header: Path) -> bool:
    """Whether it is the header of its folder, which several modules share: they test it."""
    return header.stem in (header.parent.name, f"{header.parent.name}_private")


def modules() -> list[str]:
    """Modules that have code: each .c file, and each header with functions and no .c beside it."""
    found = {str(path.relative_to(CSRC))[:-2] for path in CSRC.rglob("*.c")}
    for path in CSRC.rglob("*.h"):
        code = functions(path.read_text()) or re.search(r"^#define \w+\(", path.read_text(), re.M)
        name = str(path.relative_to(CSRC))
        if code and not serves_a_folder(path) and not name.startswith("include/"):
            found.add(name[:-2])
    return sorted(found)


def modules_without_a_test() -> list[str]:
    """Modules for which there is no tests/c/<folder>/test_<module>.c."""
    tests = ROOT / "tests" / "c"
    missing = []
    for name in modules():
        folder, _, module = name.rpartition("/")
        if not (tests / folder / f"test_{module}.c").exists():
            missing.append(name)
    return missing


def report() -> str:
    """A table of the counts by folder."""
    head = ("folder", "files", "lines", "functions", "assertions", "each", "comments", "longest f")
    rows = [(*head, "longest file")]
    total = [0, 0]
    for room in order((CSRC / "README.md").read_text()):
        c = folder_counts(CSRC / room)
        total = [total[0] + c.functions, total[1] + c.assertions]
        each = f"{c.assertions / max(c.functions, 1):.2f}"
        cells = (c.files, c.lines, c.functions, c.assertions, each, f"{c.comment_share:.0%}")
        rows.append((room, *map(str, cells), str(c.longest_function), str(c.longest_file)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    missing = modules_without_a_test()
    lines.append(
        f"functions {total[0]}, assertions {total[1]}, {total[1] / total[0]:.2f} a function"
    )
    lines.append(f"modules without a test: {len(missing)} {' '.join(missing)}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
