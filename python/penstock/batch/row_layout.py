"""The row of a message in a batch: ``struct mqe_item`` of the core as a NumPy dtype."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SIZE = 416  # of struct mqe_item of the core
FIELDS: tuple[tuple[str, str, int], ...] = (  # name, format, offset
    ("msg_id", "S24", 0),
    ("correl_id", "S24", 24),
    ("put_time", "<M8[us]", 48),
    ("expiry_us", "<u8", 56),
    ("priority", "<i4", 64),
    ("report", "<i4", 68),
    ("msg_type", "<i4", 72),
    ("feedback", "<i4", 76),
    ("encoding", "<i4", 80),
    ("ccsid", "<i4", 84),
    ("format", "S8", 88),
    ("put_appl_type", "<i4", 96),
    ("user_identifier", "S12", 100),
    ("put_appl_name", "S28", 112),
    ("appl_origin_data", "S4", 140),
    ("accounting_token", "S32", 144),
    ("persistence", "u1", 176),
    ("placement", "u1", 177),
    ("has_ext", "u1", 178),
    ("md_version", "u1", 179),
    ("backout_count", "<u4", 180),
    ("due_us", "<u8", 184),
    ("reply_to_q", "S48", 192),
    ("reply_to_qmgr", "S48", 240),
    ("appl_identity_data", "S32", 288),
    ("group_id", "S24", 320),
    ("msg_seq_number", "<i4", 344),
    ("offset", "<i4", 348),
    ("msg_flags", "<i4", 352),
    ("original_length", "<i4", 356),
    ("number", "<u8", 384),
    ("lsn", "<u8", 392),
    ("expiry", "<i4", 400),
    ("length", "<u4", 404),
    ("reason", "<i4", 408),
)
Rows = npt.NDArray[np.void]
DTYPE: np.dtype[np.void] = np.dtype(
    {
        "names": [name for name, _, _ in FIELDS],
        "formats": [form for _, form, _ in FIELDS],
        "offsets": [offset for _, _, offset in FIELDS],
        "itemsize": _SIZE,
    }
)
"""The row of a message: struct mqe_item. Identifiers are NUL-padded, other characters blank-padded;
``put_time`` is UTC; ``expiry`` tenths of a second left, -1 unlimited; ``expiry_us`` the time of
expiry in microseconds since 1970, 0 = none; ``due_us`` the same of the time before which no get
finds it; ``number`` the message number; ``lsn`` the position of
the message in the journal, 0 = not in it; ``reason`` 0 or 2049 (of a put)."""
