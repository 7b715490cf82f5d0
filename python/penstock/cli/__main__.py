"""Entry of the ``penstock`` command. A subcommand's module is imported when it is called, not
before.
"""

from __future__ import annotations

import importlib
import sys

import click

from .common import run_to_status

# subcommand -> its line in the overview; the module has the same name
COMMANDS = {
    "create": "Make a queue manager.",
    "start": "Keep a queue manager running without an application.",
    "end": "End a queue manager: ask all processes to disconnect.",
    "list": "Name the queue managers.",
    "delete": "Remove a queue manager and all its messages.",
    "mqsc": "Run MQSC commands.",
    "dump": "Print all definitions as MQSC commands.",
    "cfstruct": "List structures of the coupling facility, or let one fail.",
    "put": "Put lines as messages.",
    "get": "Take messages, one a line.",
    "browse": "Show messages without taking them.",
    "unload": "Write messages with all their fields to a file.",
    "load": "Put the messages of a file.",
    "status": "Show queues, processes, units of work and the journal.",
    "resolve": "Show prepared units of work, or resolve them manually.",
    "schedule": "List, set, delete and run schedules.",
    "serve": "Serve queue managers to programs on other hosts.",
    "trigger-monitor": "Start the programs that trigger messages name.",
    "journal": "List the records of the journal.",
    "archive": "List or prune the archive of linear logging.",
    "backup": "Copy a queue manager while it works.",
    "restore": "Make a new queue manager of a copy.",
    "verify": "Check the files with the second, independent reader.",
    "salvage": "Make a new queue manager of damaged files.",
    "errors": "Show the error log.",
    "demo": "Move real input through queues while processes are killed.",
}


class _Commands(click.Group):
    """A group that knows its commands by name and imports them late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"penstock.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock", prog_name="penstock")
def cli() -> None:
    """Persistent priority message queues inside your processes, with IBM MQ's semantics."""


def main() -> None:
    """Runs the command line and exits with its status."""
    sys.exit(run_to_status(lambda: cli.main(prog_name="penstock", standalone_mode=False)))


if __name__ == "__main__":
    main()
