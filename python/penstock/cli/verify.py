"""``penstock verify``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import FAILED, count_of, directory_of, manager_argument
from .terminal import echo, json_text


def finding_text(finding: dict[str, Any]) -> str:
    """One finding as a line for users."""
    where = f"{finding['file']} at offset {finding['offset']}"
    return f"{finding['severity']}: {where}: {finding['rule']}: {finding['text']}"


@click.command("verify")
@manager_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object a finding.")
def command(qm: str, home: Path | None, as_json: bool) -> None:
    """Check every file of QM with the second, independent reader; damage is named with file and
    offset.

    Status 0 when a restart will find everything it needs, 2 when there is damage. Never starts the
    queue manager.
    """
    from penstock import journal

    findings = journal.verify(directory_of(qm, home))
    for finding in findings:
        echo(json_text(finding) if as_json else finding_text(finding))
    damage = sum(finding["severity"] == "damage" for finding in findings)
    if damage:
        echo(f"{count_of(damage, 'place')} damaged", err=True)
        raise SystemExit(FAILED)
    if not as_json:
        segments = journal.describe_segments(directory_of(qm, home))
        records = sum(segment["records"] for segment in segments)
        echo(
            f"{qm}: {count_of(len(segments), 'segment')}, {count_of(records, 'record')}, no damage"
        )
