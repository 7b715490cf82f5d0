"""Token files: what they may say, and who may read them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from penstock.errors import MQError
from penstock.flight.access import Access, TokenFile, TokenFileError, access_of, made, read

DIGEST = hashlib.sha256(b"secret").hexdigest()
ENTRY = f"""
[[token]]
name = "etl"
sha256 = "{DIGEST}"
managers = ["QM1", "TEST.*"]
queues = ["APP.*", "Q?"]
rights = ["browse", "put"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(ENTRY)
    path.chmod(0o600)
    return path


def test_a_token_is_what_its_entry_says(file: Path) -> None:
    tokens = read(str(file))
    access = access_of(tokens, "Bearer secret")
    assert access == Access("etl", ("QM1", "TEST.*"), ("APP.*", "Q?"), ("browse", "put"))
    assert access == access_of(tokens, "bearer  secret ")
    for header in (None, "", "secret", "Basic secret", "Bearer", "Bearer Secret", "Bearer secrets"):
        assert access_of(tokens, header) is None
    assert [access.sees(name) for name in ("APP.", "APP.X", "Q1", "Q", "Q12", "XAPP.")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    access.check("TEST.1", "Q1", "put")


def test_a_new_token_is_one_of_its_file(file: Path) -> None:
    token, entry = made("nightly")
    file.write_text(ENTRY + entry)
    found = access_of(read(str(file)), f"Bearer {token}")
    assert found is not None and found.name == "nightly" and token not in entry
    with pytest.raises(TokenFileError, match="the name 'a/b' must match"):
        made("a/b")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_may_use_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(TokenFileError, match="others can read or write it: chmod 600"):
        read(str(file))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("[[token]]", "[token]", "has tables"),
        ("[[token]]", "[[tokens]]", "has tables"),
        ("[[token]]", "x = 1\n[[token]]", "has tables"),
        ('name = "etl"', 'name = "a b"', "token 1: name must match"),
        (DIGEST, "secret", "token 1: sha256 must match"),
        ('rights = ["browse", "put"]', "", "token 1: it has the keys name, sha256"),
        ('"put"]', '"delete"]', "the rights are browse, get, put, not delete"),
        ('["QM1", "TEST.*"]', '"QM1"', "token 1: managers is a list of texts"),
        ('"APP.*"', '"A B"', "'A B' is no name or pattern"),
        ("rights", "right", "token 1: it has the keys"),
        ('"etl"', '"etl', "tokens.toml: "),
    ],
)
def test_a_file_that_says_something_else_is_refused(
    file: Path, old: str, new: str, text: str
) -> None:
    file.write_text(ENTRY.replace(old, new))
    with pytest.raises(TokenFileError, match="tokens") as caught:
        read(str(file))
    assert text in str(caught.value)


def test_names_and_tokens_are_different(file: Path) -> None:
    file.write_text(ENTRY * 2)
    with pytest.raises(TokenFileError, match="token 2: its name or sha256 stands there before"):
        read(str(file))


def test_a_file_that_changes_is_read_again_and_one_that_is_wrong_is_not(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = TokenFile(str(file))
    before = tokens.items()
    tokens.look()
    assert access_of(tokens, "Bearer secret") is not None and not caplog.records
    token, entry = made("other")
    file.write_text(entry)
    tokens.look()
    assert access_of(tokens, "Bearer secret") is None
    assert access_of(tokens, f"Bearer {token}") is not None
    assert [digest for digest, _ in before] == [DIGEST]  # a search that was under way
    for change in (
        lambda: file.write_text("nonsense"),
        lambda: (file.write_text(ENTRY), file.chmod(0o644)),
        file.unlink,
    ):
        caplog.clear()
        change()
        tokens.look()
        assert "the tokens stay as they are" in caplog.text
        assert access_of(tokens, f"Bearer {token}") is not None
    new = file.with_name("new")  # as an editor does
    new.write_text(ENTRY)
    new.chmod(0o600)
    new.rename(file)
    tokens.look()
    assert access_of(tokens, "Bearer secret") is not None


def test_the_journal_is_of_named_queues_or_of_a_pattern_that_the_token_has(file: Path) -> None:
    (access,) = read(str(file)).values()
    access.check_journal("QM1", ["APP.A", "Q1"])
    for pattern in ("APP.*", "Q?"):
        access.check_journal("QM1", [], pattern)
    for pattern in ("*", "APP.A*", "APP", "Q*"):
        with pytest.raises(MQError, match=r"2035.*must be among the queues of its token"):
            access.check_journal("QM1", [], pattern)
    with pytest.raises(MQError, match="may not use queue OTHER"):
        access.check_journal("QM1", ["Q1", "OTHER"])
    Access("all", ("*",), ("*",), ("browse",)).check_journal("QM1", [], "APP.*")
    with pytest.raises(MQError, match="no right to browse"):
        Access("all", ("*",), ("*",), ("get",)).check_journal("QM1", [])
