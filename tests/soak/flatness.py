"""Is a series of samples flat? The verdict of a soak run.

The samples after a warm-up are cut into windows of equal length, each window is represented by its
median, and the slope is the median of the slopes of all pairs of windows (Theil and Sen): a third
of the windows may be wrong without moving it. What the slope makes of the whole run is compared
with what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

WINDOWS = 12
WARM_UP = 0.25  # of the samples: memory reaches its highest need, caches fill


@dataclass(frozen=True)
class Tolerance:
    """How far a series may move over a whole run.

    share: of its level; at_least: in the unit of the series, for series near zero; falling: a fall
    counts, not a rise (a rate).
    """

    share: float
    at_least: float
    falling: bool = False


@dataclass(frozen=True)
class Verdict:
    """The level of a series (median of its windows), and its move over the run, by its slope."""

    level: float
    move: float
    allowed: float
    flat: bool


def windows(samples: Sequence[float], count: int = WINDOWS) -> list[float]:
    """The medians of `count` windows of the samples after the warm-up."""
    kept = samples[int(len(samples) * WARM_UP) :]
    if len(kept) < count:
        raise ValueError(f"{len(kept)} samples after the warm-up, {count} windows need one each")
    edges = [len(kept) * i // count for i in range(count + 1)]
    return [median(kept[low:high]) for low, high in pairwise(edges)]


def slope(values: Sequence[float]) -> float:
    """The median of the slopes of all pairs, a step."""
    return median((values[j] - values[i]) / (j - i) for i, j in combinations(range(len(values)), 2))


def judge(samples: Sequence[float], tolerance: Tolerance) -> Verdict:
    """The verdict on a series sampled at equal distances."""
    medians = windows(samples)
    level = median(medians)
    move = slope(medians) * (len(medians) - 1)
    allowed = max(abs(level) * tolerance.share, tolerance.at_least)
    return Verdict(level, move, allowed, (-move if tolerance.falling else move) <= allowed)
