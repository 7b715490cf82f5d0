"""A connection's attachment to its queue manager: connecting, leaving, ending."""

from __future__ import annotations

from contextlib import suppress

from .. import _engine
from .._mqi_constants.selectors import MQIA_START_STOP_EVENT
from .._mqi_constants.values import MQEVR_ENABLED
from ..admin.directory import Home, directory_of, settings_of
from ..constants import NAME_SPACE_QUEUE_MANAGERS, NAME_SPACE_QUEUES, ReasonCode
from ..errors import InvalidValue, MQError, WrongEnvironment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import ClassVar

    from typing_extensions import Self

    from ..admin.settings import Settings

_START_EVENTS = "SYSTEM.ADMIN.QMGR.EVENT"  # the queue of start and stop events
_END_MODES = ("controlled", "wait", "immediate", "preemptive")


class Attachment(_engine.Connection):
    """A connection of this process to a queue manager; a context manager.

    Attributes:
        path: the queue manager's directory.
        platform: "unix" or "zos".
    """

    path: Path
    platform: str
    _tuning: ClassVar[Mapping[str, int]] = {}  # settings of the core beside those of qm.toml

    def __init__(
        self,
        name: str,
        home: Home = None,
        *,
        keeper: bool = False,
        control: bool = False,
        keep_mapping: bool = False,
    ) -> None:
        """Connects. See :func:`penstock.connect`."""
        from ..admin.settings import SettingsError, for_engine
        from .identity_context import identity

        self.path = directory_of(name, home)
        settings = self._read_settings(name)
        try:
            options = for_engine(settings)
        except SettingsError as error:  # its group
            raise WrongEnvironment(
                ReasonCode.ENVIRONMENT_ERROR, f"queue manager {name}: {error}"
            ) from error
        asked = {"keeper": keeper, "control": control, "keep_mapping": keep_mapping}
        options.update(self._tuning)
        options.update({option: 1 for option, wanted in asked.items() if wanted})
        self.platform = settings.platform
        super().__init__(self.path, options, identity())
        self._make_system_objects(settings)
        if self.attach_info["np_discarded"]:
            from .._logging import discarded_at_restart

            discarded_at_restart(name, self.attach_info["np_discarded"])
        if self.attach_info["first"] and self._tells_of_starts():
            from .start_stop_events import started

            started(self, self.platform, _START_EVENTS)

    def _read_settings(self, name: str) -> Settings:
        """The settings in the directory."""
        return settings_of(name, self.path)

    def _make_system_objects(self, settings: Settings) -> None:
        """At the first start: defines the SYSTEM objects; closes when that fails."""
        if self.look_up(NAME_SPACE_QUEUE_MANAGERS, self.name) is not None:
            return
        from ..objects.system import make_missing

        try:
            make_missing(self, settings)
        except BaseException:
            self.detach()
            raise

    def __enter__(self) -> Self:
        """The connection itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes: commits pending work, or backs it out when an exception leaves the block."""
        self.detach(commit=kind is None)

    def close(self) -> None:
        """Closes queues and connection; nothing when it is closed already.

        Commits the units of work begun with ``syncpoint=True``, as MQDISC does. Transactions of
        other threads and tasks, whose blocks have not ended, are backed out, and so is what
        ``unit()`` made and nobody has ended.
        """
        self.detach()

    def end(self, mode: str = "controlled") -> None:
        """Asks every process to leave the queue manager; this one still has to close().

        Args:
            mode: "controlled" or "wait": new work fails with 2161; "immediate": every call fails
                with 2162; "preemptive": with 2009, and no non-persistent message is kept.
        """
        if mode not in _END_MODES:
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR, f"mode {mode!r} is not one of {', '.join(_END_MODES)}"
            )
        with suppress(MQError):  # an end is asked for, whatever the state it finds
            self._tell_of_end(mode)
        self.request_end(_END_MODES.index(mode))

    def _tell_of_end(self, mode: str) -> None:
        """Puts the stop event, but not where it would wait for a process that is stopped."""
        if not self.held_locks() and self._tells_of_starts():
            from .start_stop_events import ending

            ending(self, self.platform, _START_EVENTS, mode)

    def _tells_of_starts(self) -> bool:
        """Whether there are start and stop events, and somebody has defined their queue."""
        enabled = self.own_attribute(MQIA_START_STOP_EVENT, MQEVR_ENABLED) == MQEVR_ENABLED
        return enabled and self.look_up(NAME_SPACE_QUEUES, _START_EVENTS) is not None

    def __repr__(self) -> str:
        """``<QueueManager QM1>``."""
        return f"<{type(self).__name__} {self.name}{', closed' if self.closed else ''}>"
