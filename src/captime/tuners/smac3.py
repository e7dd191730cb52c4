"""SMAC3's runhistory.json, of its first and second major version.

Beside the run history SMAC3 writes intensifier.json, which names the incumbents. Where it is missing, the incumbent is
told as SMAC3 tells it: the configuration with the most trials, and among those the one with the lowest mean cost.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.programs.protocol import Setting
from captime.tuners.protocol import Incumbent, TunerResult

_LARGEST = 1 << 30
_BESIDE = "intensifier.json"


@dataclass(slots=True)
class _Record:
    """What one configuration was seen to cost, by instance, seed and budget."""

    costs: dict[tuple[str, str, str], float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return sum(self.costs.values()) / len(self.costs) if self.costs else math.inf


def recognises(path: Path, start: bytes) -> bool:
    """Tell a run history by what its JSON begins with, or by its usual name."""
    text = start.lstrip()
    if not text.startswith(b"{"):
        return False
    return path.name.endswith("runhistory.json") or any(
        text[1:].lstrip().startswith(key) for key in (b'"stats"', b'"data"', b'"config_origins"', b'"configs"')
    )


def read(path: Path, top: int | None, study: str | None) -> TunerResult:  # noqa: ARG001 (a run history is one study)
    """Read the incumbents; with `top`, those that follow them too."""
    document = _document(path)
    try:
        records, instances = _records(document["data"])
        configs = {str(number): _settings(each) for number, each in document["configs"].items()}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ScenarioError(
            f"{path}: this is no run history as SMAC3 writes it ({type(error).__name__}: {error}); expected an object "
            'with "data" and "configs"'
        ) from None
    tried = [number for number in configs if number in records]
    if not tried:
        raise ScenarioError(f"{path}: the run history has no finished trial, so there is no incumbent; let SMAC3 run")
    named = _named(path.with_name(_BESIDE), configs)
    tried.sort(key=lambda number: (number not in named, -len(records[number].costs), records[number].mean))
    incumbents = [
        Incumbent(
            configs[number],
            f"configuration {number}, mean cost {records[number].mean:.6g} over {len(records[number].costs)} trials",
        )
        for number in tried
    ]
    count = top or max(1, len(named & set(tried)))
    return TunerResult("smac3", path, incumbents[:count], sorted(instances) or None)


def _document(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_limited(path, _LARGEST))
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read ({error.strerror}); expected SMAC3's runhistory.json") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: this is no JSON ({error}); expected SMAC3's runhistory.json, whole") from None
    if not isinstance(found, dict):
        raise ScenarioError(f"{path}: this is {type(found).__name__} in JSON, expected the object of a run history")
    return found


def _records(data: list[Any]) -> tuple[dict[str, _Record], set[str]]:
    """Return what was seen of every configuration, and the instances, from any of the three shapes of a trial."""
    records: dict[str, _Record] = {}
    instances: set[str] = set()
    for trial in data:
        if isinstance(trial, dict):
            key = [trial[name] for name in ("config_id", "instance", "seed", "budget")]
            cost = trial["cost"]
        elif isinstance(trial[0], list):  # the first major version: a key and a value
            key, cost = trial[0], trial[1][0]
        else:
            key, cost = trial[:4], trial[4]
        if isinstance(cost, list):
            raise ValueError("a cost of several objectives; expected one number")  # noqa: TRY004 (told as a wrong value)
        config, instance = str(key[0]), key[1]
        if instance is not None:
            instances.add(str(instance))
        if cost is not None:
            seen = records.setdefault(config, _Record())
            seen.costs[str(instance), str(key[2]), str(key[3])] = float(cost)
    return records, instances


def _settings(config: Mapping[str, Any]) -> dict[str, Setting]:
    return {name: value for name, value in config.items() if value is not None}


def _named(beside: Path, configs: Mapping[str, Any]) -> set[str]:
    """Return the incumbents that the intensifier names; none if its file is missing or says something else."""
    try:
        listed = json.loads(read_limited(beside, _LARGEST))["incumbent_ids"]
        return {str(number) for number in listed} & set(configs)
    except (OSError, ValueError, KeyError, TypeError):
        return set()
