"""A service of requests and replies whose clients learn what becomes of each request.

A request asks for reports on its arrival, its delivery and its expiration, which the queue manager
puts on the queue of the replies, with the MsgId of the request as CorrelId. The service answers two
requests; the third one is for nobody, and expires.

    python examples/request_reports.py

prints

    2 + 3: arrived, delivered, the answer is 5
    4 + 5: arrived, delivered, the answer is 9
    6 + 7: arrived, expired
"""

from __future__ import annotations

import multiprocessing
import time

import penstock
from penstock import mqi

REPORTS = mqi.MQRO_COA | mqi.MQRO_COD | mqi.MQRO_EXPIRATION
SAYS = {mqi.MQFB_COA: "arrived", mqi.MQFB_COD: "delivered", mqi.MQFB_EXPIRATION: "expired"}


def service(name: str) -> None:
    """Answers two requests: each reply is in one unit of work with the get of its request."""
    with penstock.connect(name) as qm, qm.open("SUMS") as requests:
        for request in requests.consume(limit=2, wait=30):
            qm.reply(request, str(sum(request.json())))


def ask(requests: penstock.Queue, numbers: list[int], seconds: float) -> bytes:
    """Puts a request that is worth so many seconds; its MsgId."""
    put = requests.put(
        json=numbers, msg_type=mqi.MQMT_REQUEST, report=REPORTS, reply_to_q="ANSWERS",
        expiry=seconds,
    )  # fmt: skip
    return put.msg_id


def tell(answers: penstock.Queue, msg_id: bytes) -> str:
    """All that came about a request, up to its reply or its end."""
    said: list[str] = []
    while True:
        message = answers.get(wait=30, correl_id=msg_id)
        if message.msg_type == mqi.MQMT_REPLY:
            return ", ".join([*said, f"the answer is {message.text}"])
        said.append(SAYS[message.feedback])
        if message.feedback == mqi.MQFB_EXPIRATION:
            return ", ".join(said)


def main() -> None:
    """Asks three times."""
    with (
        penstock.connect("OFFICE", create=True) as qm,
        qm.queue("SUMS") as requests,
        qm.queue("ANSWERS") as answers,
    ):
        process = multiprocessing.get_context("spawn").Process(target=service, args=("OFFICE",))
        process.start()
        asked = [ask(requests, [2, 3], 60), ask(requests, [4, 5], 60)]
        print("2 + 3:", tell(answers, asked[0]))
        print("4 + 5:", tell(answers, asked[1]))
        process.join()
        late = ask(requests, [6, 7], 0.1)
        time.sleep(0.2)
        assert requests.get(default=None) is None  # it meets the request that is too old
        print("6 + 7:", tell(answers, late))


if __name__ == "__main__":
    main()
