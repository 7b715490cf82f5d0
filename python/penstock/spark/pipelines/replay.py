"""Messages of any past interval of the journal, put back on a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import penstock

from .journal import COMMITTED, RECORD, ended_units, read_journal, with_outcome
from .options import ReplayOptions, read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Replayed", "messages_to_replay", "replay"]

KEPT: Mapping[str, str] = {
    "msg_id": "binary",
    "correl_id": "binary",
    "group_id": "binary",
    "msg_seq_number": "int",
    "priority": "int",
    "persistent": "boolean",
    "format": "string",
    "ccsid": "int",
    "encoding": "int",
    "msg_type": "int",
    "reply_to_q": "string",
    "reply_to_qmgr": "string",
    "body": "binary",
}
"""Fields that a replayed message keeps. It gets a new put time and no expiry."""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay: messages in its interval and bytes of their bodies."""

    messages: int
    bytes: int


def replay(spark: SparkSession, options: Mapping[str, Any]) -> Replayed:
    """Puts the committed messages of the interval again, in their old order, in one unit of work.

    A message belongs to the interval by the time, or the LSN, of its put record, also when it was
    taken or has expired since.

    Args:
        spark: The session; its workers are on the queue manager's machine.
        options: See ``ReplayOptions``.

    Raises:
        OptionError: An option is wrong.
        MQError: The queue for the messages does not exist, or cannot be used; it is opened before
            the journal is read, which may take minutes.
    """
    from pyspark.sql import Observation

    chosen = read_options(ReplayOptions, options)
    with penstock.connect(chosen.queue_manager, chosen.home) as qm:
        qm.open(chosen.to or chosen.queue, input=False, browse=False).close()
    everything = read_journal(spark, chosen.source, RECORD)
    chosen_part = read_journal(spark, {**chosen.source, **chosen.interval}, {**RECORD, **KEPT})
    messages = messages_to_replay(chosen_part, ended_units(everything), chosen.queue)
    seen = Observation()
    length = F.coalesce(F.sum(F.octet_length("body")), F.lit(0)).alias("bytes")
    once = {"txnAppId": chosen.name, "txnVersion": "1"} if chosen.name else {}
    (
        messages.observe(seen, F.count(F.lit(1)).alias("messages"), length)
        .write.format("penstock")
        .options(**chosen.place, queue=chosen.to or chosen.queue, **once)
        .mode("append")
        .save()
    )
    found = seen.get
    return Replayed(int(found["messages"]), int(found["bytes"]))


def messages_to_replay(records: DataFrame, units: DataFrame, queue: str) -> DataFrame:
    """Committed messages among the records, in the order in which they were put, one partition.

    Args:
        records: Columns as in ``RECORD`` and ``KEPT``.
        units: Outcomes of units of work, from ``ended_units`` of the whole journal.
        queue: Only of this queue.
    """
    puts = records.where((F.col("event") == "PUT") & (F.col("queue") == queue))
    committed = with_outcome(puts, units).where(F.col("outcome") == COMMITTED)
    return committed.repartition(1).sortWithinPartitions("lsn").select(*KEPT)
