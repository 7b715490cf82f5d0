"""The display: the rule, two bars, and one line for each event."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table


class Screen:
    """Bars and events on a terminal; events alone, one a line, elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._start = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description:<6}"),
            BarColumn(bar_width=46),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._put = self._bars.add_task("put", total=None, note="")
        self._taken = self._bars.add_task("taken", total=None, note="")

    def __enter__(self) -> Screen:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def event(self, text: str) -> None:
        """One line with the time since the start."""
        elapsed = time.monotonic() - self._start
        self.console.print(f"{elapsed:6.2f} s  {text}", highlight=False, soft_wrap=True)

    def counts(self, put: int, taken: int, total: int, alive: str) -> None:
        """Moves the bars. Both count units of work as their workers report them."""
        self._bars.update(self._put, completed=put, total=total, note=alive)
        self._bars.update(self._taken, completed=taken, total=total)

    def rule(self, rules: str, counts: dict[int, int]) -> None:
        """Shows the rule that gives priorities and how many lines have each."""
        table = Table(title="priority of a line: the first word that occurs in it decides")
        table.add_column("priority", justify="right")
        table.add_column("words")
        table.add_column("lines", justify="right")
        words: dict[int, list[str]] = {}
        for item in rules.split(","):
            word, _, priority = item.rpartition("=")
            words.setdefault(int(priority), []).append(repr(word)[1:-1])
        for number in sorted(counts.keys() | words.keys(), reverse=True):
            shown = "  ".join(words.get(number, ["(any other)"]))
            table.add_row(str(number), shown, f"{counts.get(number, 0):,}")
        self.console.print(table)

    def figures(self, title: str, rows: list[tuple[str, str]]) -> None:
        """A table of two columns."""
        table = Table(title=title, show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
