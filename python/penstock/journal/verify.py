"""All checks of the files, reported as findings; none of them stops at the first error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from . import layout as L
from .checkpoint import RESERVE, check_bytes, checkpoint_names
from .errors import DamagedFile, Finding
from .files import FileSet
from .head import read_head
from .messages import check_message
from .replay import Replay
from .segment import Scan, Segment, newest_mark, read_segment, round_up, scan_segment, segment_name
from .store import View, check_end, check_order, read_view, segment_numbers, torn_tail

_SPARE = re.compile(r"(spare|reserve)-[0-9]{10}\.psj")


class Verifier:
    """One pass over all files. ``findings`` grows in the order of the checks."""

    def __init__(self, files: FileSet, qm_id: bytes | None) -> None:
        self.files = files
        self.qm_id = qm_id
        self.findings: list[Finding] = []

    def run(self) -> list[Finding]:
        """Names, headers, checkpoints, chain, batches, records, units, messages."""
        self._lock()
        self._names()
        self._head()
        view = self._view()
        self._checkpoints(view)
        if view is None:
            self._headers()
            return self.findings
        scans = []
        for segment in view.segments:
            scan = self._segment(view, segment)
            if segment.number >= view.replay_from():
                scans.append(scan)
        if not self.damaged():
            self._replay(view, scans)
        return self.findings

    def damaged(self) -> bool:
        """Whether recovery would refuse the files."""
        return any(finding.severity == "damage" for finding in self.findings)

    def _add(self, severity: str, file: str, offset: int, rule: str, text: str) -> None:
        self.findings.append(Finding(file, offset, rule, severity, text))

    def _error(self, error: DamagedFile, severity: str = "damage") -> None:
        text = error.text
        self._add(severity, error.file, error.offset, error.rule, text)

    def _lock(self) -> None:
        """A start takes its locks in this file, so nothing else may stand for it. One that is
        missing is made by the start."""
        try:
            self.files.check_file("lock")
        except DamagedFile as error:
            self._error(error)
        except FileNotFoundError:
            pass

    def _names(self) -> None:
        segments = {segment_name(n) for n in segment_numbers(self.files.names("journal"))}
        for name in self.files.names("journal"):
            path = f"journal/{name}"
            if path in segments or _SPARE.fullmatch(name):
                continue
            self._stray(path)
        checkpoints = set(checkpoint_names(self.files.names("checkpoint")))
        for name in self.files.names("checkpoint"):
            if name not in checkpoints and name != RESERVE:
                self._stray(f"checkpoint/{name}")

    def _stray(self, path: str) -> None:
        if path.endswith(".tmp"):
            self._add("note", path, 0, "file", "half made, deleted at the next checkpoint or start")
        else:
            self._add("warning", path, 0, "file", "does not belong here and is ignored")

    def _head(self) -> None:
        """Without a good page there is no view, which reports that."""
        try:
            bad = read_head(self.files, self.qm_id).damaged
        except DamagedFile:
            return
        if bad is not None:
            text = f"{bad.text} (torn, or changed bytes); the other page counts"
            self._add("note", bad.file, bad.offset, bad.rule, text)

    def _checkpoints(self, view: View | None) -> None:
        """The one in use is checked by the view. Newer ones are damaged; the older one would take
        its place."""
        used = view.checkpoint.file if view is not None and view.checkpoint is not None else ""
        for error in view.passed_over if view is not None else ():
            text = f"{error.text}; a restart uses {used or 'the whole journal'} instead"
            self._add("warning", error.file, error.offset, error.rule, text)
        for name in checkpoint_names(self.files.names("checkpoint")):
            path = f"checkpoint/{name}"
            if not used or path >= used:
                continue
            try:
                check_bytes(path, self.files.read(path, 0, self.files.size(path)))
            except DamagedFile as error:
                text = f"{error.text}; no restart could fall back to it"
                self._add("warning", error.file, error.offset, error.rule, text)

    def _view(self) -> View | None:
        try:
            return read_view(self.files, self.qm_id)
        except DamagedFile as error:
            self._error(error)
            return None

    def _headers(self) -> None:
        """Without a view: each segment by itself, so that all bad files are named."""
        before: Segment | None = None
        for number in segment_numbers(self.files.names("journal")):
            path = segment_name(number)
            try:
                page = self.files.read(path, 0, L.PAGE)
                segment = read_segment(path, page, self.files.size(path), self.qm_id)
                if before is not None and before.number == number - 1:
                    check_order(before, segment)
            except DamagedFile as error:
                finding = Finding.of(error)
                if finding not in self.findings:
                    self.findings.append(finding)
                continue
            before = segment

    def _segment(self, view: View, segment: Segment) -> Scan:
        """Scans one segment; after an invalid batch continues at the next valid one."""
        scan = view.scan(segment)
        self._batches(scan)
        try:
            check_end(scan, view.required_end(segment), view.checkpoint)
        except DamagedFile as error:
            self._error(error)
            self._after_damage(view, scan)
        else:
            tail = torn_tail(scan)
            if tail is not None:
                text = f"torn tail at LSN {tail.lsn}: {tail.text}"
                self._add("note", tail.file, tail.offset, "torn-tail", text)
        return scan

    def _after_damage(self, view: View, scan: Scan) -> None:
        """Reports the other invalid batches below the durable end of the journal."""
        required, checkpoint = view.required_end(scan.segment), view.checkpoint
        known = newest_mark(scan.segment, scan.data, scan.end)[0]
        known = max(known, checkpoint.end_lsn if checkpoint else 0)
        known = known if required is None else required
        at = scan.end + L.PAGE
        while at < scan.limit:
            more = scan_segment(scan.segment, scan.data, start=at, limit=scan.limit)
            self._batches(more)
            if more.written and more.problem is not None and more.end_lsn < known:
                text = more.problem
                self._add("damage", scan.segment.file, more.problem_offset, "batch", text)
            at = more.end + L.PAGE

    def _batches(self, scan: Scan) -> None:
        durable = 0
        for batch, starts in scan.by_batch():
            end = batch.offset + batch.length
            if any(scan.data[end : batch.offset + round_up(batch.length)]):
                text = "the padding is not zero (a torn write, or changed bytes)"
                self._add("note", batch.file, end, "padding", text)
            if batch.durable_lsn < durable:
                text = f"durable mark {batch.durable_lsn} after {durable}"
                self._add("warning", batch.file, batch.offset, "mark", text)
            durable = max(durable, batch.durable_lsn)
            for start in starts:
                self._record(scan, start)

    def _record(self, scan: Scan, start: int) -> None:
        try:
            record = scan.record(start)
            if record.known:
                record.sections()
        except DamagedFile as error:
            self._error(error)
            return
        if not record.known:
            text = f"optional {record.type_name} record is skipped"
            self._add("note", record.file, record.offset, "unknown", text)

    def _replay(self, view: View, scans: list[Scan]) -> None:
        reports: list[tuple[str, DamagedFile]] = []
        replay = Replay(view, lambda severity, error: reports.append((severity, error)))
        try:
            state = replay.run(scans)
        except DamagedFile as error:
            reports.append(("damage", error))
            state = None
        for severity, report in reports:
            self._error(report, severity)
        if state is None:
            return
        names: dict[tuple[int, str, int], int] = {}
        for definition in state.objects.values():
            place = (definition.name_space, definition.name, definition.instance)
            file, offset = definition.file, definition.offset
            if definition.problem:
                text = f"object {definition.name!r}: {definition.problem}"
                self._add("damage", file, offset, "object", text)
            if names.setdefault(place, definition.slot) != definition.slot:
                text = f"object {definition.name!r} is defined in two slots"
                self._add("damage", file, offset, "object", text)
        for unit in state.units:
            segment = view.segment_of(unit.first_lsn)
            file, offset = ("journal", 0)
            if segment is not None:
                file, offset = segment.file, unit.first_lsn - segment.base_lsn
            text = f"unit {unit.unit_id}, {unit.record_count} records, was not committed"
            self._add("note", file, offset, "unit", text)
        for prepared in state.prepared:
            p = prepared.preparation
            text = f"unit {prepared.unit_id} is prepared as {prepared.xid} and waits to be ended: "
            text += f"{p.puts} puts, {p.gets} gets, {p.bytes} bytes"
            self._add("note", prepared.file, prepared.offset, "prepared", text)
        held = (m for unit in state.prepared for _, m in state.prepared_messages(unit))
        for message in chain(state.messages(), held):
            error_found = check_message(message)
            if error_found is not None:
                self._error(error_found)


def damages(findings: list[Finding]) -> Iterator[Finding]:
    """Those for which recovery refuses to open the queue manager."""
    return (finding for finding in findings if finding.severity == "damage")
