"""Registers what the compiled binding calls upward: exception classes, and services of the package.

The binding imports nothing of the package. A service imports its module when it is called first, so
that importing penstock stays cheap. Classes over NumPy arrays are registered by ``penstock.batch``,
structures and distribution lists by ``penstock.mqi``.
"""

from __future__ import annotations

from . import _engine, errors

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def _open_queue(*arguments: Any) -> Any:
    from .opening.open_queue import prepare

    return prepare(*arguments)


def _alias_of_reply(connection: Any, name: str) -> tuple[str, str]:
    from .opening.resolution import reply_alias

    return reply_alias(connection, name)


def _discarded_at_end(name: str, count: int) -> None:
    from ._logging import discarded_at_end

    discarded_at_end(name, count)


def _dead_report(*arguments: Any) -> tuple[str, bytes]:
    from .client.report_messages import dead_letter

    return dead_letter(*arguments)


def _lost_report(*arguments: Any) -> None:
    from .client.report_messages import log_lost

    log_lost(*arguments)


def _stream_of(*arguments: Any) -> tuple[str, bool] | None:
    from .client.streams import stream_of

    return stream_of(*arguments)


def _copy_lost(*arguments: Any) -> None:
    from .client.streams import log_lost

    log_lost(*arguments)


def _event_of_queue(*arguments: Any) -> None:
    from .client.performance_events import make

    make(*arguments)


def _trigger_of_put(*arguments: Any) -> tuple[str, bytes] | None:
    from .client.triggers import on_put

    return on_put(*arguments)


def _trigger_made(*arguments: Any) -> None:
    from .client.triggers import made

    made(*arguments)


def _input_opened(qm: Any, name: str) -> None:
    from .client.triggers import on_open

    on_open(qm, name)


def _input_closed(*arguments: Any) -> None:
    from .client.triggers import on_close

    on_close(*arguments)


def _input_waits(qm: Any, name: str) -> None:
    from .client.triggers import on_wait

    on_wait(qm, name)


def _batch_classes() -> None:
    from . import batch  # noqa: F401  it calls _engine.register_batch_classes()


def _option_rules() -> ModuleType:
    from .opening import option_rules

    return option_rules


_engine.register_errors(
    base=errors.MQError,
    for_reason=errors.error_for,
    invalid_type=errors.InvalidType,
    invalid_value=errors.InvalidValue,
    closed_handle=errors.ClosedHandle,
    unknown_xid=errors.UnknownXid,
    xid_in_use=errors.XidInUse,
    wait_timed_out=errors.WaitTimedOut,
)
_engine.register_services(
    open_queue=_open_queue,
    alias_of_reply=_alias_of_reply,
    discarded_at_end=_discarded_at_end,
    dead_report=_dead_report,
    lost_report=_lost_report,
    batch_classes=_batch_classes,
    option_rules=_option_rules,
)
_engine.register_streams(of_queue=_stream_of, lost=_copy_lost)
_engine.register_events(of_queue=_event_of_queue)
_engine.register_triggers(
    of_put=_trigger_of_put,
    made=_trigger_made,
    opened=_input_opened,
    closed=_input_closed,
    waits=_input_waits,
)
