"""The section `[executor]`: where runs happen. Checked here; slots are made of it by `campaign.make_executor`."""

import os
from pathlib import Path

from captime.errors import ScenarioError
from captime.scenario.errors import SourceLocation
from captime.scenario.models import ExecutorSection
from captime.scenario.parts import ExecutorSettings

_WHICH = ("address", "scheduler_file", "cluster")
WHICH_CLUSTER = (
    "expected exactly one of address (of a scheduler), scheduler_file (that it has written) and cluster (to be started)"
)


def executor_settings(
    section: ExecutorSection, place: SourceLocation, folder: Path, most: int | None
) -> ExecutorSettings:
    """Return what is wanted, if it makes sense.

    Args:
        section: As it was written.
        place: For messages.
        folder: Relative names are seen from here.
        most: The largest number of runs at once; None for as many as there are slots.
    """
    said = section.model_fields_set
    if section.kind == "local":
        for name in sorted(said - {"kind"}):
            raise ScenarioError(
                f'{place("executor", name)} means nothing on one machine; leave it out, or say kind = "dask"'
            )
    else:
        _check_cluster(section, place)
    file = section.scheduler_file
    return ExecutorSettings(
        kind=section.kind,
        address=section.address,
        scheduler_file=None if file is None else os.fspath(folder / file),
        cluster=section.cluster,
        workers=section.workers,
        options=dict(section.options),
        transfer=section.transfer,
        scratch=section.scratch,
        machines=section.machines,
        tolerance=section.tolerance,
        reference=section.reference,
        patience=section.patience,
        most=most,
    )


def _check_cluster(section: ExecutorSection, place: SourceLocation) -> None:
    named = [name for name in _WHICH if getattr(section, name) is not None]
    # None of them is right where a client is handed over, from Python.
    if len(named) > 1:
        raise ScenarioError(f"{place('executor')} says {' and '.join(named)}; {WHICH_CLUSTER}")
    for name in ("workers", "options"):
        if name in section.model_fields_set and section.cluster is None:
            raise ScenarioError(
                f"{place('executor', name)} means nothing for a cluster that is there already; leave it out"
            )
    if section.machines == "normalised" and section.reference is None:
        raise ScenarioError(
            f'{place("executor", "reference")} is missing; with machines = "normalised", say how long the reference '
            "takes on the machine whose seconds count; docs/cluster.md says how to find out"
        )
    if section.machines == "any" and section.reference is not None:
        raise ScenarioError(f'{place("executor", "reference")} means nothing with machines = "any"; leave it out')


def seconds_that_count(section: ExecutorSection) -> dict[str, object]:
    """What of it the answer depends on, for the scenario's identity: whether seconds are converted, and to which."""
    if section.machines != "normalised":
        return {}
    return {"machines": {"rule": section.machines, "reference": section.reference}}
