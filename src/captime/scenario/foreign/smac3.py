"""SMAC3's scenario.json, as its output folder has it; the space stands in configspace.json beside it."""

import json
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.scenario.foreign.draft import ScenarioDraft, existing

_NOT_NEEDED = {
    "n_trials": "captime counts time, not runs; see [stop]",
    "objectives": "captime asks when an answer comes; target.until makes the time to a given quality count",
    "multi_objectives": "captime asks when an answer comes",
    "adaptive_capping": "captime always caps",
    "adaptive_capping_slackfactor": "captimes follow from the utility",
    "crash_cost": "a crash counts as a program that never answers",
    "termination_cost_threshold": "captime stops when the certificate is good enough",
    "instance_features": "instance features choose nothing here",
    "min_budget": "captime draws captimes at random",
    "max_budget": "captime draws captimes at random",
}
_SAY_NOTHING = {"name", "output_directory", "_meta", "use_default_config", "n_workers", "configspace"}


def read_smac3(path: Path, draft: ScenarioDraft) -> None:
    """Read a scenario of SMAC3."""
    found = _document(path)
    draft.target["command"] = ["./target-script"]
    draft.target["wrapper"] = "smac3"
    draft.lost.append(
        "the program: SMAC3 does not write down which function or script was run; name it in target.command"
    )
    draft.decided.append(
        "target.wrapper is 'smac3', for a script; a Python function is target.function, without a wrapper"
    )
    if found.pop("deterministic", False):
        draft.target["repeatable"] = True
        draft.decided.append("target.repeatable is true, because the file says deterministic")
    memory, limit = found.pop("trial_memory_limit", None), found.pop("trial_walltime_limit", None)
    if memory is not None:
        draft.megabytes(memory, "trial_memory_limit")
    cutoff = found.pop("runtime_cutoff", None)
    key, least = ("runtime_cutoff", cutoff) if cutoff is not None else ("trial_walltime_limit", limit)
    draft.worth(None if least is None else draft.seconds(least, key), f"{key} = {least}")
    if cutoff is None and limit is not None:
        draft.decided.append("the clock stays CPU time, though the limit was one of the wall clock; see target.clock")
    for key, field in (("cputime_limit", "cpu"), ("walltime_limit", "wall")):
        value = found.pop(key, None)
        # SMAC3 writes Infinity for "no limit".
        if isinstance(value, int | float) and 0 < value < float("inf"):
            draft.stop[field] = f"{value:g}s"
            draft.decided.append(f"stop.{field} is {value:g}s, from {key}")
    _space(path.parent, draft)
    _instances(found.pop("instances", None), path.parent, draft)
    seed, workers = found.pop("seed", None), found.get("n_workers")
    if isinstance(seed, int) and seed >= 0:
        draft.top["seed"] = seed
        draft.decided.append(f"seed = {seed}")
    if isinstance(workers, int) and workers > 1:
        draft.top["jobs"] = workers
        draft.decided.append(f"jobs = {workers}, from n_workers")
    draft.goal()
    for key, value in found.items():
        if key not in _SAY_NOTHING and value not in (None, [], "cost", float("inf")):
            shown = json.dumps(value)
            why = _NOT_NEEDED.get(key, "it is about how SMAC3 searches")
            draft.lost.append(f"{key} = {shown if len(shown) < 60 else shown[:57] + '...'}: {why}")


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}; name SMAC3's scenario.json") from None
    except ValueError as flaw:
        raise ScenarioError(f"{path} is no JSON ({flaw}); expected SMAC3's scenario.json") from None
    if not isinstance(found, dict) or not {"deterministic", "n_trials", "instances"} & found.keys():
        raise ScenarioError(
            f"{path} is no scenario of SMAC3; expected an object with deterministic, n_trials, instances"
        )
    return found


def _space(folder: Path, draft: ScenarioDraft) -> None:
    file = existing("configspace.json", [folder])
    draft.space["file"] = "configspace.json" if file is None else draft.named(file)
    if file is None:
        draft.lost.append("configspace.json was not found beside the file; name it in space.file")
    else:
        draft.decided.append(f"space.file is {draft.space['file']!r}")


def _instances(listed: Any, folder: Path, draft: ScenarioDraft) -> None:
    if not listed:
        draft.instances["values"] = [0]
        draft.decided.append("instances.values is [0]: the file has no instances; captime needs some to draw from")
        draft.instances["sampling"] = "replace"
        return
    if not isinstance(listed, list) or not all(isinstance(each, str | int | float) for each in listed):
        raise ScenarioError(f"{draft.source}: instances is {json.dumps(listed)[:60]}; expected a list of names")
    found = [existing(str(each), [folder, Path()]) for each in listed]
    if all(each is None for each in found):
        draft.instances["values"] = list(listed)
        draft.decided.append(f"instances.values has the {len(listed)} instances, none of which is a file here")
        return
    names = [str(each) if file is None else draft.named(file) for each, file in zip(listed, found, strict=True)]
    draft.companions[draft.list_name] = "\n".join([*dict.fromkeys(names), ""])
    draft.instances["list"] = draft.list_name
    draft.decided.append(f"instances.list is {draft.list_name}, with the {len(names)} instances of the file")
    if None in found:
        draft.lost.append(f"{found.count(None)} instances were not found, such as {names[found.index(None)]!r}")
