"""The Python workers of Spark, which the data source's steps and tasks run in.

Spark keeps its workers, and collects garbage in one after each step that it ran there
(pyspark/daemon.py). That looks at everything which PySpark, pyarrow, NumPy and this package have
imported, on a small job for as long as the job itself takes. So what a worker has imported is made
permanent (``gc.freeze``): collections pass over it.

What else is there at that moment is passed over, too, until the worker ends: it goes away when
nothing refers to it, as always, but not as part of a cycle. So the moment is the beginning of a
step, right behind the collection after the step before, and there are few of them.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["is_worker", "keep_imports"]

_DAEMON = "pyspark.daemon"  # the program whose children collect
_MOST = 4  # the kinds of steps, which import different modules

_frozen_after: list[int] = []  # full collections before each freeze


def is_worker() -> bool:
    """Whether this process is a worker that Spark keeps for more than one step."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == _DAEMON


def keep_imports() -> None:
    """At the beginning of a step: makes permanent what the worker has imported. Nothing in a
    process of the user, and once the worker has seen a few steps.
    """
    if len(_frozen_after) == _MOST or not is_worker():
        return
    collections = gc.get_stats()[-1]["collections"]
    if collections not in _frozen_after:
        _frozen_after.append(collections)
        gc.freeze()
