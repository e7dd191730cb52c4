"""Optuna's storages, SQLite and journal: read as they are, without Optuna.

Both hold the same things in different clothes: studies with directions, trials with a state, values and parameters. A
parameter is stored as a number together with its distribution, which says what the number stands for.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.programs.protocol import Setting
from captime.tuners.protocol import Incumbent, TunerResult

_SQLITE = b"SQLite format 3\x00"
_LARGEST = 1 << 30
_WHOLE = ("IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution")
# Operations of the journal, by their numbers there.
_CREATE_STUDY, _DELETE_STUDY, _CREATE_TRIAL, _SET_PARAMETER, _SET_STATE = 0, 1, 4, 5, 6
_COMPLETE = 1
_DIRECTIONS = {1: "MINIMIZE", 2: "MAXIMIZE"}


@dataclass(slots=True)
class _Trial:
    number: int
    complete: bool = False
    value: float = math.nan
    settings: dict[str, Setting] = field(default_factory=dict)


@dataclass(slots=True)
class _Study:
    name: str
    directions: list[str] = field(default_factory=list)
    trials: list[_Trial] = field(default_factory=list)


def recognises(path: Path, start: bytes) -> bool:  # noqa: ARG001 (storages have any name)
    """Tell a database or a journal by its first bytes; the journal of an older release may have any key first."""
    return start.startswith(_SQLITE) or (start.startswith(b"{") and b'"op_code"' in start.partition(b"\n")[0])


def read(path: Path, top: int | None, study: str | None) -> TunerResult:
    """Read the best completed trials of a study."""
    with path.open("rb") as stream:
        is_database = stream.read(len(_SQLITE)) == _SQLITE
    studies = _from_database(path) if is_database else _from_journal(path)
    chosen = _chosen(studies, study, path)
    if len(chosen.directions) != 1:
        raise ScenarioError(
            f"{path}: the study {chosen.name!r} has {len(chosen.directions)} objectives, expected one, because "
            "incumbents are the best by one value; write the settings of the trials you mean into a CSV file"
        )
    done = [trial for trial in chosen.trials if trial.complete and not math.isnan(trial.value)]
    if not done:
        raise ScenarioError(
            f"{path}: the study {chosen.name!r} has {len(chosen.trials)} trials and none is complete, expected at "
            "least one with a value; let Optuna finish one"
        )
    sign = -1.0 if chosen.directions[0] == "MAXIMIZE" else 1.0
    done.sort(key=lambda trial: (sign * trial.value, trial.number))
    incumbents = [
        Incumbent(trial.settings, f"trial {trial.number} of study {chosen.name}, value {trial.value:.6g}")
        for trial in done
    ]
    return TunerResult("optuna", path, incumbents[: top or 1])


def _chosen(studies: list[_Study], wanted: str | None, path: Path) -> _Study:
    names = ", ".join(each.name for each in studies) or "none"
    found = [each for each in studies if wanted is None or each.name == wanted]
    if wanted is not None and not found:
        raise ScenarioError(f"{path}: --study is {wanted!r}, but the storage has no such study; there are: {names}")
    if len(found) != 1:
        raise ScenarioError(
            f"{path}: the storage has {len(studies)} studies ({names}), expected one; name it with --study"
        )
    return found[0]


# ------------------------------------------------------------------ SQLite


def _from_database(path: Path) -> list[_Study]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            return _studies(database)
    except sqlite3.Error as error:
        raise ScenarioError(
            f"{path}: this database is no storage of Optuna that can be read ({error}); expected its tables studies, "
            "trials, trial_params and trial_values"
        ) from None


def _studies(database: sqlite3.Connection) -> list[_Study]:
    found: dict[int, _Study] = {
        number: _Study(str(name)) for number, name in database.execute("SELECT study_id, study_name FROM studies")
    }
    for number, direction in database.execute(
        "SELECT study_id, direction FROM study_directions ORDER BY study_id, objective"
    ):
        found[number].directions.append(str(direction))
    trials: dict[int, _Trial] = {}
    for key, number, study, state in database.execute("SELECT trial_id, number, study_id, state FROM trials"):
        trials[key] = _Trial(int(number), str(state) == "COMPLETE")
        found[study].trials.append(trials[key])
    infinite = {"INF_POS": math.inf, "INF_NEG": -math.inf}
    for key, value, kind in database.execute(
        "SELECT trial_id, value, value_type FROM trial_values WHERE objective = 0"
    ):
        trials[key].value = infinite.get(str(kind), math.nan if value is None else value)
    for key, name, value, distribution in database.execute(
        "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params ORDER BY param_id"
    ):
        _put(trials[key].settings, str(name), value, str(distribution))
    return list(found.values())


# ------------------------------------------------------------------ journal


def _from_journal(path: Path) -> list[_Study]:
    studies: list[_Study | None] = []
    trials: list[_Trial] = []
    try:
        for entry in _entries(read_limited(path, _LARGEST)):
            _replay(entry, studies, trials)
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read ({error.strerror}); expected a journal of Optuna") from None
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ScenarioError(
            f"{path}: this journal is not as Optuna writes it ({type(error).__name__}: {error}); export the best "
            "settings to a CSV file"
        ) from None
    return [study for study in studies if study is not None]


def _entries(raw: bytes) -> Iterator[dict[str, Any]]:
    """Yield the operations; a last line that was cut off while it was written is left out, as Optuna does."""
    lines = raw.splitlines()
    for number, line in enumerate(lines):
        try:
            yield json.loads(line)
        except ValueError:
            if number + 1 < len(lines):
                raise


def _replay(entry: Mapping[str, Any], studies: list[_Study | None], trials: list[_Trial]) -> None:
    operation = entry["op_code"]
    if operation == _CREATE_STUDY:
        directions = [_DIRECTIONS.get(each, "MINIMIZE") for each in entry["directions"]]
        # Two workers may both have asked for it; the first has made it.
        if all(study is None or study.name != entry["study_name"] for study in studies):
            studies.append(_Study(entry["study_name"], directions))
    elif operation == _DELETE_STUDY:
        # Numbers are not given twice: a study that is gone keeps its place.
        studies[entry["study_id"]] = None
    elif operation == _CREATE_TRIAL:
        study = studies[entry["study_id"]]
        if study is None:
            return
        trial = _Trial(len(study.trials))
        _set_state(trial, entry)
        for name, value in entry.get("params", {}).items():
            _put(trial.settings, name, value, entry["distributions"][name])
        trials.append(trial)
        study.trials.append(trial)
    elif operation == _SET_PARAMETER:
        trial = trials[entry["trial_id"]]
        _put(trial.settings, entry["param_name"], entry["param_value_internal"], entry["distribution"])
    elif operation == _SET_STATE:
        _set_state(trials[entry["trial_id"]], entry)


def _set_state(trial: _Trial, entry: Mapping[str, Any]) -> None:
    trial.complete = entry.get("state", 0) == _COMPLETE
    value = (entry.get("values") or [entry.get("value")])[0]
    if value is not None:
        trial.value = float(value)


def _put(settings: dict[str, Setting], name: str, stored: float, distribution: str) -> None:
    """Store a parameter as the value that its number stands for; None, a choice of Optuna's, means left out."""
    described = json.loads(distribution)
    if described["name"] == "CategoricalDistribution":
        choice = described["attributes"]["choices"][int(stored)]
        if choice is not None:
            settings[name] = choice
    else:
        settings[name] = round(stored) if described["name"] in _WHOLE else float(stored)
