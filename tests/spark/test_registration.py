"""Registration of the format with Spark."""

from __future__ import annotations

import importlib
import sys

import pytest
from pyspark.sql.datasource import DataSource
from spark_fixture import SparkFixture, column

import penstock.spark
from penstock.spark.base import versions
from penstock.spark.base.errors import VersionError


def test_the_format_is_found_without_being_registered_and_can_be_registered(
    spark_qm: SparkFixture, registered: None
) -> None:
    spark_qm.put("Q", b"1")
    assert column(spark_qm.table("Q"), "body") == [b"1"]
    penstock.spark.register(spark_qm.spark)
    penstock.spark.register(spark_qm.spark)
    assert column(spark_qm.table("Q"), "body") == [b"1"]


def test_the_package_that_pyspark_finds_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark_penstock

    assert issubclass(pyspark_penstock.DefaultSource, DataSource)
    monkeypatch.setitem(sys.modules, "penstock.spark.datasource", None)
    monkeypatch.delattr(pyspark_penstock, "DefaultSource")
    assert not hasattr(importlib.reload(pyspark_penstock), "DefaultSource")
    monkeypatch.undo()
    importlib.reload(pyspark_penstock)


def test_an_old_pyspark_is_refused_by_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.LOWEST, "a batch read", (9, 0))
    with pytest.raises(VersionError, match=r"needs PySpark 9\.0 or newer; this is 4\."):
        penstock.spark.register(None)  # type: ignore[arg-type]
