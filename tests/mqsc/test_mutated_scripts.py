"""Scripts of MQ with faults in them: every command is done or refused with its place and its rule,
and the time is that of the text.

``python tests/mqsc/test_mutated_scripts.py 1000000 7`` checks a million inputs with seed 7.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.mqsc import Interpreter, Reply, read_commands
from penstock.objects import TYPES

SCRIPTS = Path(__file__).parent / "scripts"
INPUTS = 3000
ODD = "'()*+-,; \t.=\"\\\0\x7f\u00e4\u20ac\U0001f600"
WORDS = [
    "REPLACE", "NOREPLACE", "LIKE('X')", "FORCE", "PURGE", "WHERE(DESCR LK 'A*')", "ALL",
    "TYPE(LOCAL)", "ACTION(REMOVEALL)", "CHLTYPE(AMQP)", "AUTHTYPE(OCSP)", "DESCR('')",
    "MAXDEPTH(999999999999999999999)", "TRIGGER", "NOTRIGGER", "DEFINE", "ALTER", "DELETE",
    "DISPLAY", "SET", "START", "STOP", "REFRESH", "END", "(", ")", "'", "''", "((", ",,", ";",
]  # fmt: skip
DEFINED = [name for name, kind in TYPES.items() if not (kind.platform or kind.identity)]
DEFINED.remove("QCLUSTER")


def lines_of_scripts() -> list[str]:
    """The lines of all scripts."""
    return [line for path in sorted(SCRIPTS.iterdir()) for line in path.read_text().splitlines()]


def commands_of_scripts() -> list[str]:
    """Their commands, continuation lines joined."""
    return [source.text for source in read_commands(lines_of_scripts())]


def mutated(text: str, others: list[str], choose: random.Random) -> str:
    """The text with one to four faults: characters, words and parameters changed, lost, moved."""
    for _ in range(choose.randint(1, 4)):
        at = choose.randrange(len(text) + 1)
        end = min(len(text), at + choose.choice((0, 1, 1, 2, 8, 30)))
        what = choose.randrange(6)
        if what == 0:
            text = text[:at] + text[end:]
        elif what == 1:
            text = text[:at] + choose.choice(ODD) + text[end:]
        elif what == 2:
            text = text[:at] + " " + choose.choice(WORDS) + " " + text[at:]
        elif what == 3:
            text = text[:at] + text[at:end] * choose.choice((2, 3, 50)) + text[end:]
        elif what == 4:
            other = choose.choice(others)
            text = text[:at] + other[choose.randrange(len(other)) :]
        else:
            parts = text.split(" ")
            choose.shuffle(parts)
            text = " ".join(parts)
    return text


def inputs(count: int, seed: int) -> Iterator[str]:
    """Mutated commands of the scripts."""
    choose = random.Random(seed)
    commands = commands_of_scripts()
    for _ in range(count):
        yield mutated(choose.choice(commands), commands, choose)


def check(reply: Reply, text: str) -> None:
    """A reply has a number, and a fault of syntax its word, in the place that it names."""
    assert reply.ok or reply.code.startswith("AMQ"), (text, reply)
    assert all(line.startswith("AMQ8426: ") for line in reply.warnings), (text, reply)
    if reply.fault is not None:
        at = reply.fault.position - 1
        there = reply.command[at : at + len(reply.fault.word)]
        assert there.upper() == reply.fault.word.upper(), (text, reply.fault)


def walk(checker: Interpreter, texts: Iterator[str]) -> int:
    """Checks the commands of these texts without doing them; how many were right."""
    right = 0
    for text in texts:
        for source in read_commands([text]):
            at_start = source._replace(pieces=((0, 1, 1),))
            reply = checker.execute(at_start)
            check(reply, text)
            right += reply.ok
    return right


def test_a_mutated_command_is_right_or_refused_with_its_place(
    shared: penstock.QueueManager,
) -> None:
    right = walk(Interpreter(shared, check_only=True), inputs(INPUTS, 1))
    assert INPUTS // 50 < right < INPUTS  # some are right all the same, and not all


def test_a_mutated_script_runs_to_its_end_and_its_dump_loads(
    qm: penstock.QueueManager, home: Path
) -> None:
    from penstock.mqsc import dump

    choose = random.Random(2)
    commands = commands_of_scripts()
    interpreter = Interpreter(qm)
    for text in [mutated(c, commands, choose) if choose.random() < 0.4 else c for c in commands]:
        for source in read_commands([text]):
            if source.text.split()[0].upper() not in ("END", "DELETE", "CLEAR"):
                reply = interpreter.execute(source._replace(pieces=((0, 1, 1),)))
                check(reply, text)
    assert interpreter.failed + interpreter.syntax_errors > 10
    with penstock.connect("QM2", home, create=True) as other:
        again = Interpreter(other)
        again.run("\n".join(dump(qm)).splitlines(), lambda reply: check(reply, ""))
        assert (again.failed, again.syntax_errors) == (0, 0)
        assert list(dump(other)) == list(dump(qm))


@pytest.mark.parametrize("kind", DEFINED)
def test_every_word_of_every_attribute_is_understood_in_any_case(
    shared: penstock.QueueManager, kind: str
) -> None:
    checker = Interpreter(shared, check_only=True)
    head = "ALTER QMGR" if kind == "QMGR" else f"ALTER {kind}(X)"
    for row in TYPES[kind].attributes.values():
        if row.display_only or row.platform or row.keyword in ("SHARE", "HARDENBO", "TRIGGER"):
            continue
        for word in [w for w in row.words if w not in row.zos_words] + list(row.choices):
            reply = checker.execute(f"{head} {row.keyword.lower()}({word.lower()})")
            assert reply.ok, (row, word, reply)


def reported(texts: Iterator[str], every: int = 50_000) -> Iterator[str]:
    """The texts; prints now and then how many there were."""
    for number, text in enumerate(texts):
        if number and number % every == 0:
            print(f"{number} inputs", flush=True)
        yield text


def main() -> None:
    """Checks as many inputs as the first argument says, with the seed of the second."""
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    with (
        tempfile.TemporaryDirectory() as folder,
        penstock.connect("QM1", folder, create=True) as manager,
    ):
        right = walk(Interpreter(manager, check_only=True), reported(inputs(count, seed)))
    print(f"{count} inputs with seed {seed}: {right} commands were right, no other was unanswered")


if __name__ == "__main__":
    main()
