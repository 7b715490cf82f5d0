"""Files of messages: what ``penstock unload`` writes and ``penstock load`` reads.

* :mod:`.json_lines`: one message a line, between a header line and an end line.
* :mod:`.parquet_files`: a directory of Parquet files, for PyArrow, Spark and their like.
* :mod:`.selection`: which messages.

A file has an identity, 32 hexadecimal digits in its header. The writers and readers know how far a
file goes as a *position*, JSON data that the ledger of client/transfer_ledger.py keeps.
"""

from __future__ import annotations

from .errors import MessageFileError

__all__ = ["MessageFileError"]
