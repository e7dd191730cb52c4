"""Scenario files of AClib, SMAC 2 and ParamILS: `key = value` or `key value`, one per line."""

import re
from pathlib import Path

from captime.errors import ScenarioError
from captime.scenario.foreign.draft import ScenarioDraft, existing, take_list

_SYNONYMS = {
    "algo": ("algoexec", "algo_exec", "algoexecutable"),
    "execdir": ("exec_dir", "algo_exec_dir"),
    "deterministic": ("algo_deterministic",),
    "paramfile": ("pcs_file", "param_file", "pcsfile"),
    "run_obj": ("runobj",),
    "overall_obj": ("intra_obj", "overallobj", "intra_instance_obj"),
    "cutoff_time": ("algo_cutoff_time", "target_run_cputime_limit", "cutofftime", "cutoff"),
    "memory_limit": (),
    "tunertimeout": ("tuner_timeout", "cputime_limit", "tunertime_limit"),
    "wallclock_limit": ("runtime_limit",),
    "runcount_limit": ("totalnumrunslimit", "total_num_runs_limit"),
    "instance_file": ("instances", "i", "instancefile", "train_inst_fn"),
    "instance_seed_file": ("instanceseedfile",),
    "test_instance_file": ("test_instances", "testinstancefile", "test_inst_fn"),
    "test_instance_seed_file": (),
}
_CANONICAL = {other: name for name, others in _SYNONYMS.items() for other in (name, *others)}
_NOT_NEEDED = {
    "feature_file": "instance features choose nothing here",
    "outdir": "captime writes one ledger beside the scenario",
    "output_dir": "captime writes one ledger beside the scenario",
    "cutoff_length": "captime knows no lengths of runs",
    "cost_for_crash": "a crash counts as a program that never answers",
    "initial_incumbent": "the default configuration is always first; others are space.favourites",
}


def read_aclib(path: Path, draft: ScenarioDraft) -> None:
    """Read a scenario of AClib, SMAC 2 or ParamILS."""
    found = _options(path, draft)
    folder = path.parent
    execdir = existing(found.pop("execdir", "."), [Path(), folder, *folder.absolute().parents]) or folder
    places = [execdir, folder, *folder.absolute().parents, Path()]
    _target(found, execdir, places, draft)
    _space(found, places, draft)
    _instances(found, places, draft)
    cutoff = found.pop("cutoff_time", None)
    draft.worth(None if cutoff is None else draft.seconds(cutoff, "cutoff_time"), f"cutoff_time = {cutoff}")
    _objective(found, draft)
    for key, field, what in (("tunertimeout", "cpu", "CPU time"), ("wallclock_limit", "wall", "wall-clock time")):
        if key in found:
            draft.stop[field] = f"{draft.seconds(found.pop(key), key):g}s"
            draft.decided.append(f"stop.{field} is {draft.stop[field]}, the {what} that {key} allows")
    if "runcount_limit" in found:
        draft.lost.append(f"runcount_limit = {found.pop('runcount_limit')}: captime counts time, not runs; see [stop]")
    draft.goal()
    for key, value in found.items():
        draft.lost.append(f"{key} = {value}: {_NOT_NEEDED.get(key, 'captime has nothing that it could mean')}")


def _options(path: Path, draft: ScenarioDraft) -> dict[str, str]:
    """Return the options by their usual names."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}; name a scenario file") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        if not bare:
            continue
        match = re.fullmatch(r"-*([A-Za-z][\w-]*)\s*(?:=|\s)\s*(.*)", bare)
        if match is None or not match.group(2):
            draft.lost.append(f"line {number}, {bare!r}: expected a key and a value")
            continue
        key = match.group(1).replace("-", "_").lower()
        found[_CANONICAL.get(key, key)] = match.group(2).strip().strip("\"'")
    return found


def _target(found: dict[str, str], execdir: Path, places: list[Path], draft: ScenarioDraft) -> None:
    if "algo" not in found:
        raise ScenarioError(
            f"{draft.source}: algo is missing; expected the wrapper's command, as in algo = ./wrapper.py"
        )
    words = draft.words(found.pop("algo"), "algo")
    files = [existing(word, places) if "/" in word or "." in word else None for word in words]
    draft.target["command"] = [
        word if file is None or not file.is_file() else draft.program(file)
        for word, file in zip(words, files, strict=True)
    ]
    if files[0] is None and "/" in words[0]:
        draft.lost.append(f"the program {words[0]!r} was not found; name it in target.command")
    draft.target["wrapper"] = "aclib2" if "--config" in words else "aclib1"
    draft.decided.append(
        f"target.wrapper is '{draft.target['wrapper']}': the call of ParamILS and SMAC 2; one that expects --config "
        "is 'aclib2'"
    )
    draft.target["directory"] = draft.named(execdir)
    draft.decided.append(f"runs take place in {draft.target['directory']!r}, as execdir says")
    if found.pop("deterministic", "0").lower() in ("1", "true", "yes"):
        draft.target["repeatable"] = True
        draft.decided.append("target.repeatable is true, because the file says deterministic")
    if "memory_limit" in found:
        draft.megabytes(found.pop("memory_limit"), "memory_limit")


def _space(found: dict[str, str], places: list[Path], draft: ScenarioDraft) -> None:
    name = found.pop("paramfile", None)
    if name is None:
        raise ScenarioError(f"{draft.source}: paramfile is missing; expected the file with the parameters")
    file = existing(name, places)
    if file is None:
        draft.lost.append(f"the parameter file {name!r} was not found; name it in space.file")
    draft.space["file"] = name if file is None else draft.named(file)
    if Path(name).suffix not in (".pcs", ".pcs_old"):
        draft.space["format"] = "pcs"
    draft.decided.append(f"space.file is {draft.space['file']!r}; the configurations are searched, not listed")


def _instances(found: dict[str, str], places: list[Path], draft: ScenarioDraft) -> None:
    for key in ("instance_seed_file", "instance_file"):
        name = found.pop(key, None)
        if name is None or draft.instances:
            continue
        file = existing(name, places)
        if file is None:
            raise ScenarioError(f"{draft.source}: {key} is {name!r}, which was not found; call from where it is")
        take_list(file, places, draft)
    if not draft.instances:
        raise ScenarioError(f"{draft.source}: instance_file is missing; expected the list of training instances")
    for key in ("test_instance_file", "test_instance_seed_file"):
        if key in found:
            draft.lost.append(
                f"{key} = {found.pop(key)}: for `captime validate LEDGER --instances …`, when the campaign is over"
            )


def _objective(found: dict[str, str], draft: ScenarioDraft) -> None:
    objective = found.pop("run_obj", "runtime").lower()
    if objective != "runtime":
        draft.lost.append(
            f"run_obj = {objective}: captime asks when an answer comes, not how good it is; target.until makes the "
            "time to a given quality count"
        )
    overall = found.pop("overall_obj", None)
    if overall is not None and overall.lower() not in ("mean", "mean1", "par1"):
        draft.lost.append(f"overall_obj = {overall}: the penalty for timeouts; the utility says what they cost")
