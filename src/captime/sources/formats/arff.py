"""A small reader for ARFF data files: names of the attributes, then rows of values.

Written for untrusted files: every line is looked at once from left to right, there is no regular
expression, and a line, the number of attributes and the number of cells are limited. Sparse rows are
refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from captime.errors import TableError
from captime.sources.formats.lines import text_lines
from captime.sources.locations import shown

MAX_LINE = 1 << 20
MAX_ATTRIBUTES = 10_000
MAX_CELLS = 10_000_000

_TYPES = frozenset({"string", "numeric", "real", "integer"})
_QUOTES = "'\""


@dataclass(frozen=True)
class Arff:
    """The header and the rows.

    Attributes:
        attributes: The names, in order.
        rows: Line number and values of each row; None for an unquoted `?`. Can be walked through once.
    """

    attributes: tuple[str, ...]
    rows: Iterator[tuple[int, list[str | None]]]


def read_arff(path: Path) -> Arff:
    """Read the header now, and the rows as they are asked for."""
    lines = ((number, line.strip()) for number, line in text_lines(path, max_line=MAX_LINE))
    content = ((number, line) for number, line in lines if line and not line.startswith("%"))
    names: dict[str, int] = {}
    for number, line in content:
        where = f"{path.name}, line {number}"
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            break
        if keyword == "@attribute":
            names[_attribute(line[len(keyword) :], where, names)] = number
        elif keyword != "@relation":
            raise TableError(
                f"{where}: found {shown(line)} before @data; expected @relation, @attribute or @data. "
                f"Rows of values must follow a line @data."
            )
    else:
        raise TableError(f"{path.name}: there is no line @data; expected one before the rows. Is the file complete?")
    if not names:
        raise TableError(f"{path.name}: there is no @attribute before @data; expected the names of the columns")
    return Arff(tuple(names), _rows(path, content, len(names)))


def _rows(path: Path, content: Iterator[tuple[int, str]], width: int) -> Iterator[tuple[int, list[str | None]]]:
    for count, (number, line) in enumerate(content, start=1):
        where = f"{path.name}, line {number}"
        if count * width > MAX_CELLS:
            raise TableError(f"{where}: more than {MAX_CELLS} cells; expected a smaller file")
        if line.startswith("{"):
            raise TableError(f"{where}: found a sparse row; expected all values, separated by commas")
        values = split_values(line, where)
        if len(values) != width:
            raise TableError(
                f"{where}: found {len(values)} values; expected {width}, one per attribute. "
                f"A value with a comma needs quotes."
            )
        yield number, values


def split_values(line: str, where: str) -> list[str | None]:
    """Return the values of a row; quotes of either kind enclose one, a backslash takes the next character as is."""
    if "'" not in line and '"' not in line and "\\" not in line:
        return [None if value == "?" else value for value in map(str.strip, line.split(","))]
    values: list[str | None] = []
    at = 0
    while True:
        value, at = _value(line, at, f"{where}, value {len(values) + 1}")
        values.append(value)
        if at >= len(line):
            return values
        at += 1


def _value(line: str, at: int, where: str) -> tuple[str | None, int]:
    """One value, and the position of the comma after it (or the end)."""
    at = _skip_blanks(line, at)
    if at < len(line) and line[at] in _QUOTES:
        value, at = _quoted(line, at, where)
        at = _skip_blanks(line, at)
        if at < len(line) and line[at] != ",":
            raise TableError(f"{where}: found {shown(line[at])} after the closing quote; expected a comma")
        return value, at
    end = line.find(",", at)
    end = len(line) if end < 0 else end
    value = line[at:end].strip()
    return (None if value == "?" else value), end


def _quoted(line: str, at: int, where: str) -> tuple[str, int]:
    """Return the text between quotes, and the position after the closing one."""
    quote = line[at]
    letters: list[str] = []
    at += 1
    while at < len(line):
        letter = line[at]
        if letter == quote:
            return "".join(letters), at + 1
        if letter == "\\" and at + 1 < len(line):
            at += 1
            letter = line[at]
        letters.append(letter)
        at += 1
    raise TableError(f"{where}: the quote {quote} is not closed on its line; expected a closing quote")


def _skip_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t":
        at += 1
    return at


def _attribute(text: str, where: str, names: dict[str, int]) -> str:
    """Return the name of a declared attribute; its type has to be one we know, but is not used."""
    at = _skip_blanks(text, 0)
    if at < len(text) and text[at] in _QUOTES:
        name, at = _quoted(text, at, where)
    else:
        words = text[at:].split(None, 1)
        name = words[0] if words else ""
        at += len(name)
    kind = text[at:].strip()
    if not name or not kind:
        raise TableError(f"{where}: found {shown('@attribute' + text)}; expected @attribute, a name and a type")
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise TableError(f"{where}: the set of values is not closed; expected a closing brace")
        split_values(kind[1:-1], where)
    elif kind.split(None, 1)[0].lower() not in _TYPES:
        raise TableError(f"{where}: found the type {shown(kind)}; expected numeric, string or a set in braces")
    if name in names:
        raise TableError(f"{where}: the attribute {shown(name)} occurs twice; expected different names")
    if len(names) >= MAX_ATTRIBUTES:
        raise TableError(f"{where}: more than {MAX_ATTRIBUTES} attributes; expected fewer")
    return name
