"""Commands that have to be done, or refused."""

from __future__ import annotations

from penstock.mqsc import Interpreter, Reply


def done(mqsc: Interpreter, text: str) -> str:
    """Runs a command that has to work; what it printed."""
    reply = mqsc.execute(text)
    assert reply.ok, reply
    return "\n".join(reply.lines)


def names(mqsc: Interpreter, text: str) -> list[str]:
    """The names of the objects that a DISPLAY found."""
    reply = mqsc.execute(text)
    assert not reply.syntax, reply
    return [str(found["name"]) for found in reply.objects]


def refused(mqsc: Interpreter, text: str) -> Reply:
    """Runs a command that must not work."""
    reply = mqsc.execute(text)
    assert not reply.ok
    return reply
