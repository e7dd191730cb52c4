"""Scenarios of other tools, read and written as captime's: with a list of what was decided, and of what is lost.

One file per tool. A reader fills a `ScenarioDraft`; what it decides or cannot carry over is said there, one sentence
each, and printed by `captime import`. Nothing of another tool is ever run or evaluated.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from captime.errors import ScenarioError
from captime.programs.protocol import did_you_mean
from captime.scenario.foreign.aclib import read_aclib
from captime.scenario.foreign.draft import ScenarioDraft, read_instances
from captime.scenario.foreign.irace import read_irace
from captime.scenario.foreign.smac3 import read_smac3

Reader = Callable[[Path, ScenarioDraft], None]

READERS: Mapping[str, Reader] = {
    "aclib": read_aclib,
    "irace": read_irace,
    "smac3": read_smac3,
    "instances": read_instances,
}
"""Readers by the name of the format: AClib, SMAC 2 and ParamILS share one."""


def read_foreign(path: Path, output: Path, kind: str | None = None, utility: str | None = None) -> ScenarioDraft:
    """Return the draft of a scenario.

    Args:
        path: The file of another tool.
        output: The scenario to be written; names of files are written as seen from its folder.
        kind: The format; None to tell it from the file.
        utility: What an answer is worth, if the user says so.
    """
    if kind is not None and kind not in READERS:
        raise ScenarioError(f"--from is {kind!r}; expected one of {', '.join(READERS)}{did_you_mean(kind, READERS)}")
    draft = ScenarioDraft(path, output.parent, f"{output.stem}-instances.txt", utility)
    READERS[kind or _told_by(path)](path, draft)
    return draft


def _told_by(path: Path) -> str:
    """Return the format of a file, from its name and what it holds."""
    if path.suffix == ".json":
        return "smac3"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ScenarioError(
            f"{path} cannot be read: {error.strerror}; name the scenario file of another tool"
        ) from None
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    keys = {line.replace("=", " ").split()[0] for line in lines if line}
    if keys & {"targetRunner", "parameterFile", "trainInstancesDir", "trainInstancesFile", "maxExperiments", "maxTime"}:
        return "irace"
    if {key.replace("-", "_").lower() for key in keys} & {"algo", "algo_exec", "paramfile", "pcs_file", "run_obj"}:
        return "aclib"
    raise ScenarioError(
        f"{path}: it is not seen which tool it belongs to; expected a scenario of AClib, SMAC 2 or ParamILS (algo, "
        "paramfile), of irace (targetRunner, parameterFile) or SMAC3's scenario.json. Name it with --from: "
        f"{', '.join(READERS)}"
    )


__all__ = ["READERS", "ScenarioDraft", "read_foreign"]
