"""Command templates: placeholders are filled in word by word; no shell sees them, and nothing is split again.

A word such as `-decay={var_decay}` stays one word whatever the value holds. A word that is nothing but a placeholder
may stand for several words, if the value is a list. Doubled braces stand for themselves.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches

from captime.errors import ScenarioError
from captime.programs.protocol import Configuration, Setting, did_you_mean

FILLED_LATER = ("output", "scratch", "stdout")
"""Placeholders that only the slot supervisor can fill in."""

_PIECES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LATER = re.compile("|".join(re.escape(f"{{{name}}}") for name in (*FILLED_LATER, "part")))
# What a 32-bit program can take; stands for "no limit" in the old conventions.
_LARGEST = 2**31 - 1


def text_of(value: Setting) -> str:
    """Return a value as a word of a command line; numbers exactly, truth values as true and false.

    >>> text_of(0.1), text_of(3), text_of(True)
    ('0.1', '3', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def rounded_up(captime: float) -> str:
    """Return a captime in whole seconds, never less: a program that stops itself sooner would cheat itself."""
    return str(_LARGEST) if captime >= _LARGEST else str(math.ceil(captime))


class Template:
    """A command with placeholders.

    Args:
        words: One per argv element.
        where: Where it is written, for messages.

    Attributes:
        words: As written.
        names: The placeholders in it.
    """

    def __init__(self, words: Sequence[str], where: str) -> None:
        self.words = tuple(words)
        self._where = where
        self._pieces = [_parse(word, f"{where}: word {number}") for number, word in enumerate(words, start=1)]
        self.names = {name for pieces in self._pieces for name in pieces[1::2]}

    def check(self, known: Sequence[str]) -> None:
        """Refuse placeholders that cannot be filled in."""
        for name in sorted(self.names):
            if name not in known:
                near = get_close_matches(name, known, n=1)
                there = ", ".join(f"{{{each}}}" for each in known)
                hint = f"did you mean {{{near[0]}}}?" if near else f"there are {there}."
                raise ScenarioError(
                    f"{self._where}: nothing is called {{{name}}}; {hint} Braces that stand for themselves are written "
                    "{{ and }}."
                )

    def fill(self, values: Mapping[str, Setting]) -> list[str]:
        """Return the words with everything filled in but what the supervisor fills in later."""
        argv: list[str] = []
        for pieces in self._pieces:
            if (
                len(pieces) == 3
                and not pieces[0]
                and not pieces[2]
                and isinstance(found := values.get(pieces[1]), list)
            ):
                argv += [passed_unchanged(each, pieces[1], self._where) for each in found]
            else:
                argv.append("".join(self._piece(index, piece, values) for index, piece in enumerate(pieces)))
        return argv

    def _piece(self, index: int, piece: str, values: Mapping[str, Setting]) -> str:
        if index % 2 == 0:
            return piece
        if piece in FILLED_LATER:
            return f"{{{piece}}}"
        if piece not in values:
            raise ScenarioError(f"{self._where}: {{{piece}}} has no value here")
        value = values[piece]
        if isinstance(value, list):
            raise ScenarioError(
                f"{self._where}: {piece} is a list of words, which can only stand alone; write {{{piece}}} as a word "
                "of its own, or give it a single value"
            )
        return passed_unchanged(text_of(value), piece, self._where)


def passed_unchanged(text: str, name: str, where: str) -> str:
    """The text itself; refused if a supervisor would take it for a placeholder, or no command line can carry it."""
    if "\0" in text or _LATER.search(text):
        raise ScenarioError(
            f"{where}: the value {text!r} of {name} cannot be passed on unchanged; it must not hold a NUL character or "
            f"one of {', '.join(f'{{{each}}}' for each in (*FILLED_LATER, 'part'))}"
        )
    return text


def _parse(word: str, where: str) -> list[str]:
    """Literal text and placeholder names in turn, beginning and ending with text."""
    pieces: list[str] = []
    text, end = "", 0
    for match in _PIECES.finditer(word):
        text += word[end : match.start()]
        end = match.end()
        if match.group() in ("{{", "}}"):
            text += match.group()[0]
        elif match.group(1):
            pieces += [text, match.group(1)]
            text = ""
        else:
            raise ScenarioError(
                f"{where}, {word!r}: found {match.group()!r}; expected a name in braces, such as {{instance}}. Braces "
                "that stand for themselves are written {{ and }}."
            )
    pieces.append(text + word[end:])
    if any(_LATER.search(literal) for literal in pieces[0::2]):
        raise ScenarioError(
            f"{where}, {word!r}: in doubled braces stands a word that is filled in later; choose another"
        )
    return pieces


def safe_path(path: str) -> str:
    """Return a path that no program takes for an option.

    >>> safe_path("-v"), safe_path("a.cnf")
    ('./-v', 'a.cnf')
    """
    return f"./{path}" if path.startswith("-") else path


# How settings become words of a command line where a command says `{settings}`.

SettingsToArguments = Callable[[Mapping[str, Setting]], list[str]]
"""Settings into words; a parameter space brings its own."""


def without_exponent(value: Setting) -> str:
    """Return a value as a word; numbers written out, as some readers know no exponents.

    >>> without_exponent(1e-07), without_exponent(2.5), without_exponent("a b")
    ('0.0000001', '2.5', 'a b')
    """
    text = text_of(value)
    return f"{Decimal(text):f}" if isinstance(value, float) and "e" in text else text


@dataclass(frozen=True, slots=True)
class ArgumentStyle:
    """The same few words for every setting, or a switch of its own for some.

    Attributes:
        words: For one setting, with `{name}` and `{value}`: `["-{name}", "{value}"]` or `["--{name}={value}"]`.
        switches: What to write before the value of a setting, by name: `--decay=` is glued to it, `-w ` with a blank at
            its end is a word of its own.
        text: How a value is written.
    """

    words: tuple[str, ...] = ("-{name}", "{value}")
    switches: Mapping[str, str] = field(default_factory=dict)
    text: Callable[[Setting], str] = text_of

    def __call__(self, settings: Mapping[str, Setting]) -> list[str]:
        """Return the words for these settings, in their order."""
        return [word for name, value in settings.items() for word in self._worded(name, value)]

    def _worded(self, name: str, value: Setting) -> Sequence[str]:
        if isinstance(value, list):
            # The user wrote the words themselves; there is nothing to add.
            return value
        text, switch = self.text(value), self.switches.get(name)
        if switch is None:
            # The name is put in first and cannot be mistaken for a place for the value afterwards.
            return [word.replace("{value}", "\0").replace("{name}", name).replace("\0", text) for word in self.words]
        if switch.endswith(" "):
            return [switch.strip(), text]
        return [switch + text] if switch + text else []


# Whether a configuration's settings and a command fit together: nothing missing, nothing unused, nothing too long.

RESERVED = ("seed", "instance", "captime", "config", "here", "settings", *FILLED_LATER)
"""Placeholders that are not settings."""

# One word of a command line cannot be longer than this on Linux, its end included.
_LONGEST_WORD = 131_072 - 1


def check_settings(configuration: Configuration, template: Template, where: str, *, all_passed: bool) -> None:
    """Refuse settings that do not fit the command.

    Args:
        configuration: The configuration with the settings.
        template: The command.
        where: How to call the configuration in messages.
        all_passed: Whether every setting is passed on in any case, as wrappers do.
    """
    settings = configuration.settings
    for name in settings:
        if name in RESERVED:
            raise ScenarioError(f"{where} has a setting called {name!r}, which already means something; rename it")
    known = [*settings, *(name for name in RESERVED if name != "stdout")]
    missing = sorted(name for name in template.names if name not in known)
    if missing:
        near = get_close_matches(missing[0], known, n=1)
        hint = f"; it has {near[0]!r}, perhaps that is meant" if near else ""
        raise ScenarioError(
            f"{where}: the command needs {{{missing[0]}}}, but the configuration has no such setting{hint}. Add it, or "
            "correct the command; braces that stand for themselves are written {{ and }}"
        )
    if not all_passed and "settings" not in template.names:
        for name in settings:
            if name not in template.names:
                raise ScenarioError(
                    f"{where}: setting {name!r} is not used by the command"
                    f"{did_you_mean(name, sorted(template.names)) or ';'} write {{{name}}} where it belongs, "
                    "or {settings} for all of them"
                )
    for name, value in settings.items():
        for text in value if isinstance(value, list) else [text_of(value)]:
            if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_WORD - 1024:
                raise ScenarioError(
                    f"{where}: setting {name!r} has {len(text):,} characters, and a word of a command line cannot have "
                    f"more than {_LONGEST_WORD - 1024:,} or so; write it to a file and pass the file's name"
                )
