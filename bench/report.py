"""Aims, measured figures, and the table that shows both.

A *side* is one way to do a workload (penstock, a raw limit, a peer). A *sample* is the seconds for
one operation in one round of one side, or the bytes that it leaves. A *figure* holds the samples of
all sides of a workload.
Ratios are ratios of medians; an aim is evaluated for the reader and never fails a run.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["rate", "time", "extra", "absolute"]
Unit = Literal["s", "B"]


@dataclass(frozen=True)
class Aim:
    """A bound for one side, mostly relative to another.

    rate      side's rate / limit's rate >= bound
    time      side's time / limit's time <= bound
    extra     side's time - limit's time <= bound seconds
    absolute  side's time <= bound seconds, or its bytes <= bound bytes

    With `either`, the aim is met when this bound or that one is kept; both are shown.
    """

    kind: Kind
    bound: float
    limit: str = ""
    side: str = "penstock"
    either: Aim | None = None

    def value(self, medians: dict[str, float]) -> float:
        """The ratio (or the seconds) that `bound` is compared with."""
        ours = medians[self.side]
        if self.kind == "rate":
            return medians[self.limit] / ours
        if self.kind == "time":
            return ours / medians[self.limit]
        if self.kind == "extra":
            return ours - medians[self.limit]
        return ours

    def keeps(self, medians: dict[str, float]) -> bool:
        """True when the medians keep this bound."""
        value = self.value(medians)
        return value >= self.bound if self.kind == "rate" else value <= self.bound

    def is_met(self, medians: dict[str, float]) -> bool:
        """True when the medians keep the bound, or the other one that suffices."""
        return self.keeps(medians) or (self.either is not None and self.either.is_met(medians))

    def text(self, medians: dict[str, float], best: dict[str, float], unit: Unit = "s") -> str:
        """For example ``0.93 x the rate of raw append, aim >= 0.90: met (best rounds 0.94)``."""
        own = self._own_text(medians, best, unit)
        if self.either is None:
            return own
        verdict = "met" if self.is_met(medians) else "missed"
        other = self.either.text(medians, best, unit)
        return f"{own}\n     {other}\n     either suffices: {verdict}"

    def _own_text(self, medians: dict[str, float], best: dict[str, float], unit: Unit) -> str:
        value, best_value = self.value(medians), self.value(best)
        verdict = "met" if self.keeps(medians) else "missed"
        if self.kind in ("rate", "time"):
            sign = ">=" if self.kind == "rate" else "<="
            return (
                f"{value:.2f} x the {self.kind} of {self.limit}, aim {sign} {self.bound:.2f}: "
                f"{verdict} (best rounds {best_value:.2f})"
            )
        signed = self.kind == "extra"
        against = f" against {self.limit}" if signed else ""
        return (
            f"{show(value, unit, signed)}{against}, aim <= {show(self.bound, unit, signed)}: "
            f"{verdict} (best rounds {show(best_value, unit, signed)})"
        )

    def as_json(self, medians: dict[str, float], best: dict[str, float]) -> dict[str, object]:
        """The aim for a result file; seconds throughout."""
        content: dict[str, object] = {
            "side": self.side,
            "limit": self.limit,
            "kind": self.kind,
            "bound": self.bound,
            "value": self.value(medians),
            "best": self.value(best),
            "met": self.is_met(medians),
        }
        if self.either is not None:
            content["either"] = self.either.as_json(medians, best)
        return content


@dataclass
class Figure:
    """The samples of one workload, in the order in which its sides were given."""

    workload: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    aims: list[Aim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unit: Unit = "s"

    def medians(self) -> dict[str, float]:
        """Median seconds for one operation, by side."""
        return {side: statistics.median(times) for side, times in self.samples.items()}

    def best(self) -> dict[str, float]:
        """Seconds for one operation in the quickest round, by side."""
        return {side: min(times) for side, times in self.samples.items()}

    def lines(self) -> list[str]:
        """The figure as text: a line a side, a line an aim, a line a note."""
        medians = self.medians()
        lines = [self.workload]
        for side, times in self.samples.items():
            low, high = min(times), max(times)
            spread = f"{show(low, self.unit)} .. {show(high, self.unit)} in {len(times)} rounds"
            lines.append(f"  {side:<34} {show(medians[side], self.unit):>10}   {spread}")
        lines += [f"  -> {aim.text(medians, self.best(), self.unit)}" for aim in self.aims]
        lines += [f"     {note}" for note in self.notes]
        return lines

    def as_json(self) -> dict[str, object]:
        """The figure for a result file; seconds, or bytes, throughout."""
        medians = self.medians()
        return {
            "workload": self.workload,
            "unit": self.unit,
            "medians": medians,
            "samples": self.samples,
            "aims": [aim.as_json(medians, self.best()) for aim in self.aims],
            "notes": self.notes,
        }


def show(value: float, unit: Unit, signed: bool = False) -> str:
    """A time, or bytes in millions."""
    return show_time(value, signed) if unit == "s" else f"{value / 1e6:.3g} MB"


def show_time(seconds: float, signed: bool = False) -> str:
    """Seconds with a fitting unit and three digits."""
    sign = "+" if signed and seconds >= 0 else ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{sign}{seconds / size:.3g} {unit}"
    return f"{sign}{seconds / 1e-9:.3g} ns"


def table(
    facts: dict[str, str], warnings: Iterable[str], figures: Iterable[Figure], failed: int
) -> str:
    """The whole report as text; `failed` workloads have no figure because a result was wrong."""
    figures = list(figures)
    lines = [f"{name + ':':<14} {text}" for name, text in facts.items()]
    lines += [f"WARNING: {text}" for text in warnings]
    for figure in figures:
        lines += ["", *figure.lines()]
    aims = [(figure, aim) for figure in figures for aim in figure.aims]
    met = sum(aim.is_met(figure.medians()) for figure, aim in aims)
    verdict = "all results right" if failed == 0 else f"{failed} WITH WRONG RESULTS or errors"
    lines += ["", f"{met} of {len(aims)} aims met, {len(figures)} workloads, {verdict}"]
    return "\n".join(lines)


def save(
    path: Path,
    facts: dict[str, str],
    warnings: Iterable[str],
    figures: Iterable[Figure],
    failed: int,
) -> None:
    """Writes a result file: environment, figures, samples, and how many workloads have failed."""
    content = {
        "environment": facts,
        "warnings": list(warnings),
        "failed": failed,
        "figures": [figure.as_json() for figure in figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
