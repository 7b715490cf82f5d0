"""Request and reply between two processes, with a temporary queue for the replies.

The client creates its reply queue by opening a model queue; the queue is deleted with its handle.
The server answers with the identifiers and the priority that the request asks for.

    python examples/request_reply.py

prints

    2 + 3 = 5
"""

from __future__ import annotations

import multiprocessing

import penstock


def server(name: str) -> None:
    """Answers one request."""
    with penstock.connect(name) as qm, qm.open("SUMS") as requests:
        request = requests.get(wait=10)
        numbers = [int(word) for word in request.data.split()]
        qm.reply(request, str(sum(numbers)).encode())


def main() -> None:
    """Asks for a sum."""
    with penstock.connect("OFFICE", create=True) as qm, qm.queue("SUMS") as requests:
        process = multiprocessing.get_context("spawn").Process(target=server, args=("OFFICE",))
        process.start()
        with qm.open("SYSTEM.DEFAULT.MODEL.QUEUE", dynamic_name="REPLIES.*") as replies:
            asked = requests.put(b"2 3", persistent=False, expiry=30, reply_to_q=replies.name)
            answer = replies.get(wait=10, correl_id=asked.msg_id)
            print("2 + 3 =", answer.data.decode())
        process.join()


if __name__ == "__main__":
    main()
