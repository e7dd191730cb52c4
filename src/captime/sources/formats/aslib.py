"""An ASlib scenario: a folder with `description.txt` and `algorithm_runs.arff`.

`ok` runs took their runtime; `timeout` runs lasted at least the cutoff, whatever penalised time is written
beside them; `memout`, `crash`, `other` and `not_applicable` never finish. Each (instance, repetition) is a
column of the table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from captime.errors import TableError
from captime.sources.formats.cells import CellError, Ending, LongForm, read_number, read_run, read_status, text_lines
from captime.sources.table import RuntimeTable, shown

# A small reader for ARFF data files: names of the attributes, then rows of values.
#
# Written for untrusted files: every line is looked at once from left to right, there is no regular expression, and a
# line, the number of attributes and the number of cells are limited. Sparse rows are refused.

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


# The few facts we need from an ASlib `description.txt`.
#
# The file is YAML, and YAML readers are large and generous; what is needed here is a handful of top-level keys whose
# values are a word or a list of words. Everything else in the file is passed over.

_MAX_LINE = 1 << 20
_MAX_LINES = 1_000_000
_WANTED = frozenset({"scenario_id", "performance_measures", "performance_type", "maximize", "algorithm_cutoff_time"})
_FALSE, _TRUE = frozenset({"false", "no", "off"}), frozenset({"true", "yes", "on"})


@dataclass(frozen=True)
class Description:
    """What a scenario says about its runs.

    Attributes:
        scenario: Its name, or nothing.
        measure: The column that holds runtimes.
        cutoff: Seconds after which runs were stopped; None if unknown or unlimited.
        other_measures: Further columns of type runtime that were not chosen.
    """

    scenario: str
    measure: str
    cutoff: float | None
    other_measures: tuple[str, ...]


def read_description(path: Path) -> Description:
    """Read and check a scenario's description."""
    facts = _facts(path)
    measures = _required(facts, "performance_measures", path)
    types = [word.lower() for word in _required(facts, "performance_type", path)]
    runtimes = [number for number, kind in enumerate(types) if kind == "runtime" and number < len(measures)]
    if not runtimes:
        raise TableError(
            f"{path.name}: performance_type is {', '.join(map(shown, types))} for "
            f"{', '.join(map(shown, measures))}; "
            f"expected a measure of type runtime. Scenarios of solution quality alone hold no runtimes."
        )
    chosen = runtimes[0]
    _check_direction(facts.get("maximize", []), chosen, measures[chosen], path)
    name = facts.get("scenario_id", [])
    return Description(
        scenario=name[0] if name and name[0] != "?" else "",
        measure=measures[chosen],
        cutoff=_cutoff(facts.get("algorithm_cutoff_time", []), path),
        other_measures=tuple(measures[number] for number in runtimes[1:]),
    )


def _required(facts: dict[str, list[str]], key: str, path: Path) -> list[str]:
    values = facts.get(key, [])
    if not values:
        raise TableError(f"{path.name}: there is no {key}; expected it as a top-level key. Is it an ASlib scenario?")
    return values


def _check_direction(maximize: list[str], chosen: int, measure: str, path: Path) -> None:
    word = maximize[chosen].lower() if chosen < len(maximize) else "false"
    if word in _TRUE:
        raise TableError(f"{path.name}: {shown(measure)} is to be maximised; expected runtimes, where less is better")
    if word not in _FALSE:
        raise TableError(f"{path.name}: maximize is {shown(word)} for {shown(measure)}; expected true or false")


def _cutoff(values: list[str], path: Path) -> float | None:
    """Seconds; 0, `?` and a missing key all mean that there is none."""
    word = values[0] if values else "?"
    if word in {"?", ""}:
        return None
    try:
        seconds = float(word) if word.isascii() and "_" not in word else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise TableError(
            f"{path.name}: algorithm_cutoff_time is {shown(word)}; expected seconds, 0 for none, or '?' for unknown"
        )
    return seconds or None


def _facts(path: Path) -> dict[str, list[str]]:
    """Return the wanted top-level keys with their words; a scalar is a list of one."""
    facts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in text_lines(path, max_line=_MAX_LINE):
        if number > _MAX_LINES:
            raise TableError(f"{path.name}, line {number}: more than {_MAX_LINES} lines; is it a description?")
        text = _without_comment(line).strip()
        if not text:
            continue
        if text == "-" or text.startswith("- "):
            if current is not None:
                current.append(_unquoted(text[1:]))
            continue
        if line[0] in " \t" or ":" not in text:
            # Nested maps and wrapped texts belong to keys that are not ours, or end a list of ours.
            continue
        key, _, value = text.partition(":")
        key = _unquoted(key).lower()
        current = None
        if key in _WANTED:
            if key in facts:
                raise TableError(f"{path.name}, line {number}: {key} occurs twice; expected it once")
            current = facts[key] = _words(value.strip(), f"{path.name}, line {number}")
    return facts


def _words(value: str, where: str) -> list[str]:
    if not value.startswith("["):
        return [_unquoted(value)] if value else []
    if not value.endswith("]"):
        raise TableError(f"{where}: the list is not closed on its line; expected [a, b] or one item per line")
    return [_unquoted(word) for word in value[1:-1].split(",") if word.strip()]


def _unquoted(word: str) -> str:
    word = word.strip()
    if len(word) >= 2 and word[0] in "'\"" and word[-1] == word[0]:
        return word[1:-1].strip()
    return word


def _without_comment(line: str) -> str:
    """Return the line up to a `#` that starts it or follows a blank, outside quotes."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and (at == 0 or line[at - 1] in " \t:-[,"):
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at]
    return line


DESCRIPTION = "description.txt"
RUNS = "algorithm_runs.arff"

_MISSING = "it is missing ('?'); expected"


def read_aslib(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a scenario folder."""
    for name in (DESCRIPTION, RUNS):
        if not (path / name).is_file():
            raise TableError(
                f"{path.name}: there is no {name} in the folder; expected an ASlib scenario with "
                f"{DESCRIPTION} and {RUNS}. Name the scenario's own folder."
            )
    description = read_description(path / DESCRIPTION)
    runs = _read_runs(path / RUNS, description)
    notes = [f"runtimes are the measure {shown(description.measure)}"] if description.measure != "runtime" else []
    if description.other_measures:
        notes.append(f"measures of runtime not used: {', '.join(map(shown, description.other_measures))}")
    name = description.scenario or path.resolve().name
    return runs.table(name, timeout=timeout, recorded_limit=description.cutoff, notes=notes)


def _read_runs(path: Path, description: Description) -> LongForm:
    arff = read_arff(path)
    at = [
        _find(arff.attributes, name, path)
        for name in ("instance_id", "repetition", "algorithm", description.measure, "runstatus")
    ]
    runs = LongForm(path.name)
    for number, values in arff.rows:
        instance, repetition, algorithm, runtime, status = (values[column] for column in at)
        role = "runstatus"
        try:
            ending = read_status(_known(status, "a status"))
            role = description.measure
            seconds, capped = _run(runtime, ending, cutoff_known=description.cutoff is not None)
            role = "repetition"
            again = _repetition(_known(repetition, "a whole number"))
            role = "algorithm"
            config = _known(algorithm, "a name")
            role = "instance_id"
            row = _known(instance, "a name")
        except CellError as flaw:
            raise flaw.at(f"{path.name}, line {number}, {role}") from None
        runs.add(number, config, row, seconds=seconds, capped=capped, repetition=again)
    return runs


def _run(runtime: str | None, ending: Ending, *, cutoff_known: bool) -> tuple[float, bool]:
    if runtime is None and ending is Ending.FINISHED:
        raise CellError(f"{_MISSING} seconds, because the run is ok. Correct the status or the time.")
    if ending is Ending.TIMED_OUT and cutoff_known:
        # The cutoff says it all; what is written here may be penalised, or when the process was finally gone.
        runtime = None
    return read_run(runtime or "", ending)


def _known(value: str | None, expected: str) -> str:
    if value is None:
        raise CellError(f"{_MISSING} {expected}. Fill it in.")
    return value


def _repetition(text: str) -> str:
    """Declared numeric, so 1 and 1.0 are the same repetition."""
    number = read_number(text)
    if not number.is_integer():
        raise CellError(f"found {shown(text)}; expected a whole number")
    return str(int(number))


def _find(attributes: Sequence[str], name: str, path: Path) -> int:
    exact = [number for number, attribute in enumerate(attributes) if attribute == name]
    alike = [number for number, attribute in enumerate(attributes) if attribute.lower() == name.lower()]
    found = exact or alike
    if len(found) != 1:
        listed = ", ".join(map(shown, attributes[:20]))
        raise TableError(
            f"{path.name}: found {len(found)} attributes named {shown(name)} among {listed}; expected one. "
            f"Compare the header with performance_measures in {DESCRIPTION}."
        )
    return found[0]
