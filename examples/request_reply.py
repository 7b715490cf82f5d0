"""Request and reply between two processes.

``request()`` puts a message and waits for the reply to it, on a temporary queue that the connection
makes for its replies. ``serve()`` answers: what the function returns is the reply.

    python examples/request_reply.py

prints

    2 + 3 = 5
"""

from __future__ import annotations

import multiprocessing

import penstock


def add(request: penstock.Message) -> str:
    """Answers one request."""
    return str(sum(request.json()))


def server(name: str) -> None:
    """Answers requests; here one is enough."""
    with penstock.connect(name) as qm, qm.open("SUMS") as requests:
        requests.serve(add, limit=1)


def main() -> None:
    """Asks for a sum."""
    with penstock.connect("OFFICE", create=True) as qm, qm.queue("SUMS") as requests:
        process = multiprocessing.get_context("spawn").Process(target=server, args=("OFFICE",))
        process.start()
        print("2 + 3 =", requests.request(json=[2, 3], timeout=30).text)
        process.join()


if __name__ == "__main__":
    main()
