"""MQSC: text to commands to replies.

    for reply in penstock.mqsc.run(qm, "DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)"):
        print(reply.code, [found["name"] for found in reply.objects])

The modules follow the way of a command: :mod:`source` (lines to commands), :mod:`grammar` and
:mod:`parser` (text to :class:`~penstock.mqsc.parser.Command`), :mod:`interpreter` (which hands it
to :mod:`definitions`, :mod:`records`, :mod:`show` or :mod:`status`), :mod:`reply` and
:mod:`layout` (what it prints); :mod:`dump` goes the other way.
Everything about attributes comes from the tables of :mod:`penstock.objects`.
"""

from .dump import dump
from .faults import NotYet, SyntaxFault
from .interpreter import Interpreter, run
from .layout import as_command, as_commands
from .parser import Command, parse
from .reply import Fault, Reply
from .source import read_commands

__all__ = [
    "Command",
    "Fault",
    "Interpreter",
    "NotYet",
    "Reply",
    "SyntaxFault",
    "as_command",
    "as_commands",
    "dump",
    "parse",
    "read_commands",
    "run",
]
