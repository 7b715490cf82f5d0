"""What the style tests know of C sources: functions, comments, includes, calls.

The core's formatting is regular (braces of functions in column 1), so lines and regular expressions
are enough; nothing here parses C.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"

_COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
_INCLUDE = re.compile(r'^#include "([\w./]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Function:
    """A function definition: its first line, how many lines it has, its text."""

    line: int
    lines: int
    text: str


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
    """The path below the project's folder."""
    return str(path.relative_to(ROOT))


def without_comments_and_texts(text: str) -> str:
    """C code alone, line numbers kept."""
    return _COMMENT_OR_TEXT.sub(lambda m: "\n" * m.group().count("\n"), text)


def comments(text: str) -> list[tuple[int, str]]:
    """(first line, text) of each comment."""
    return [(text.count("\n", 0, m.start()) + 1, m.group()) for m in _COMMENT.finditer(text)]


def comment_lines(text: str) -> int:
    """How many lines have a comment."""
    return sum(comment.count("\n") + 1 for _, comment in comments(text))


def functions(text: str) -> list[Function]:
    """The functions defined in a file."""
    found = []
    start = 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
            while start > 1 and re.match(r"[\w ].*[^;}{/]$", lines[start - 2]):
                start -= 1
        elif line == "}" and start:
            body = "\n".join(lines[start - 1 : number])
            found.append(Function(start, number - start + 1, body))
            start = 0
    return found


def assertions(text: str) -> int:
    """How often MQX_ASSERT stands in the code."""
    return len(re.findall(r"\bMQX_ASSERT\(", without_comments_and_texts(text)))


def includes(text: str) -> list[str]:
    """The project's own headers that a file includes, as they are named."""
    return _INCLUDE.findall(text)


def calls(text: str) -> list[tuple[int, str]]:
    """(line, name) of what looks like a call."""
    found = []
    for number, line in enumerate(without_comments_and_texts(text).splitlines(), 1):
        found += [(number, name) for name in _CALL.findall(line)]
    return found


CORE = tracked("csrc/**/*.c", "csrc/**/*.h", "csrc/*.c", "csrc/*.h")
C_FILES = CORE + tracked(
    "tests/c/**/*.c",
    "tests/c/**/*.h",
    "tests/crash/*.c",
    "tests/crash/*.h",
    "bench/*.c",
    "bench/*.h",
    "bench/raw/*.c",
    "bench/raw/*.h",
    "pyext/**/*.h",
    "pyext/*.h",
)
PYTHON_FILES = tracked("*.py", "**/*.py")
BINDING_FILES = tracked(
    *(f"pyext/{depth}*.{ending}" for depth in ("", "**/") for ending in ("pyx", "pxi", "pxd"))
)
SOURCES = sorted({*C_FILES, *PYTHON_FILES, *BINDING_FILES})
PROSE = tracked("*.md", "**/*.md", "Makefile", ".ci/run")
