"""An outbox: a change of a database and the message about it, both or neither.

A database and a queue manager do not share a unit of work. The order and its message are therefore
written in one database transaction, the message as a row of the table ``outbox``. A relay puts
the rows on a queue, commits that, and only then deletes them. A relay that is killed in between
puts rows again, with the same MsgId, and the receiver ignores identifiers that it has seen: it
records them in the database transaction that does the work, before it commits the get.

    python examples/outbox.py

kills its first relay between the two commits, and prints

    messages: 10, orders shipped: 5, rows left in the outbox: 0
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import penstock

TABLES = """
CREATE TABLE orders (item TEXT);
CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);
CREATE TABLE shipped (message BLOB PRIMARY KEY, item TEXT);
"""


def order(database: sqlite3.Connection, item: str) -> None:
    """Writes an order and its message in one database transaction."""
    with database:
        database.execute("INSERT INTO orders VALUES (?)", (item,))
        database.execute("INSERT INTO outbox (body) VALUES (?)", (item,))


def relay(name: str, file: Path, killed: bool) -> None:
    """Puts the rows of the outbox, then deletes them."""
    with (
        closing(sqlite3.connect(file)) as database,
        penstock.connect(name) as qm,
        qm.open("ORDERS") as orders,
    ):
        rows = database.execute("SELECT id, body FROM outbox ORDER BY id").fetchall()
        with qm.transaction():
            for number, body in rows:
                orders.put(body.encode(), msg_id=b"ORDER %018d" % number)
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
        with database:
            database.executemany("DELETE FROM outbox WHERE id = ?", [(n,) for n, _ in rows])


def ship(name: str, file: Path) -> int:
    """Ships what was ordered, each order once; returns how many messages came."""
    messages = 0
    with (
        closing(sqlite3.connect(file)) as database,
        penstock.connect(name) as qm,
        qm.open("ORDERS") as orders,
    ):
        while True:
            with qm.transaction():
                message = orders.get(default=None)
                if message is None:
                    return messages
                with database:
                    database.execute(
                        "INSERT OR IGNORE INTO shipped VALUES (?, ?)",
                        (message.msg_id, message.data.decode()),
                    )
            messages += 1


def main() -> None:
    """Orders five items, kills a relay, runs another, and ships."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.db"
        with (
            closing(sqlite3.connect(file)) as database,
            penstock.connect("SHOP", create=True) as qm,
            qm.queue("ORDERS"),
        ):
            database.executescript(TABLES)
            for number in range(5):
                order(database, f"item {number}")
            context = multiprocessing.get_context("spawn")
            for killed in (True, False):
                process = context.Process(target=relay, args=("SHOP", file, killed))
                process.start()
                process.join()
            messages = ship("SHOP", file)
            (shipped,) = database.execute("SELECT count(*) FROM shipped").fetchone()
            (left,) = database.execute("SELECT count(*) FROM outbox").fetchone()
        print(f"messages: {messages}, orders shipped: {shipped}, rows left in the outbox: {left}")


if __name__ == "__main__":
    main()
