"""From the text of a utility to a tree: `name(argument, word=argument, ...)`.

An argument is a number (with or without a unit of time), a word, two of these joined by a colon, or again a
`name(...)`. Which names and arguments make sense is not known here, and nothing is ever evaluated.
"""

import re
from dataclasses import dataclass

from captime.errors import UtilityError
from captime.utilities.durations import NUMBER, UNIT, in_seconds

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_BLANK = re.compile(r"\s*")
# Deep enough for any use, shallow enough for Python's stack.
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Number:
    """A number; `has_unit` says that a unit was written, so it can only be a time (then in seconds)."""

    value: float
    has_unit: bool


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two atoms with a colon between them: a knot of a table, or module:function."""

    left: Number | Word
    right: Number | Word


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `keyword` is None for a positional one, `position` counts characters from 1."""

    keyword: str | None
    value: "Number | Word | Pair | ParsedCall"
    position: int


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """`name(arguments)`, beginning at `position`."""

    name: str
    arguments: tuple[Argument, ...]
    position: int


def complaint(text: str, position: int, message: str) -> UtilityError:
    """Return an error that names the text and the character, counted from 1."""
    excerpt = text if len(text) <= 120 else text[:117] + "..."
    return UtilityError(f'utility "{excerpt}", character {position}: {message}')


def read(text: str) -> ParsedCall:
    """Return the tree of a whole text."""
    if not text.strip():
        raise UtilityError(
            "the text of the utility is empty, expected something like log-laplace(60, 1) or uniform(5min)"
        )
    reader = _Reader(text)
    call = reader.call(depth=0)
    reader.skip_blanks()
    if reader.place < len(text):
        raise reader.expected("the end of the text after the closing bracket")
    return call


class _Reader:
    """A place in a text, moving right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def skip_blanks(self) -> None:
        blank = _BLANK.match(self.text, self.place)
        if blank is not None:
            self.place = blank.end()

    def expected(self, what: str) -> UtilityError:
        rest = self.text[self.place : self.place + 12]
        found = f"found {rest!r}" if rest else "the text ends"
        return complaint(self.text, self.place + 1, f"{found}, expected {what}")

    def take(self, mark: str) -> bool:
        self.skip_blanks()
        if self.text.startswith(mark, self.place):
            self.place += len(mark)
            return True
        return False

    def word(self) -> str | None:
        self.skip_blanks()
        found = _WORD.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found.group()

    def call(self, depth: int) -> ParsedCall:
        self.skip_blanks()
        start = self.place
        name = self.word()
        if name is None:
            raise self.expected("the name of a utility, as in log-laplace(60, 1)")
        if not self.take("("):
            raise self.expected(f"an opening bracket after {name}, as in log-laplace(60, 1)")
        return self.rest_of_call(name, start, depth)

    def rest_of_call(self, name: str, start: int, depth: int) -> ParsedCall:
        if depth >= _DEEPEST:
            raise complaint(self.text, start + 1, f"more than {_DEEPEST} utilities inside each other")
        arguments: list[Argument] = []
        while not self.take(")"):
            if arguments and not self.take(","):
                raise self.expected(f"a comma, or the bracket that closes {name}")
            arguments.append(self.argument(depth))
        return ParsedCall(name, tuple(arguments), start + 1)

    def argument(self, depth: int) -> Argument:
        self.skip_blanks()
        start = self.place
        word = self.word()
        if word is None:
            return Argument(None, self.number_or_knot(), start + 1)
        if self.take("="):
            return Argument(word, self.value(depth), start + 1)
        return Argument(None, self.rest_of_word(word, start, depth), start + 1)

    def value(self, depth: int) -> Number | Word | Pair | ParsedCall:
        self.skip_blanks()
        start = self.place
        word = self.word()
        return self.number_or_knot() if word is None else self.rest_of_word(word, start, depth)

    def rest_of_word(self, word: str, start: int, depth: int) -> Word | Pair | ParsedCall:
        if self.take("("):
            return self.rest_of_call(word, start, depth + 1)
        if self.take(":"):
            return Pair(Word(word), self.atom("a word or a number after the colon"))
        return Word(word)

    def number_or_knot(self) -> Number | Pair:
        number = self.number()
        if number is None:
            raise self.expected("a number, a time like 5min, a word or a utility")
        if self.take(":"):
            return Pair(number, self.atom("a number after the colon, as in 10:0.5"))
        return number

    def atom(self, what: str) -> Number | Word:
        word = self.word()
        if word is not None:
            return Word(word)
        number = self.number()
        if number is None:
            raise self.expected(what)
        return number

    def number(self) -> Number | None:
        self.skip_blanks()
        start = self.place
        found = NUMBER.match(self.text, start)
        if found is None:
            return None
        self.place = found.end()
        value = float(found.group())
        self.skip_blanks()
        unit = UNIT.match(self.text, self.place)
        if unit is None:
            return Number(value, has_unit=False)
        try:
            seconds = in_seconds(value, unit.group())
        except UtilityError as error:
            raise complaint(self.text, self.place + 1, str(error)) from None
        self.place = unit.end()
        return Number(seconds, has_unit=True)
