"""The family of utilities: this door is the register, and reads the text of a utility.

To add a member: a frozen dataclass that fits `Utility` and has a `name` and an `example`, in a file of its own or in
`formulas`, and one line in `UTILITIES`. Text, command line and conformance tests follow from that.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from captime.errors import UtilityError
from captime.utilities.cost_adjusted import CostAdjusted
from captime.utilities.formula import NUMBER, UNIT, Duration, Seconds, Utility, in_seconds, nearest, shown
from captime.utilities.formulas import (
    Backward,
    Exponential,
    Forward,
    GeneralisedLogLaplace,
    Geometric,
    Linear,
    LogLaplace,
    LogNormal,
    Parc,
    Pareto,
    Poly,
    Step,
    Uniform,
)
from captime.utilities.python_function import Normalised, PythonFunction, from_callable, normalised
from captime.utilities.tabulated import Piecewise, SciPyDistribution, Tabulated, survival_of_frozen

__all__ = [
    "UTILITIES",
    "Normalised",
    "Utility",
    "from_callable",
    "normalised",
    "parse_utility",
    "survival",
]

UTILITIES: dict[str, type[Utility]] = {
    "step": Step,
    "uniform": Uniform,
    "exponential": Exponential,
    "pareto": Pareto,
    "log-laplace": LogLaplace,
    "generalised-log-laplace": GeneralisedLogLaplace,
    "log-normal": LogNormal,
    "piecewise": Piecewise,
    "poly": Poly,
    "linear": Linear,
    "geometric": Geometric,
    "forward": Forward,
    "backward": Backward,
    "parc": Parc,
    "tabulated": Tabulated,
    "cost-adjusted": CostAdjusted,
    "scipy": SciPyDistribution,
    "python": PythonFunction,
}

# From the text of a utility to a tree: `name(argument, word=argument, ...)`.
#
# An argument is a number (with or without a unit of time), a word, two of these joined by a colon, or again a
# `name(...)`. Which names and arguments make sense is not known here, and nothing is ever evaluated.

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


# From the tree of a text to a member of the family: names are looked up, arguments matched to the signature.
#
# The signature of a member's constructor is its schema. A member whose text has another shape than its constructor (a
# list of knots, say) offers a classmethod `from_text` and is asked through that.

Register = Mapping[str, type[Utility]]

# Names the papers use, and another spelling. All others are register keys, in any capitals and hyphens.
_ALIASES = {"genloglaplace": "generalised-log-laplace", "generalizedloglaplace": "generalised-log-laplace"}


def build(text: str, call: ParsedCall, register: Register) -> Utility:
    """Return the utility that a tree describes; `text` is what the tree was read from, for the messages."""
    key = _key(text, call, register)
    member: type[Utility] = register[key]
    # `from_text` is optional and every class has its own signature: no static type fits all of them.
    factory = cast("Callable[..., Utility]", getattr(member, "from_text", member))
    positional, named = _bind(text, call, _Schema(key, factory), register)
    try:
        return factory(*positional, **named)
    except UtilityError as error:
        raise complaint(text, call.position, str(error)) from error


def _key(text: str, call: ParsedCall, register: Register) -> str:
    squashed = _squash(call.name)
    for name in register:
        if _squash(name) == squashed:
            return name
    alias = _ALIASES.get(squashed)
    if alias in register:
        return cast("str", alias)
    raise complaint(
        text, call.position, f"there is no utility called {call.name!r}; {nearest(call.name, list(register))}"
    )


def _squash(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


class _Schema:
    """What the signature of a factory says about arguments."""

    def __init__(self, key: str, factory: Callable[..., Utility]) -> None:
        parameters = list(inspect.signature(factory).parameters.values())
        self.key = key
        self.ordered = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        self.several = next((each for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        self.anything = any(each.kind is each.VAR_KEYWORD for each in parameters)
        open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.by_name = {each.name: each for each in parameters if each.kind not in open_ended}
        shown: dict[object, str] = dict(zip(open_ended, ("{0}, ...", "name=number, ..."), strict=True))
        required = [each for each in parameters if each.default is each.empty]
        words = (shown.get(each.kind, "{0}").format(each.name) for each in required)
        self.usage = f"{key}({', '.join(words)})"


def _bind(text: str, call: ParsedCall, schema: _Schema, register: Register) -> tuple[list[object], dict[str, object]]:
    """Positional and named arguments for the factory; what does not fit its signature is refused."""
    positional: list[object] = []
    named: dict[str, object] = {}
    for argument in call.arguments:
        if argument.keyword is None:
            parameter = _next_parameter(text, argument, schema, len(positional), after_named=bool(named))
            positional.append(_value(text, argument, parameter, register))
            continue
        keyword = argument.keyword.replace("-", "_")
        if keyword in named or keyword in [each.name for each in schema.ordered[: len(positional)]]:
            raise complaint(text, argument.position, f"{keyword} is given twice; write {schema.usage}")
        if keyword not in schema.by_name and not schema.anything:
            hint = nearest(keyword, list(schema.by_name))
            raise complaint(text, argument.position, f"{schema.key} has no parameter called {keyword!r}; {hint}")
        named[keyword] = _value(text, argument, schema.by_name.get(keyword), register)
    given = {*named, *(each.name for each in schema.ordered[: len(positional)])}
    for each in schema.by_name.values():
        if each.default is each.empty and each.name not in given:
            message = f"{schema.key} needs its parameter {each.name}; write {schema.usage}"
            raise complaint(text, call.position, message)
    return positional, named


def _next_parameter(
    text: str, argument: Argument, schema: _Schema, already: int, *, after_named: bool
) -> inspect.Parameter | None:
    """Return the parameter a plain argument stands for."""
    if after_named:
        message = f"a plain argument after a named one; write {schema.usage}"
        raise complaint(text, argument.position, message)
    if already < len(schema.ordered):
        return schema.ordered[already]
    if schema.several is None:
        takes = f"{already} argument" if already == 1 else f"{already} arguments"
        message = f"{schema.key} takes {takes}, found more; write {schema.usage}"
        raise complaint(text, argument.position, message)
    return schema.several


def _value(text: str, argument: Argument, parameter: inspect.Parameter | None, register: Register) -> object:
    """Return the argument as a Python value, refused if the parameter asks for another kind of thing."""
    value = _plain(text, argument.value, register)
    annotation = parameter.annotation if parameter is not None else object
    wanted = _WANTED.get(annotation)
    if parameter is None or wanted is None:
        return value
    fits, words = wanted
    if not fits(value):
        raise complaint(text, argument.position, f"{parameter.name} is {_described(value)}, expected {words}")
    return float(value) if isinstance(value, float) else value


def _plain(text: str, value: Number | Word | Pair | ParsedCall, register: Register) -> object:
    match value:
        case Number(number, has_unit):
            return Duration(number) if has_unit else number
        case Word(word):
            return word
        case Pair(left, right):
            return _plain(text, left, register), _plain(text, right, register)
        case ParsedCall():
            return build(text, value, register)


def _described(value: object) -> str:
    match value:
        case Duration():
            return f"a time ({value:.12g} seconds)"
        case float():
            return f"the number {value:.12g}"
        case str():
            return f"the word {value!r}"
        case tuple():
            return f"the pair {':'.join(str(each) for each in value)}"
        case _:
            return f"the utility {value}"


# What the annotation of a parameter asks for, and how a message says it. `object` asks for nothing.
_WANTED: dict[object, tuple[Callable[[object], bool], str]] = {
    Seconds: (lambda value: isinstance(value, float), "a time in seconds, or with a unit like 5min"),
    float: (lambda value: type(value) is float, "a plain number without a unit"),
    str: (lambda value: isinstance(value, str), "a word"),
    Utility: (lambda value: not isinstance(value, (float, str, tuple)), "a utility, as in uniform(60)"),
}


def parse_utility(text: str) -> Utility:
    """Return the utility a text describes; whatever is wrong is named with its place in the text.

    >>> str(parse_utility("LogLaplace(scale=1min, shape=1)"))
    'log-laplace(60, 1)'
    """
    if not isinstance(text, str):
        raise UtilityError(f"the utility is {shown(text)}, expected a text like log-laplace(60, 1)")
    return build(text, read(text), UTILITIES)


def utility_of(given: Utility | str | None) -> Utility:
    """Return a utility that was given as itself or as a text; anything else is refused."""
    if isinstance(given, str):
        return parse_utility(given)
    if given is None or not hasattr(given, "inverse"):
        raise UtilityError(
            f"the utility is {shown(given)}, expected a text like log-laplace(60, 1), or a utility; "
            "captime.from_callable makes one of a function"
        )
    return given


def survival(distribution: Any) -> Utility:  # any object with `sf`: SciPy has no public common type
    """Return the chance that a random deadline is still ahead, for any object with a survival function `sf`.

    A frozen distribution of scipy.stats keeps its name and numbers in the textual form.
    """
    function = getattr(distribution, "sf", None)
    if function is None:
        raise UtilityError(
            f"{shown(distribution)} has no survival function, expected an object with a method sf(t), like "
            "scipy.stats.weibull_min(1.5, scale=60)"
        )
    frozen = survival_of_frozen(distribution)
    if frozen is not None:
        return frozen
    name = f"the survival function of {type(distribution).__name__}"
    return PythonFunction(function, name, zero_tail=True)
