"""The few facts we need from an ASlib `description.txt`.

The file is YAML, and YAML readers are large and generous; what is needed here is a handful of top-level
keys whose values are a word or a list of words. Everything else in the file is passed over.
"""

from dataclasses import dataclass
from pathlib import Path

from captime.errors import TableError
from captime.sources.formats.lines import text_lines
from captime.sources.locations import shown

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
