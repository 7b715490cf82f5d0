"""Message batches: many messages in two arrays, put and got by one call each.

A :class:`MessageBatch` has a structured array of descriptors, one row a message, and all bodies in
one array of bytes with int64 offsets: body ``i`` is ``bodies[offsets[i]:offsets[i + 1]]``. It is an
Arrow struct array for every library that knows the Arrow C data interface
(``pyarrow.record_batch(batch)``): descriptor fields become columns, which are copied, the bodies
are the column ``body``, which is not.

``import penstock`` does not load NumPy: ``Queue.put_batch``, ``Queue.get_batch`` and their like
import this package when they are called. The binding makes batches itself on its quick path, so
the classes are registered with it here.
"""

from __future__ import annotations

import numpy as np

from .. import _engine
from .arrow_columns import ArrowColumns
from .bodies import refuse_offsets
from .get import get_rest
from .message_batch import BatchResult, MessageBatch, check_array
from .row_layout import DTYPE

__all__ = ["DTYPE", "ArrowColumns", "BatchResult", "MessageBatch"]

_engine.register_batch_classes(
    np.ndarray, DTYPE, np.dtype(np.uint8), np.dtype(np.int64), MessageBatch, BatchResult,
    get_rest, refuse_offsets, check_array,
)  # fmt: skip
