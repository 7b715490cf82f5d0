"""Calls in a new thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_thread(call: Callable[[], object]) -> object:
    """The result of `call` in a new thread, or its exception."""
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return outcome[0]
