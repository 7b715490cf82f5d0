"""A script's time is that of its commands: none of them looks at all objects."""

from __future__ import annotations

from typing import Any

import pytest
from mqsc_fixture import done

import penstock
from penstock.mqsc import Interpreter

SINGLE = (
    "DEFINE QLOCAL(Q) MAXDEPTH(7) TRIGGER",
    "DEFINE QLOCAL(Q) REPLACE",
    "DEFINE QLOCAL(R) LIKE(Q)",
    "ALTER QLOCAL(Q) MONQ(HIGH)",
    "DISPLAY QLOCAL(Q)",
    "DEFINE CHANNEL(C) CHLTYPE(CLNTCONN) CONNAME('h')",
    "ALTER CHANNEL(C) DESCR('x')",
    "START CHANNEL(C)",
    "DEFINE SUB('a b') TOPICSTR('a/b')",
    "ALTER SUB('a b') USERDATA('x')",
    "DISPLAY SUB('a b')",
    "DEFINE LISTENER(L) TRPTYPE(TCP)",
    "START LISTENER(L)",
    "SET AUTHREC PROFILE('Q.**') OBJTYPE(QUEUE) GROUP('g') AUTHADD(GET)",
    "SET AUTHREC PROFILE('Q.**') OBJTYPE(QUEUE) GROUP('g') AUTHRMV(GET)",
    "DELETE AUTHREC PROFILE('Q.**') OBJTYPE(QUEUE) GROUP('g')",
    "SET CHLAUTH('C.*') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS)",
    "SET CHLAUTH('C.*') TYPE(ADDRESSMAP) ADDRESS('*') ACTION(REMOVE)",
    "SET CHLAUTH('C.*') TYPE(BLOCKUSER) USERLIST('a')",
    "SET CHLAUTH('C.*') TYPE(BLOCKUSER) USERLIST('a') ACTION(REMOVE)",
    "ALTER QMGR CHLAUTH(ENABLED)",
    "REFRESH SECURITY",
    "DELETE SUB('a b')",
    "DELETE QLOCAL(R)",
)


def test_commands_on_one_object_walk_no_list_of_all_objects(
    mqsc: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[str] = []
    step = penstock.QueueManager.next_object

    def counted(manager: Any, slot: int) -> Any:
        walked.append(text)
        return step(manager, slot)

    monkeypatch.setattr(penstock.QueueManager, "next_object", counted, raising=False)
    for text in SINGLE:
        done(mqsc, text)
    assert walked == []
    text = "DISPLAY QLOCAL(*)"
    done(mqsc, text)
    assert walked
