"""irace's scenario.txt: `key = value` in R's syntax. Values are texts, numbers and truth values; no code is run."""

import re
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.scenario.foreign.draft import ScenarioDraft, existing, split_line, take_list

_LINE = re.compile(r"([A-Za-z.][\w.]*)\s*(?:=|<-)\s*(.*)")
_DEFAULTS = {"parameterFile": "./parameters.txt", "targetRunner": "./target-runner", "trainInstancesDir": ""}
_USUAL_COMMAND = "{configurationID} {instanceID} {seed} {instance} {bound} {targetRunnerArgs}"
_NOT_NEEDED = {
    "logFile": "captime writes one ledger beside the scenario",
    "recoveryFile": "the same command resumes a campaign of captime",
    "targetRunnerTimeout": "captime caps runs by their captime",
    "targetRunnerRetries": "captime makes lost runs again by itself",
    "maxExperiments": "captime counts time, not runs; see [stop]",
    "capping": "captime always caps",
    "boundPar": "the utility says what a timeout costs",
    "boundDigits": "captimes are exact",
}


def read_irace(path: Path, draft: ScenarioDraft) -> None:
    """Read a scenario of irace."""
    found = {**_DEFAULTS, **_options(path, draft)}
    folder = path.parent
    _target(found, folder, draft)
    _space(found, folder, draft)
    _instances(found, folder, draft)
    bound = found.pop("boundMax", None)
    draft.worth(None if bound in (None, "") else draft.seconds(bound, "boundMax"), f"boundMax = {bound}")
    if bound in (None, ""):
        draft.lost.append(
            "what irace minimises, the cost that the runner prints: captime asks when the runner is done; target.until "
            "makes the time to a given quality count"
        )
    if found.get("maxTime") in ("", "0"):
        del found["maxTime"]
    elif "maxTime" in found:
        draft.stop["cpu"] = f"{draft.seconds(found.pop('maxTime'), 'maxTime'):g}s"
        draft.decided.append(f"stop.cpu is {draft.stop['cpu']}, the time of all runs that maxTime allows")
    for key, field in (("seed", "seed"), ("parallel", "jobs")):
        value = str(found.pop(key, ""))
        if value.isdigit() and int(value) > 0:
            draft.top[field] = int(value)
            draft.decided.append(f"{field} = {value}, as {key} says")
    draft.goal()
    for key, value in found.items():
        if value not in ("", None):
            draft.lost.append(f"{key} = {value}: {_NOT_NEEDED.get(key, 'it is about how irace searches')}")


def _options(path: Path, draft: ScenarioDraft) -> dict[str, Any]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}; name irace's scenario file") from None
    found: dict[str, Any] = {}
    for number, line in enumerate(lines, start=1):
        bare = _without_comment(line).strip()
        match = _LINE.fullmatch(bare)
        if match is None:
            if bare:
                draft.lost.append(f"line {number}, {bare!r}: R code is not run; expected key = value")
            continue
        key, value = match.groups()
        text = re.fullmatch(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", value)
        if text is not None:
            found[key] = re.sub(r"\\(.)", r"\1", text.group(1) or text.group(2) or "")
        elif re.fullmatch(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?L?|TRUE|FALSE|NA|NULL", value):
            found[key] = "" if value in ("NA", "NULL") else value.removesuffix("L")
        else:
            draft.lost.append(f"line {number}, {key} = {value}: R code is not run; expected a text, a number or TRUE")
    return found


def _without_comment(line: str) -> str:
    """Return a line up to a # that stands in no quotes."""
    quote = ""
    for place, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote and line[place - 1] != "\\" else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#":
            return line[:place]
    return line


def _target(found: dict[str, Any], folder: Path, draft: ScenarioDraft) -> None:
    runner = str(found.pop("targetRunner"))
    file = existing(runner, [folder, Path()])
    launcher = draft.words(str(found.pop("targetRunnerLauncher", "")), "targetRunnerLauncher")
    draft.target["command"] = [*launcher, runner if file is None else draft.program(file)]
    if file is None:
        draft.lost.append(f"the target runner {runner!r} was not found; name it in target.command")
    aclib = str(found.pop("aclib", "0")) in ("1", "TRUE")
    draft.target["wrapper"] = "aclib2" if aclib else "irace"
    draft.decided.append(
        f"target.wrapper is '{draft.target['wrapper']}': the target runner is called as irace calls it"
    )
    usual = found.pop("targetCmdline", _USUAL_COMMAND)
    if usual != _USUAL_COMMAND:
        draft.lost.append(f"targetCmdline = {usual!r}: write the command without a wrapper to have other words")
    execdir = existing(str(found.pop("execDir", "./") or "."), [folder, Path()])
    draft.target["directory"] = draft.named(execdir or folder)
    if str(found.pop("deterministic", "0")) in ("1", "TRUE"):
        draft.target["repeatable"] = True
        draft.decided.append("target.repeatable is true, because the file says deterministic")


def _space(found: dict[str, Any], folder: Path, draft: ScenarioDraft) -> None:
    name = str(found.pop("parameterFile"))
    file = existing(name, [folder, Path()])
    if file is None:
        draft.lost.append(f"the parameter file {name!r} was not found; name it in space.file")
    draft.space |= {"file": name if file is None else draft.named(file), "format": "irace"}
    draft.decided.append(f"space.file is {draft.space['file']!r}; its switches are passed as irace passes them")
    configurations = str(found.pop("configurationsFile", ""))
    listed = existing(configurations, [folder, Path()]) if configurations else None
    if listed is not None:
        draft.space["favourites"] = _table(listed)
        draft.decided.append(f"space.favourites are the {len(draft.space['favourites'])} rows of {listed.name}")
    elif configurations:
        draft.lost.append(f"configurationsFile = {configurations}: it was not found")


def _table(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table of configurations; NA is a parameter that is not active."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ScenarioError(
            f"{path} cannot be read: {error.strerror}; expected a table of configurations, with names in its first line"
        ) from None
    rows = [row for number, line in enumerate(lines, start=1) if (row := split_line(line, path, number))]
    if any(len(row) != len(rows[0]) for row in rows):
        raise ScenarioError(f"{path}: its rows differ in length; expected as many values as there are names")
    return [
        {name: _number(value) for name, value in zip(rows[0], row, strict=True) if value not in ("NA", "<NA>")}
        for row in rows[1:]
    ]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _instances(found: dict[str, Any], folder: Path, draft: ScenarioDraft) -> None:
    directory = str(found.pop("trainInstancesDir", "") or "")
    listed = str(found.pop("trainInstancesFile", "") or "")
    places = [folder / directory, folder, Path()]
    if listed:
        file = existing(listed, [folder, Path()])
        if file is None:
            raise ScenarioError(f"{draft.source}: trainInstancesFile is {listed!r}, which was not found; name a list")
        take_list(file, places, draft, extra="the arguments behind an instance")
    else:
        home = existing(directory or "Instances", [folder, Path()])
        if home is None:
            raise ScenarioError(
                f"{draft.source}: trainInstancesDir is {directory!r}, which was not found; name a folder"
            )
        if not home.is_dir():
            raise ScenarioError(
                f"{draft.source}: trainInstancesDir is {directory!r}, which is no folder; expected the folder of the "
                "training instances, or trainInstancesFile for a list"
            )
        deep = any(each.is_dir() for each in home.iterdir())
        draft.instances["files"] = f"{draft.named(home)}/{'**/*' if deep else '*'}"
        draft.decided.append(f"instances.files is {draft.instances['files']!r}, every file of trainInstancesDir")
    tested = [str(found.pop(key, "")) for key in ("testInstancesDir", "testInstancesFile")]
    if any(tested):
        draft.lost.append(
            f"test instances ({' '.join(filter(None, tested))}): for `captime validate LEDGER --instances …`"
        )
