"""Options of pipelines: read from a mapping, offered on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
import pytest
from click.testing import CliRunner

from penstock.spark.pipelines.options import OptionError, command_line, option, read_options


@dataclass(frozen=True)
class Some:
    queue_manager: str = option("its name", needed=True)
    most: int = option("how many", 7, kind=int)
    ordered: bool = option("in order", True, kind=bool)
    home: str | None = option("where")


def test_options_are_read_in_any_case_and_have_defaults() -> None:
    assert read_options(Some, {"queuemanager": "QM1"}) == Some("QM1")
    given = {"QUEUEMANAGER": "QM1", "Most": "3", "ordered": "FALSE", "home": "/h"}
    assert read_options(Some, given) == Some("QM1", 3, False, "/h")
    assert read_options(Some, {"queueManager": "QM1", "home": None}).home is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"queueManger": "Q"}, "there is no option queueManger; did you mean queueManager?"),
        ({"zzz": 1}, "there is no option zzz; there are home, most, ordered, queueManager"),
        ({"queueManager": "a", "QUEUEMANAGER": "b"}, "option queueManager is given twice"),
        ({}, "option queueManager is missing: its name"),
        ({"queueManager": "Q", "most": "x"}, "option most is a whole number, not 'x'"),
        ({"queueManager": "Q", "ordered": "yes"}, "option ordered is true or false, not 'yes'"),
    ],
)
def test_a_wrong_option_is_refused_with_one_sentence(given: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(Some, given)
    assert str(caught.value) == text


def test_a_command_offers_each_option_by_its_name() -> None:
    @click.command()
    @command_line(Some)
    def command(**given: Any) -> None:
        click.echo(repr(read_options(Some, given)))

    runner = CliRunner()
    done = runner.invoke(command, ["--queue-manager", "Q", "--most", "9", "--ordered", "false"])
    assert done.output == "Some(queue_manager='Q', most=9, ordered=False, home=None)\n"
    shown = runner.invoke(command, ["--help"]).output
    assert "--queue-manager TEXT" in shown and "how many  [default: 7]" in shown
