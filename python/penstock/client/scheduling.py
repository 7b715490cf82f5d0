"""Schedules, as methods of a queue manager."""

from __future__ import annotations

from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta
    from typing import Any

    from .occurrences import Missed
    from .schedules import Schedule


class Scheduling(Attachment):
    """The part of :class:`penstock.QueueManager` that keeps and runs schedules."""

    def schedule(
        self,
        name: str,
        queue: str,
        *,
        put: bytes | str | Mapping[str, Any] = b"",
        every: float | timedelta | None = None,
        cron: str | None = None,
        zone: str | None = None,
        start: datetime | None = None,
        missed: Missed = "one",
        grace: float = 60.0,
    ) -> Schedule:
        """Makes a schedule, or changes the one of that name: from its next occurrence on jobs are
        put as said here. It is durable on return. Jobs are put while some process runs schedules
        (:meth:`run_schedules`, ``penstock schedule run``).

        Args:
            name: 1 to 100 printable characters.
            queue: of the jobs.
            put: the body of a job, or arguments of ``Queue.put``: data, json, priority, persistent
                (True unless said), expiry, correl_id, format, reply_to_q.
            every: seconds from one job to the next, counted from ``start``.
            cron: instead: five fields, as crontab(5) has them; needs the extra ``schedule``.
            zone: of cron: a name of the time zone database; None: UTC.
            start: with every: the first occurrence that counts, now if None. With a time zone.
            missed: what becomes of occurrences that passed while nobody ran schedules: "one" job
                for all of them, "all", or "skip": none, unless the last one is at most ``grace``
                seconds old.
            grace: seconds.

        Raises:
            InvalidType, InvalidValue: 2046: an argument that is none.
            UnknownObjectName: 2085: there is no such queue.
            MQError: what the put of a job raises, but for a queue that is full or closed now.
        """
        from .schedules import set_schedule

        times = every, cron, zone, start
        return set_schedule(self, name, queue, put, times, missed, grace)  # type: ignore[arg-type]

    def schedules(self) -> list[Schedule]:
        """All schedules, by name."""
        from .schedules import every_schedule

        return every_schedule(self)  # type: ignore[arg-type]

    def delete_schedule(self, name: str) -> None:
        """Deletes a schedule; a job that a runner is putting at this moment may still come.

        Raises:
            UnknownObjectName: 2085: there is none of that name.
        """
        from .schedules import delete

        delete(self, name)  # type: ignore[arg-type]

    def run_schedules(self, wait: float | None = None, limit: int | None = None) -> None:
        """Puts the jobs of all schedules when they are due, until SIGTERM or SIGINT. Any number of
        processes may run them at once: each job is put once.

        A job that cannot be put is logged (logger ``penstock``), and tried again after 1, 2, 4, ...
        60 seconds.

        Args:
            wait: ends when nothing was due for so many seconds; 0: when nothing is due now.
            limit: ends after so many occurrences.
        """
        from .schedules import open_ticks, runner

        with open_ticks(self) as ticks:  # type: ignore[arg-type]
            runner(self, ticks, wait, limit).run()  # type: ignore[arg-type]
