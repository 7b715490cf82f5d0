"""The session that examples, tests and small jobs work in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.local import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_local_session_keeps_utc_and_few_partitions_and_shows_no_page(
    spark: SparkSession,
) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.uiWebUrl is None


def test_there_is_one_session_and_its_settings_can_be_added_to(spark: SparkSession) -> None:
    assert local_session(settings={"penstock.test": "7"}) is spark
    assert spark.conf.get("penstock.test") == "7"
    spark.conf.unset("penstock.test")
