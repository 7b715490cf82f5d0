"""Record batches are made while earlier ones are sent, and no more of them than said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from penstock.flight.ahead import Ahead

AHEAD = 1


class Source:
    """Makes numbers, and says how many it has made and whether it was closed."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.made, self.is_closed = 0, False
        self._count, self._error = count, error
        self.threads = set[int]()

    def numbers(self) -> Generator[Any, None, None]:
        try:
            for number in range(self._count):
                self.threads.add(threading.get_ident())
                self.made += 1
                yield number
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_all_items_come_once_in_their_order() -> None:
    source = Source(1_000)
    ahead = Ahead(source.numbers())
    assert list(ahead) == list(range(1_000))
    until(lambda: source.is_closed)
    assert list(ahead) == [], "it ends, however often it is asked"


def test_the_first_item_is_made_by_who_asks() -> None:
    source = Source(5)
    ahead = Ahead(source.numbers())
    assert source.made == 0
    assert next(ahead) == 0
    assert source.threads == {threading.get_ident()} and source.made == 1


def test_a_client_that_takes_no_more_holds_one_item() -> None:
    source = Source(100)
    ahead = Ahead(source.numbers())
    assert [next(ahead), next(ahead)] == [0, 1]
    until(lambda: source.made == 2 + AHEAD)
    time.sleep(0.05)
    assert source.made == 2 + AHEAD
    assert next(ahead) == 2
    until(lambda: source.made == 3 + AHEAD)


@pytest.mark.parametrize("taken", [0, 1, 2, 5])
def test_an_answer_that_is_given_up_closes_its_source(taken: int) -> None:
    source = Source(100)
    before = set(threading.enumerate())
    made = source.numbers()
    ahead = Ahead(made)
    assert [next(ahead) for _ in range(taken)] == list(range(taken))
    if taken > 1:
        until(lambda: source.made == taken + AHEAD)
    ahead.close()
    until(lambda: made.gi_frame is None)
    until(lambda: before.issuperset(threading.enumerate()))
    assert source.made <= taken + AHEAD and source.is_closed == (taken > 0)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_error_comes_behind_the_items_before_it(count: int) -> None:
    source = Source(count, OSError("damaged"))
    ahead = Ahead(source.numbers())
    assert [next(ahead) for _ in range(count)] == list(range(count))
    with pytest.raises(OSError, match="damaged"):
        next(ahead)
    assert source.is_closed
    assert list(ahead) == []
