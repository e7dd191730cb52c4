"""The recommended configuration in forms that people paste: JSON, Python, TOML, assignments, arguments, irace."""

import json
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any

Settings = Mapping[str, Any]


def as_json(settings: Settings) -> str:
    """One JSON object."""
    return json.dumps(dict(settings), ensure_ascii=False)


def as_python(settings: Settings) -> str:
    """A dictionary."""
    return repr(dict(settings))


def as_toml(settings: Settings) -> str:
    """An inline table, for `[configurations]` or the favourites of a `[space]`."""
    inside = ", ".join(f"{_key(name)} = {_toml(value)}" for name, value in settings.items())
    return f"{{ {inside} }}" if inside else "{}"


def as_pcs(settings: Settings) -> str:
    """`name='value'` with commas between, as SMAC prints configurations of the space in a PCS file."""
    return ", ".join(f"{name}='{_escaped(' '.join(_words(value)))}'" for name, value in settings.items())


def as_arguments(settings: Settings) -> str:
    """`-name 'value'` as wrappers of ParamILS, SMAC and AClib take them, quoted for a shell."""
    return " ".join(quote(word) for name, value in settings.items() for word in (f"-{name}", *_words(value)))


def as_irace(settings: Settings) -> str:
    """A line of names and a line of values, as irace's file of initial configurations has them."""
    values = ['"' + " ".join(_words(value)).replace('"', r"\"") + '"' for value in settings.values()]
    return "\n".join((" ".join(settings), " ".join(values)))


def as_command(words: Sequence[str]) -> str:
    """A command line, quoted for a shell."""
    return " ".join(quote(word) for word in words)


FORMS: dict[str, Callable[[Settings], str]] = {
    "json": as_json,
    "python": as_python,
    "toml": as_toml,
    "pcs": as_pcs,
    "arguments": as_arguments,
    "irace": as_irace,
}
"""Forms that need nothing but the settings."""


def can_say(form: str, settings: Settings) -> bool:
    """Return whether a form has words for these settings: settings of functions may be nested, or None."""
    if form in ("json", "python"):
        return True
    if form == "toml":
        return not _has_none(settings)
    return all(not isinstance(part, Mapping | list) and part is not None for part in _parts(settings))


def _parts(settings: Settings) -> list[Any]:
    """Return the values, and those inside lists of words, which are the only lists that command lines have."""
    return [part for value in settings.values() for part in (value if isinstance(value, list) else [value])]


def _has_none(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_none, inner))


OTHER_NAMES = {"dict": "python", "command-line": "command", "shell": "command", "call": "command", "smac": "pcs"}
"""What people call some forms, too."""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", r"\'")


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return [str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)]


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    return name if bare else json.dumps(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return as_toml(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
