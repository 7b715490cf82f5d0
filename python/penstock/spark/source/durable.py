"""How far the journal is durable, for a stream that reads the files beside the queue manager.

A reader that is attached sees the durable LSN at once; the files have it within a tenth of a
second, and all of it after an orderly end. So this process attaches while others are attached, and
leaves when it is the only one: a stream over the journal neither starts a queue manager nor keeps
one running.

A connection that the queue manager ended counts as none.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock import _engine
from penstock.journal.segment_range import SegmentRange

from ..base.connection import connect, leave
from ..base.errors import SourceError
from ..base.options import Options

if TYPE_CHECKING:
    from penstock import QueueManager

__all__ = ["DurableJournal"]

_PAUSE = 0.1  # seconds between two looks at the files of a queue manager that is not running


class DurableJournal:
    """The durable part of a queue manager's journal, listed again when it has grown."""

    def __init__(self, directory: Path, options: Options) -> None:
        self._directory, self._options = directory, options
        self._qm: QueueManager | None = None
        self._listed: SegmentRange | None = None
        self._looked = 0.0

    def segments(self) -> SegmentRange:
        """The segments up to what is durable now. Raises DamagedFile, JournalDataLoss."""
        known = self._listed
        lsn = self._durable_lsn()
        if known is not None and lsn and lsn <= known.end_lsn:
            return known
        now = time.monotonic()
        if known is not None and not lsn and now - self._looked < _PAUSE:
            return known
        first = 1 if known is None else known.number_at(known.end_lsn)
        self._listed = SegmentRange(self._directory, durable_lsn=lsn, first=first)
        self._looked = now
        return self._listed

    def close(self) -> None:
        """Disconnects."""
        qm, self._qm = self._qm, None
        if qm is not None:
            with suppress(penstock.MQError):
                leave(qm)

    def _durable_lsn(self) -> int:
        """What the running queue manager says; 0: none runs, the files have everything."""
        try:
            if self._qm is None and _engine.attached_processes(self._directory):
                self._qm = connect(self._options)
            if self._qm is not None:
                status = self._qm.status()
                if status.attached == 1:  # the others have left
                    self.close()
                return status.durable_lsn
        except (penstock.MQError, SourceError):  # it ends, or has ended
            self.close()
        return 0
