"""Parses one command's text into a :class:`Command`: verb, noun, name and parameters.

Only the form is checked here; the values of parameters are checked when the command is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from .faults import NotYet, SyntaxFault
from .grammar import Parameter, Word, parameters_of
from .words import (
    LATER_NOUNS,
    LATER_VERBS,
    NOUN_OF,
    NOUNS,
    PROFILED,
    VERB_OF,
    VERBS,
    WITHOUT_EFFECT,
    Noun,
)

__all__ = ["Command", "parse"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. name: None for what has none. parameters: by keyword, in upper case. noun_at:
    where the noun stands.
    """

    verb: str
    noun: str = ""
    name: Word | None = None
    parameters: dict[str, Parameter] = field(default_factory=dict)
    noun_at: int = field(default=0, compare=False)

    @property
    def subject(self) -> Noun:
        """The entry of the table of nouns."""
        return NOUNS[self.noun]


def near(word: str, words: object) -> str:
    """``; do you mean X?``, "" when nothing is like the word."""
    found = get_close_matches(word, [str(w) for w in words], 1)  # type: ignore[attr-defined]
    return f"; do you mean {found[0]}?" if found else ""


def parse(text: str) -> Command:
    """Parses one command.

    Raises:
        SyntaxFault: with the word, its location and the rule.
        NotYet: the command is valid MQSC, but not implemented.
    """
    first, *rest = parameters_of(text)
    verb = VERB_OF.get(first.keyword)
    if verb is None:
        raise SyntaxFault(
            f"it is not a verb{near(first.keyword, VERBS)}", first.at, _text(text, first)
        )
    if first.values is not None:
        raise SyntaxFault(f"{verb} needs a kind of object first", first.at, _text(text, first))
    if verb == "END":
        if rest:
            raise SyntaxFault("END stands alone", rest[0].at, _text(text, rest[0]))
        return Command(verb)
    if not rest:
        raise SyntaxFault(f"{verb} needs a kind of object", len(text))
    noun = _noun(text, verb, rest[0])
    name = _name(text, verb, noun, rest[0])
    parameters: dict[str, Parameter] = {}
    for parameter in rest[1:]:
        if parameter.keyword in parameters:
            raise SyntaxFault("it is given twice", parameter.at, _text(text, parameter))
        parameters[parameter.keyword] = parameter
    return Command(verb, noun, name, parameters, rest[0].at)


def _text(text: str, parameter: Parameter) -> str:
    """The keyword as it was written."""
    return text[parameter.at : parameter.at + len(parameter.keyword)]


def _noun(text: str, verb: str, given: Parameter) -> str:
    """The noun in full. Raises SyntaxFault or NotYet."""
    noun = NOUN_OF.get(given.keyword)
    word = _text(text, given)
    if noun is None:
        known = [name for name, row in NOUNS.items() if verb in row.verbs]
        choice = f", one of {', '.join(known)}" if known else ""
        raise SyntaxFault(
            f"it is not a kind of object{near(given.keyword, NOUNS) or choice}", given.at, word
        )
    if noun in NOUNS and verb in NOUNS[noun].verbs:
        return noun
    lacking = LATER_VERBS.get(verb) or LATER_NOUNS.get(noun, ((), ""))[1]
    if not lacking and verb == "PING":
        lacking = LATER_NOUNS["CHSTATUS"][1]
    if lacking:
        text = f"{verb} {noun}: there are no {lacking} in this release"
        harmless = (verb, noun) in WITHOUT_EFFECT
        names = [word.value for word in given.values or ()]
        raise NotYet(text, harmless, WITHOUT_EFFECT.get((verb, noun), ""), "".join(names[:1]))
    hint = "; say QLOCAL, QALIAS, QREMOTE or QMODEL" if noun == "QUEUE" else ""
    raise SyntaxFault(f"{verb} {noun} is not a command{hint}", given.at, word)


def _name(text: str, verb: str, noun: str, given: Parameter) -> Word | None:
    """The name in the noun's brackets. Raises SyntaxFault."""
    named = NOUNS[noun].named
    word = _text(text, given)
    if given.values is None:
        if named == 2:
            raise SyntaxFault(f"{verb} {noun} needs a name in brackets", given.at, word)
        return None
    if named == 0:
        raise SyntaxFault(f"{verb} {noun} takes no name", given.at, word)
    if len(given.values) != 1 or not given.values[0].value:
        raise SyntaxFault(f"{verb} {noun} needs one name in brackets", given.at, word)
    name = given.values[0]
    if noun in PROFILED:
        return name
    if "*" in name.value[:-1]:
        raise SyntaxFault("* can only be the last character of a name", name.at, name.written)
    if verb not in ("DISPLAY", "RESET") and "*" in name.value:
        raise SyntaxFault(f"{verb} needs a full name", name.at, name.written)
    return name
