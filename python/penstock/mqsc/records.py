"""SET, DELETE and DISPLAY of records: authority records and channel authentication records.

A record is not defined as a whole: SET changes a part of it. An authority record is that of one
entity for one profile and type of object; a channel authentication record is that of one profile,
type and partner, and its lists of users or addresses grow and shrink. Sources: "SET AUTHREC",
"DELETE AUTHREC", "SET CHLAUTH".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..constants import ReasonCode
from ..objects import TYPES, Definition
from ..objects.administration_tables import AUTHORITIES
from .definitions import Action, Parameters, name_of
from .faults import NotYet, SyntaxFault
from .grammar import Word
from .parser import Command
from .reply import Reply, done, not_found, refused
from .show import HEADS, Choice, known_attributes

if TYPE_CHECKING:
    from penstock import QueueManager

_ADMINISTRATION = ("CHG", "CRT", "DLT", "DSP")
_CALLS = {  # of the MQI, by type of object; the others have INQ
    "QUEUE": ("BROWSE", "GET", "INQ", "PASSALL", "PASSID", "PUT", "SET", "SETALL", "SETID"),
    "QMGR": ("ALTUSR", "CONNECT", "INQ", "SET", "SETALL", "SETID"),
    "PROCESS": ("INQ", "SET"),
    "TOPIC": ("PASSALL", "PASSID", "PUB", "RESUME", "SETALL", "SETID", "SUB"),
    "RQMNAME": ("PUT",),
}
_MORE_ADMINISTRATION = {
    "QUEUE": ("CLR",),
    "QMGR": ("CTRL",),
    "TOPIC": ("CLR", "CTRL"),
    "CHANNEL": ("CTRL", "CTRLX"),
    "LISTENER": ("CTRL",),
    "SERVICE": ("CTRL",),
}
_LISTS = {"BLOCKUSER": "userlist", "BLOCKADDR": "addrlist"}
_OWN_PROFILE = "self"  # of the queue manager


def prepare(manager: QueueManager, command: Command) -> Action:
    """Checks the command; the returned call does the work. Raises SyntaxFault, NotYet."""
    given = Parameters(command, manager.platform)
    return _PREPARE[command.verb, command.noun](manager, command, given)


# ---- authority records ----


def _set_authorities(manager: QueueManager, command: Command, given: Parameters) -> Action:
    name, objtype, entities = _subject(given)
    added = _authorities(given, "AUTHADD", objtype)
    removed = _authorities(given, "AUTHRMV", objtype)
    services = given.word("SERVCOMP")
    given.nothing_left()
    notes = _notes("AUTHREC")
    if services is not None:
        notes.append("SERVCOMP is not kept: this release has no authorization services")

    def run() -> Reply:
        for enttype, entity in entities:
            key: dict[str, Any] = {"objtype": objtype, "enttype": enttype, "entity": entity}
            found = manager.display("AUTHREC", name, **key)
            before = found[0]["authlist"] if found else []
            assert isinstance(before, list)
            wanted = ({*before, *added} - {*removed, "NONE"}) or {"NONE"}
            listed = [word for word in AUTHORITIES if word in wanted]
            manager.define("AUTHREC", name, replace=True, authlist=listed, **key)
        return done("AMQ8862", "Authority record set.", notes)

    return run


def _delete_authorities(manager: QueueManager, command: Command, given: Parameters) -> Action:
    name, objtype, entities = _subject(given)
    ignored = given.choice("IGNSTATE", ("NO", "YES")) == "YES"
    given.nothing_left()

    def run() -> Reply:
        for enttype, entity in entities:
            key: dict[str, Any] = {"objtype": objtype, "enttype": enttype, "entity": entity}
            if manager.display("AUTHREC", name, **key):
                manager.delete("AUTHREC", name, **key)
            elif not ignored:
                return _unknown(command, f"{name} of {entity}")
        return done("AMQ8863", "Authority record deleted.")

    return run


def _show_authorities(manager: QueueManager, command: Command, given: Parameters) -> Action:
    profile = given.word("PROFILE")
    name = name_of(TYPES["AUTHREC"], profile) if profile is not None else "*"
    types = ("ALL", *TYPES["AUTHREC"].attributes["OBJTYPE"].words)
    objtype = given.choice("OBJTYPE", types)
    wanted = _entities(given) if {"PRINCIPAL", "GROUP"} & given.left.keys() else []
    given.choice("MATCH", ("PROFILE", "EXACT", "MATCH"))
    choice = Choice(given, known_attributes(("AUTHREC",), manager.platform), False)

    def keep(row: Definition) -> bool:
        entity = (row["enttype"], row["entity"])
        return objtype in ("ALL", row["objtype"]) and (not wanted or entity in wanted)

    def run() -> Reply:
        found = [row for row in manager.display("AUTHREC", name) if keep(row)]
        return choice.reply(command, HEADS["AUTHREC"], found)

    return run


def _subject(given: Parameters) -> tuple[str, str, list[tuple[str, str]]]:
    """Profile, type of object and entities of SET and DELETE AUTHREC. Raises SyntaxFault."""
    words = tuple(TYPES["AUTHREC"].attributes["OBJTYPE"].words)
    if "OBJTYPE" not in given.left:
        raise SyntaxFault(f"{given.command.verb} AUTHREC needs OBJTYPE", given.command.noun_at)
    objtype = given.choice("OBJTYPE", words)
    profile = given.word("PROFILE")
    if profile is None and objtype != "QMGR":
        raise SyntaxFault(f"{given.command.verb} AUTHREC needs PROFILE", given.command.noun_at)
    name = _OWN_PROFILE
    if profile is not None:
        name = name_of(TYPES["AUTHREC"], profile)
    return _OWN_PROFILE if objtype == "QMGR" else name, objtype, _entities(given)


def _entities(given: Parameters) -> list[tuple[str, str]]:
    """The users and groups, as (type, name). Raises SyntaxFault."""
    found = [
        (enttype, word.value)
        for enttype in ("PRINCIPAL", "GROUP")
        for word in _words(given, enttype)
        if word.value
    ]
    if not found:
        raise SyntaxFault(
            f"{given.command.verb} AUTHREC needs PRINCIPAL or GROUP", given.command.noun_at
        )
    return found


def _authorities(given: Parameters, keyword: str, objtype: str) -> set[str]:
    """The authorities in the brackets of a keyword. Raises SyntaxFault."""
    calls = _CALLS.get(objtype, ("INQ",))
    administration = (*_ADMINISTRATION, *_MORE_ADMINISTRATION.get(objtype, ()))
    groups = {"ALL": (*calls, *administration), "ALLMQI": calls, "ALLADM": administration}
    found: set[str] = set()
    for word in _words(given, keyword):
        if word.value not in groups and word.value not in AUTHORITIES:
            raise SyntaxFault(f"{keyword} has no such authority", word.at, word.written)
        found.update(groups.get(word.value, (word.value,)))
    return found


def _words(given: Parameters, keyword: str) -> tuple[Word, ...]:
    """Removes ``KEYWORD(value value ...)``. Raises SyntaxFault."""
    parameter = given.left.pop(keyword, None)
    if parameter is None:
        return ()
    if parameter.values is None:
        raise SyntaxFault(f"{keyword} needs a value in brackets", parameter.at, keyword)
    return parameter.values


# ---- channel authentication records ----


def _set_channel_authentication(
    manager: QueueManager, command: Command, given: Parameters
) -> Action:
    kind = TYPES["CHLAUTH"]
    assert command.name is not None and kind.subtype is not None
    name = name_of(kind, command.name)
    if "TYPE" not in given.left:
        raise SyntaxFault("SET CHLAUTH needs TYPE", command.noun_at, command.noun)
    subtype = given.choice("TYPE", tuple(kind.subtype.words))
    action = given.choice("ACTION", ("ADD", "REPLACE", "REMOVE", "REMOVEALL"))
    values = given.attributes(kind) | {"chlautyp": subtype}
    key = {row.keyword.lower() for row in kind.identity} & values.keys()
    identity = {keyword: values[keyword] for keyword in key}
    notes = _notes("CHLAUTH") if action in ("ADD", "REPLACE") else []

    def run() -> Reply:
        if action == "REMOVEALL":
            _remove_all(manager, name, subtype)
        elif subtype in _LISTS:
            if not _change_list(manager, name, subtype, action, values):
                return _unknown(command, name)
        elif action == "REMOVE":
            manager.delete("CHLAUTH", name, **identity)
        else:
            manager.define("CHLAUTH", name, replace=action == "REPLACE", **values)
        return done("AMQ8877", "Channel authentication record set.", notes)

    return run


def _change_list(
    manager: QueueManager, name: str, subtype: str, action: str, values: dict[str, Any]
) -> bool:
    """Adds to, replaces or shortens the list of a record; False when there is none to shorten."""
    keyword = _LISTS[subtype]
    found = manager.display("CHLAUTH", name, chlautyp=subtype)
    before = found[0][keyword] if found else []
    given = values.get(keyword, [])
    assert isinstance(before, list)
    if action == "REMOVE" and not found:
        return False
    if action == "REMOVE":
        items = [item for item in before if item not in given]
    else:
        items = list(dict.fromkeys([*(before if action == "ADD" else ()), *given]))
    kept = {row: found[0][row] for row in ("descr", "custom", "warn")} if found else {}
    if items:
        manager.define("CHLAUTH", name, replace=True, **{**kept, **values, keyword: items})
    elif found:
        manager.delete("CHLAUTH", name, chlautyp=subtype)
    return True


def _remove_all(manager: QueueManager, name: str, subtype: str) -> None:
    """Deletes every record of a profile and type, if there are any."""
    keywords = [row.keyword.lower() for row in TYPES["CHLAUTH"].identity]
    for row in manager.display("CHLAUTH", "*"):
        if row["name"] == name and row["chlautyp"] == subtype:
            identity: dict[str, Any] = {key: row[key] for key in keywords if key in row}
            manager.delete("CHLAUTH", name, **identity)


def _show_channel_authentication(
    manager: QueueManager, command: Command, given: Parameters
) -> Action:
    kind = TYPES["CHLAUTH"]
    assert command.name is not None and kind.subtype is not None
    name = name_of(kind, command.name)
    subtype = given.choice("TYPE", ("ALL", *kind.subtype.words))
    match = given.choice("MATCH", ("GENERIC", "EXACT", "RUNCHECK", "ALL"))
    if match == "RUNCHECK":
        raise NotYet(
            "DISPLAY CHLAUTH MATCH(RUNCHECK): there are no running channels in this release"
        )
    exact = match == "EXACT"  # GENERIC and ALL: whatever the name matches
    choice = Choice(given, known_attributes(("CHLAUTH",), manager.platform), False)

    def keep(row: Definition) -> bool:
        return subtype in ("ALL", row["chlautyp"]) and (not exact or row["name"] == name)

    def run() -> Reply:
        found = [row for row in manager.display("CHLAUTH", name) if keep(row)]
        return choice.reply(command, HEADS["CHLAUTH"], found)

    return run


# ---- replies ----


def _notes(noun: str) -> list[str]:
    kind = TYPES[noun]
    return [f"the {kind.noun} is kept only: this release has no {kind.unbuilt}"]


def _unknown(command: Command, what: str) -> Reply:
    """The reply for a record that there is not."""
    if command.name is not None:
        return not_found(command)
    title = command.subject.title.capitalize()
    return refused("AMQ8147", f"{title} {what} not found.", ReasonCode.UNKNOWN_OBJECT_NAME)


NOUNS: Iterable[str] = ("AUTHREC", "CHLAUTH")
_PREPARE = {
    ("SET", "AUTHREC"): _set_authorities,
    ("DELETE", "AUTHREC"): _delete_authorities,
    ("DISPLAY", "AUTHREC"): _show_authorities,
    ("SET", "CHLAUTH"): _set_channel_authentication,
    ("DISPLAY", "CHLAUTH"): _show_channel_authentication,
}
