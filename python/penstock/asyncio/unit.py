"""Units of work of asyncio tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _engine

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .._engine import AsyncCall, Unit
    from .runner import Runner


class UnitOfWork:
    """What ``qm.transaction()`` and ``qm.unit()`` of penstock.asyncio return.

    As an async context manager it commits at the end of the block, and backs out when an exception
    leaves it. A ``transaction()`` takes the calls of the task that entered it; a ``unit()`` those
    that it is passed to (``q.put(data, unit=unit)``), from any task, one at a time in the order in
    which they are awaited.
    """

    __slots__ = ("__weakref__", "_runner", "_unit")

    def __init__(self, runner: Runner, unit: Unit) -> None:
        self._runner = runner
        self._unit = unit

    @property
    def count(self) -> int:
        """Messages put and got so far."""
        return self._unit.count

    def commit(self) -> AsyncCall[None]:
        """Commits what was done so far. A ``transaction()`` goes on with a new unit of work until
        its block ends; what ``unit()`` made has ended, and what could not be committed is backed
        out.

        Raises:
            BackedOut: 2003: the queue manager had backed it out.
        """
        return _engine.unit_call(self._runner, self._unit, True)

    def backout(self, delay: float | None = None) -> AsyncCall[None]:
        """Backs out what was done so far; with a delay, in seconds, no get finds the messages that
        it had got before that has passed, through restarts, too. A ``transaction()`` goes on with a
        new unit of work until its block ends; what ``unit()`` made has ended.

        Raises:
            InvalidValue: 2026: ``delay`` is not 0 to 100 years.
        """
        return _engine.unit_call(self._runner, self._unit, False, delay)

    async def __aenter__(self) -> UnitOfWork:
        """Begins the block."""
        self._runner.check_loop()
        self._unit.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commits, or backs out when an exception has left the block. A cancellation that comes
        before the commit is decided backs out, and is raised.
        """
        unit = self._unit
        if kind is not None or not unit.is_open:
            unit.__exit__(kind, error, trace)
            return
        try:
            await self.commit()
        except BaseException as failure:
            unit.__exit__(type(failure), failure, failure.__traceback__)
            raise
        unit.__exit__(None, None, None)

    def __repr__(self) -> str:
        """``<UnitOfWork of QM1, 3 messages>``."""
        return f"<UnitOfWork, {self.count} messages>"


def passed(unit: Any) -> Any:
    """The engine's unit of an argument ``unit``."""
    return unit._unit if isinstance(unit, UnitOfWork) else unit
