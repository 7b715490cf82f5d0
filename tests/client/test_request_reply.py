"""Request and reply: to each his own reply, none to nobody, none that stays when its time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Message, Queue, QueueManager

REQUEST, PASS_EXPIRY = 1, 16384  # MQMT_REQUEST, MQRO_PASS_DISCARD_AND_EXPIRY


@pytest.fixture
def serving(qm: QueueManager, queue: Queue) -> Iterator[Callable[..., None]]:
    """Starts a server of the queue in a thread; its exception is the test's."""
    with ThreadPoolExecutor(8) as threads:
        started = []

        def start(handler: Callable[[Message], Any], limit: int = 1) -> None:
            started.append(threads.submit(queue.serve, handler, wait=30, limit=limit))

        yield start
        for future in started:
            future.result(30)


def test_a_request_returns_the_reply_to_it(queue: Queue, serving: Callable[..., None]) -> None:
    seen: list[Message] = []

    def add(message: Message) -> str:
        seen.append(message)
        return str(sum(message.json()))

    serving(add)
    reply = queue.request(json=[2, 3], timeout=30, priority=4)
    assert (reply.text, reply.priority, reply.persistent) == ("5", 4, False)
    (request,) = seen
    assert reply.correl_id == request.msg_id
    assert (request.msg_type, request.report, request.priority) == (REQUEST, PASS_EXPIRY, 4)
    assert request.expiry is not None and 0 < request.expiry <= 30
    assert reply.expiry is not None and 0 < reply.expiry <= 30
    assert request.reply_to_q.startswith("REPLIES.")
    assert len(queue) == 0


def test_a_request_is_not_persistent_and_one_without_a_limit_does_not_expire(
    qm: QueueManager, serving: Callable[..., None], queue: Queue
) -> None:
    qm.alter("QLOCAL", "Q", defpsist=True)
    serving(lambda message: f"{message.persistent} {message.expiry}")
    assert queue.request("?", timeout=None).text == "False None"


def test_threads_of_a_connection_get_each_its_own_replies(
    queue: Queue, serving: Callable[..., None]
) -> None:
    clients, each = 4, 100
    for _ in range(2):
        serving(lambda message: message.text[::-1], clients * each // 2)
    wrong: list[Any] = []

    def ask(client: int) -> None:
        for number in range(each):
            body = f"{client}.{number}"
            reply = queue.request(body, timeout=30)
            if reply.text != body[::-1]:
                wrong.append((body, reply.text))

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(queue) == 0


def test_a_connection_makes_one_reply_queue_which_ends_with_it(
    qm: QueueManager, home: Path, queue: Queue, serving: Callable[..., None]
) -> None:
    serving(lambda message: message.reply_to_q, 3)
    with penstock.connect("QM1", home) as other, other.open("Q") as requests:
        names = {requests.request("?", timeout=30).text for _ in range(2)}
        assert len(names) == 1
        assert queue.request("?", timeout=30).text not in names
        assert qm.look_up(1, *names) is not None
    assert qm.look_up(1, *names) is None


def test_a_shared_reply_queue_may_hold_persistent_replies(
    qm: QueueManager, queue: Queue, serving: Callable[..., None]
) -> None:
    serving(lambda message: message.data, 2)
    with qm.queue("ANSWERS") as answers:
        answers.put("somebody else's")
        for persistent in (True, False):
            reply = queue.request("?", timeout=30, reply_to=answers, persistent=persistent)
            assert (reply.data, reply.persistent) == (b"?", persistent)
        assert [message.text for message in answers] == ["somebody else's"]


def test_a_request_within_a_transaction_does_not_wait_for_its_commit(
    qm: QueueManager, queue: Queue, serving: Callable[..., None]
) -> None:
    serving(lambda message: "at once")
    with pytest.raises(LookupError), qm.transaction() as unit:
        assert queue.request("?", timeout=30).text == "at once"
        assert unit.count == 0
        raise LookupError
    assert len(queue) == 0


# ---- time ----


def test_a_request_without_a_reply_times_out_and_expires(queue: Queue) -> None:
    with pytest.raises(TimeoutError, match=r"queue Q: no reply came within 0.01 s") as caught:
        queue.request("?", timeout=0.01)
    assert isinstance(caught.value, penstock.WaitTimedOut)
    assert caught.value.reason == 2033
    left = [message.expiry for message in queue]
    assert all(expiry is not None and expiry <= 0.1 for expiry in left)


def test_a_late_reply_expires_and_is_not_taken_for_another(qm: QueueManager, queue: Queue) -> None:
    with qm.queue("ANSWERS") as answers, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(queue.request, "first", timeout=0.3, reply_to=answers)
        first = queue.get(wait=30)
        with pytest.raises(penstock.WaitTimedOut):
            asked.result(30)
        qm.reply(first, "late")
        asked = thread.submit(queue.request, "second", timeout=30, reply_to=answers)
        second = queue.get(wait=30)
        qm.reply(second, "in time")
        assert asked.result(30).text == "in time"
        left = [(message.text, message.expiry) for message in answers]
        assert all(text == "late" and expiry is not None and expiry <= 0.3 for text, expiry in left)


def test_serve_ends_when_nothing_came_or_after_its_limit(queue: Queue) -> None:
    assert queue.serve(bytes, wait=0) == 0
    for _ in range(3):
        queue.put("?")
    assert queue.serve(bytes, wait=0, limit=0) == 0
    assert queue.serve(bytes, wait=0, limit=2) == 2
    assert queue.serve(bytes, wait=0) == 1


# ---- the server ----


def test_a_handler_that_fails_gives_the_request_back_with_all_it_did(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.queue("SIDE") as side, qm.queue("ANSWERS") as answers:
        queue.put("?", reply_to_q="ANSWERS")

        def fail(message: Message) -> str:
            side.put("from the handler")
            raise LookupError(message.text)

        with pytest.raises(LookupError, match=r"\?"):
            queue.serve(fail)
        assert (len(side), len(answers)) == (0, 0)
        (again,) = list(queue)
        assert again.backout_count == 1

        def work(message: Message) -> str:
            side.put("from the handler")
            return "done"

        assert queue.serve(work, limit=1) == 1
        assert [len(side), len(queue)] == [1, 0]
        assert answers.get().text == "done"


def test_nobody_is_answered_who_does_not_ask_or_has_gone(
    qm: QueueManager, home: Path, queue: Queue
) -> None:
    with qm.queue("ANSWERS") as answers:
        queue.put("a datagram")
        queue.put("one that gets None", reply_to_q="ANSWERS")
        with penstock.connect("QM1", home) as other:
            model = "SYSTEM.DEFAULT.MODEL.QUEUE"
            with other.open(model) as gone, other.open("Q") as requests:
                requests.put("from one who has gone", reply_to_q=gone.name)
        bodies: list[str] = []

        def handle(message: Message) -> str | None:
            bodies.append(message.text)
            return None if "None" in message.text else "an answer"

        assert queue.serve(handle, wait=0) == 3
        assert bodies == ["a datagram", "one that gets None", "from one who has gone"]
        assert (len(answers), len(queue)) == (0, 0)


def test_a_reply_that_cannot_be_put_is_an_error_and_the_request_stays(
    qm: QueueManager, queue: Queue
) -> None:
    qm.define("QLOCAL", "FULL", maxdepth=1)
    with qm.open("FULL") as full:
        full.put("x")
    queue.put("?", reply_to_q="FULL")
    with pytest.raises(penstock.QueueFull):
        queue.serve(bytes, limit=1)
    assert len(queue) == 1


# ---- what is refused ----


@pytest.mark.parametrize(
    ("timeout", "kind"),
    [
        (0, penstock.InvalidValue),
        (-1, penstock.InvalidValue),
        (float("nan"), penstock.InvalidValue),
        ("1", penstock.InvalidType),
        (True, penstock.InvalidType),
    ],
)
def test_a_timeout_that_is_none_is_refused(
    queue: Queue, timeout: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"\(2090\): timeout ") as caught:
        queue.request("?", timeout=timeout)
    assert repr(timeout) in str(caught.value)
    assert len(queue) == 0


@pytest.mark.parametrize(
    "field", ["msg_type", "report", "reply_to_q", "reply_to_qmgr", "syncpoint"]
)
def test_fields_that_make_a_request_are_its_own(queue: Queue, field: str) -> None:
    with pytest.raises(penstock.InvalidType, match=rf"\(2046\): request\(\) chooses {field} "):
        queue.request("?", timeout=1, **{field: None})
    assert len(queue) == 0


def test_what_cannot_be_answered_is_refused_before_it_is_put(
    qm: QueueManager, queue: Queue
) -> None:
    with pytest.raises(penstock.PersistentNotAllowed, match="reply_to"):
        queue.request("?", timeout=1, persistent=True)
    answers = qm.queue("ANSWERS")
    answers.close()
    with pytest.raises(penstock.ClosedHandle, match="ANSWERS"):
        queue.request("?", timeout=1, reply_to=answers)
    with pytest.raises(penstock.InvalidType, match="at least 1"):
        queue.request(timeout=1)
    with pytest.raises(penstock.InvalidType, match=r"handler is a callable, not str"):
        queue.serve("?", wait=0)  # type: ignore[arg-type]
    assert len(queue) == 0


def test_a_signal_handler_may_request_while_the_first_request_begins(
    queue: Queue, serving: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = QueueManager.open

    def interrupted(*given: Any, **named: Any) -> Queue:
        monkeypatch.setattr(QueueManager, "open", opened)
        assert queue.request("in the handler", timeout=30).text == "done: in the handler"
        return opened(*given, **named)

    monkeypatch.setattr(QueueManager, "open", interrupted)
    serving(lambda message: f"done: {message.text}", 2)
    assert queue.request("interrupted", timeout=30).text == "done: interrupted"


def test_a_request_whose_reply_could_not_be_got_is_refused_before_it_is_put(
    qm: QueueManager, queue: Queue
) -> None:
    refused = pytest.raises(penstock.InvalidValue, match="another queue manager")
    with penstock.temporary() as other, other.queue("R") as elsewhere, refused:
        queue.request("?", timeout=1, reply_to=elsewhere)
    qm.queue("R").close()
    with qm.open("R", input=False) as output, pytest.raises(penstock.NotOpenFor, match="input"):
        queue.request("?", timeout=1, reply_to=output)
    with pytest.raises(penstock.InvalidType, match="str: 'R'"):
        queue.request("?", timeout=1, reply_to="R")  # type: ignore[arg-type]
    assert len(queue) == 0


def test_a_queue_of_another_connection_takes_replies_however_its_home_was_spelled(
    qm: QueueManager, queue: Queue, serving: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(qm.path.parent)
    with penstock.connect(qm.name, tmp_path / "link") as other, other.queue("R") as replies:
        serving(lambda message: "done")
        assert queue.request("?", timeout=30, reply_to=replies).text == "done"


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 10**30, float("nan"), 2**31 / 10])
def test_a_timeout_that_no_expiry_can_have_is_refused_by_its_name(
    queue: Queue, timeout: float
) -> None:
    with pytest.raises(penstock.InvalidValue, match="timeout"):
        queue.request("?", timeout=timeout)
    assert len(queue) == 0


def test_the_shortest_timeout_is_one(queue: Queue) -> None:
    with pytest.raises(penstock.WaitTimedOut):
        queue.request("?", timeout=1e-9)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "a", float("nan")])
def test_a_limit_of_a_server_is_a_number_of_requests(queue: Queue, limit: Any) -> None:
    with pytest.raises(penstock.InvalidValue, match="limit"):
        queue.serve(lambda message: None, limit=limit, wait=0)
