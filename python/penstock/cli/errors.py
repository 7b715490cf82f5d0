"""``penstock errors``"""

from __future__ import annotations

import os
from pathlib import Path

import click

from .common import FAILED, directory_of, manager_argument, say
from .terminal import echo_lines

NEWEST_FIRST = ("AMQERR01.LOG", "AMQERR02.LOG", "AMQERR03.LOG")


def log_lines(directory: Path) -> tuple[list[str], list[str]]:
    """Every line of the error log, oldest first, and what is wrong with files that are no log.

    A link is not followed, and a FIFO not waited for: the folder may hold what others put there.
    """
    from penstock.admin.manager_files import open_regular

    lines: list[str] = []
    refused: list[str] = []
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(directory / "errors", flags)
    except FileNotFoundError:
        return lines, refused
    try:
        for name in reversed(NEWEST_FIRST):
            try:
                fd = open_regular(name, folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                refused.append(f"errors/{name} is left out: {error.strerror}")
                continue
            with open(fd, encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                lines += file.read().removesuffix("\n").split("\n")
    finally:
        os.close(folder)
    return lines, refused


@click.command("errors")
@manager_argument
@click.option("--lines", "-n", type=click.IntRange(min=1), help="Only the newest N messages.")
def command(qm: str, home: Path | None, lines: int | None) -> None:
    """Show the error log of QM, oldest message first, one a line with its AMQ number.

    Status 2 when a file of the log is a link or no file; it is left out.
    """
    found, refused = log_lines(directory_of(qm, home))
    echo_lines(found[-lines:] if lines else found)
    for text in refused:
        say(text)
    if refused:
        raise SystemExit(FAILED)
