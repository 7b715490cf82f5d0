"""MQSC: text to commands to printed replies.

Here the commands on local queues: DEFINE, ALTER, DELETE, DISPLAY and CLEAR. The modules follow the
way of a command: :mod:`lexer` (characters to lines to tokens), :mod:`parser` (tokens to
:class:`~penstock.mqsc.parser.Command`), :mod:`commands` (runs it on a queue manager),
:mod:`display` (lays out what DISPLAY found).
"""

from .commands import Interpreter, Reply
from .lexer import split_commands
from .parser import Command, SyntaxFault, parse

__all__ = ["Command", "Interpreter", "Reply", "SyntaxFault", "parse", "split_commands"]
