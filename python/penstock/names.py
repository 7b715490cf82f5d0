"""Names of objects: the rules for them, generic names (``ABC*``), patterns; the nearest of some
words.
"""

from __future__ import annotations

from .constants import NAME_CHARACTERS, NAME_LENGTH, ReasonCode
from .errors import InvalidType, ObjectNameError

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def check_object_name(name: str, length: int = NAME_LENGTH) -> str:
    """The name, when it is one of an object. Raises ObjectNameError or InvalidType."""
    if not isinstance(name, str):
        raise InvalidType(
            ReasonCode.OBJECT_NAME_ERROR, f"a name is a str, not {type(name).__name__}: {name!r}"
        )
    if not 1 <= len(name) <= length:
        raise ObjectNameError(
            ReasonCode.OBJECT_NAME_ERROR,
            f"the name {name!r} has {len(name)} characters; 1 to {length} are allowed",
        )
    if not NAME_CHARACTERS.issuperset(name):
        wrong = next(character for character in name if character not in NAME_CHARACTERS)
        raise ObjectNameError(
            ReasonCode.OBJECT_NAME_ERROR,
            f"the name {name!r} has the character {wrong!r}; A-Z a-z 0-9 . _ / % are allowed"
            f"{_offer(name, length)}",
        )
    return name


def _offer(name: str, length: int) -> str:
    """``; do you mean MY.QUEUE?``: capitals, as is usual, and dots for what is not allowed; "" when
    that is no name.
    """
    allowed = "".join(c if c in NAME_CHARACTERS else "." for c in name.upper())
    words = [word for word in allowed.split(".") if word]
    offer = ".".join(words)
    return f"; do you mean {offer}?" if 1 <= len(offer) <= length else ""


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for names: equal to a full name, or matched by a generic one (``ABC*``, ``*``)."""
    if pattern.endswith("*"):
        prefix = pattern[:-1]
        return lambda name: name.startswith(prefix)
    return lambda name: name == pattern


def fits(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern in which ``*`` is any characters and ``?`` is one."""
    import re

    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(c) or re.escape(c) for c in pattern), name) is not None


def nearest(word: str, words: Iterable[str]) -> str:
    """``; do you mean X?`` with the word that is most like the given one, "" when none is."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, 1)
    return f"; do you mean {near[0]}?" if near else ""
