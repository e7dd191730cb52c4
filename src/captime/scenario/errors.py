"""What is wrong with a scenario, in words: file, line, field, what was found, what was expected, what to do."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from captime.errors import ScenarioError
from captime.programs.protocol import did_you_mean

# Where in a TOML file a field stands: good enough to send a reader to the right line, and silent where unsure.

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")


class Lines:
    """Knows on which line each table and each key begins.

    Args:
        text: The file.
    """

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        counts: dict[tuple[str, ...], int] = {}
        depth = 0
        for number, line in enumerate(text.splitlines(), start=1):
            header, key = _HEADER.match(line), _KEY.match(line)
            if depth == 0 and header is not None:
                table = _parts(header.group(2))
                if header.group(1) == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, str(counts[table]))
                self._found.setdefault(table, number)
            elif depth == 0 and key is not None:
                self._found.setdefault((*table, *_parts(key.group(1))), number)
            depth = max(0, depth + _opened(line)) if header is None or depth else depth

    def of(self, place: Sequence[str | int]) -> int | None:
        """Return the line of a field, or of the nearest table around it; None if even that was not found."""
        wanted = tuple(str(part) for part in place)
        while wanted:
            if wanted in self._found:
                return self._found[wanted]
            wanted = wanted[:-1]
        return None


def _parts(name: str) -> tuple[str, ...]:
    if name[:1] in "\"'":
        return (name[1:-1],)
    return tuple(part.strip().strip("\"'") for part in name.split("."))


def _opened(line: str) -> int:
    """Return how many more brackets a line opens than it closes, texts and comments left out."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"|\'[^\']*\'', "", line).partition("#")[0]
    return sum(bare.count(each) for each in "[{") - sum(bare.count(each) for each in "]}")


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "a list in square brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_too_short": "a text that is not empty",
    "too_short": "at least one entry",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
}
_WIDTH = 80


class SourceLocation:
    """A file and its lines, to say where something is wrong.

    Args:
        name: How to call the file.
        text: Its text; empty if there is no file.
    """

    def __init__(self, name: str, text: str = "") -> None:
        self.name = name
        self._lines = Lines(text)

    def __call__(self, *field: str | int) -> str:
        """`scenario.toml, line 7: target.memory`."""
        line = self._lines.of(field)
        where = self.name if line is None else f"{self.name}, line {line}"
        return f"{where}: {'.'.join(map(str, field))}" if field else where

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Put the file's name before complaints from rooms that do not know it."""
        try:
            yield
        except ScenarioError as error:
            if str(error).startswith(self.name):
                raise
            raise type(error)(f"{self.name}: {error}") from None


def refused(error: ValidationError, model: type[BaseModel], place: SourceLocation) -> ScenarioError:
    """Pydantic's complaints in our words; several are listed, each with its field."""
    said: dict[tuple[str | int, ...], str] = {}
    for each in error.errors(include_url=False):
        # Alternatives of one field (a number or "auto") are complained about one by one; the first says enough.
        field = tuple(part for part in each["loc"] if not _is_alternative(part))
        expected = _complaint(dict(each), field, model)
        if field in said and "expected" in said[field] and "expected " in expected:
            said[field] += " or " + expected.partition("expected ")[2]
        else:
            said.setdefault(field, expected)
    told = [f"{place(*field)} {complaint}" for field, complaint in said.items()]
    return ScenarioError(told[0] if len(told) == 1 else "\n  ".join([f"{len(told)} fields are wrong:", *told]))


def _is_alternative(part: str | int) -> bool:
    """Pydantic names the branch of a union as if it were a field: `int`, `list[str]`, `literal['auto']`."""
    return isinstance(part, str) and (
        part in ("int", "float", "str", "bool", "constrained-int", "dict[str,any]", "function-before")
        or part.startswith(("literal[", "list[", "function-", "constrained", "nullable["))
    )


def _complaint(error: Mapping[str, Any], field: Sequence[str | int], model: type[BaseModel]) -> str:
    kind, found, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "missing":
        return f"is missing; it says: {_description(field, model)}"
    if kind == "extra_forbidden":
        known = list(_fields_at(field[:-1], model))
        return "is unknown" + (did_you_mean(str(field[-1]), known) or f"; there are {', '.join(known)}")
    expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else ""
    return f"is {shown(found)}; " + (f"expected {expected}" if expected else error["msg"])


def shown(value: object) -> str:
    """Return a value for a message, never longer than a line."""
    try:
        text = repr(value)
    except ValueError:
        # Python writes no numbers of more than some thousand digits.
        text = "a number with thousands of digits"
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _fields_at(place: Sequence[str | int], model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of the section at that place."""
    fields: dict[str, Any] = dict(model.model_fields)
    for part in place:
        inner = fields.get(str(part))
        if inner is None:
            return {}
        kinds = [kind for kind in (inner.annotation, *get_args(inner.annotation)) if isinstance(kind, type)]
        section = next((kind for kind in kinds if issubclass(kind, BaseModel)), None)
        fields = {} if section is None else dict(section.model_fields)
    return fields


def _description(field: Sequence[str | int], model: type[BaseModel]) -> str:
    found = _fields_at(field[:-1], model).get(str(field[-1]))
    return "" if found is None else str(found.description)
