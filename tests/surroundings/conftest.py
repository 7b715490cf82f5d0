"""Names the tests of the layer that could not be made on this machine, at the end of the output."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what was not possible here, a line each."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if "not possible here" in reason:
            terminalreporter.write_line(f"{report.nodeid}: {reason}")
