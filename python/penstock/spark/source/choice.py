"""Which messages of a queue a batch read is about: the options priority, correlId and fromTime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ALL", "Choice"]


class Choice(NamedTuple):
    """The chosen messages.

    Attributes:
        priority, correl_id: Of that priority, with that correlation identifier; None: any.
        from_us: Put at that moment, microseconds, or later; None: at any time.
    """

    priority: int | None = None
    correl_id: bytes | None = None
    from_us: int | None = None

    def columns(self) -> Iterable[tuple[str, str]]:
        """The columns that are compared, and what they are called here."""
        for name, value in zip(("priority", "correl_id", "put_time"), self, strict=True):
            if value is not None:
                yield name, f"chosen_{name}"

    def others(self, taken: Any) -> Any:
        """Which of these rows are not chosen, a NumPy array of bool; None: all are.

        taken: A ``pyarrow.RecordBatch`` with columns().
        """
        import pyarrow.compute as pc

        masks = []
        if self.priority is not None:
            masks.append(taken.column("chosen_priority").to_numpy() != self.priority)
        if self.correl_id is not None:
            same = pc.equal(taken.column("chosen_correl_id"), self.correl_id)
            masks.append(~same.to_numpy(zero_copy_only=False))
        if self.from_us is not None:
            put = pc.fill_null(taken.column("chosen_put_time").cast("int64"), -1)
            masks.append(put.to_numpy() < self.from_us)
        return np.logical_or.reduce(masks) if masks else None


ALL = Choice()
