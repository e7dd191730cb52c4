"""Everything a campaign needs, built from a scenario; independent of TOML."""

import os
from dataclasses import dataclass, field
from datetime import datetime, time
from pathlib import Path
from typing import Any, Literal

from captime.errors import ScenarioError
from captime.executors.local_slots import cores
from captime.ledger.rows import ConfigRow
from captime.procedures import Problem
from captime.programs import CommandProgram, Configuration, FunctionProgram
from captime.scenario.errors import SourceLocation
from captime.scenario.models import ExecutorSection
from captime.spaces import Proposer
from captime.streams import FiniteStream, GeneratedStream
from captime.utilities import Utility


@dataclass(frozen=True, slots=True)
class StopLimits:
    """When to stop; whichever comes first.

    Attributes:
        epsilon: The goal.
        cpu: CPU seconds of the whole campaign; None for no limit.
        wall: Wall-clock seconds; None for no limit.
        until: A time of day, or a date and time; None for none.
    """

    epsilon: float
    cpu: float | None
    wall: float | None
    until: time | datetime | None


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Where runs happen.

    Attributes:
        kind: `local`: on this machine. `dask`: on a cluster, which the next three fields say.
        address: Of a scheduler.
        scheduler_file: That a scheduler has written.
        cluster: The kind to be started.
        workers: How many workers to ask it for.
        options: For its maker.
        transfer: Whether instance files are sent to the workers.
        scratch: Where workers make the directories of runs.
        machines: `same`, `any` or `normalised`.
        tolerance: By which share the reference may differ on machines that are the same.
        reference: CPU seconds it takes where seconds count; None for those of the first machine.
        patience: Seconds without any worker after which it is given up; None for never.
        most: The largest number of runs at once; None for as many as there are slots.
    """

    kind: Literal["local", "dask"] = "local"
    address: str | None = None
    scheduler_file: str | None = None
    cluster: str | None = None
    workers: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    transfer: bool = False
    scratch: str | None = None
    machines: Literal["same", "any", "normalised"] = "same"
    tolerance: float = 0.1
    reference: float | None = None
    patience: float | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts.

    Attributes:
        program: How runs are made and judged.
        stream: The instances, in their order.
        configurations: The candidates, by index.
        config_rows: The same, as a ledger remembers them.
        newcomers: Candidates that were added after the ledger was begun; what their indices will be is not said yet.
        problem: The question as procedures see it.
        utility: What an answer is worth.
        procedure_name: Name of the procedure.
        options: Its options.
        population_said: Whether the user has said what the claim is about; if not, it may be what the program allows.
        proposer: Makes the configurations of a space; None if they are listed.
        check_repeatability: Whether the user left open if the program repeats itself given its seed, so that a
            procedure which repeats runs has to try first.
        compare_answers: Whether contradicting answers end all claims.
        tolerance: By which share two numbers may differ and be the same answer.
        clock: The clock of captimes and costs.
        time: Which time counts: as it is measured, or as the program reports it.
        jobs: How many runs are under way at once.
        order: In which order outcomes are told.
        window: With a fixed order, how many runs are open at once.
        isolation: How runs are kept together; None for the best that works here.
        executor: Where runs happen.
        oversubscribe: Whether there may be more jobs than cores.
        stop: When to stop.
        ledger: The file that records the runs.
        identity: What the answer depends on, in words that JSON knows.
    """

    program: CommandProgram | FunctionProgram
    stream: FiniteStream | GeneratedStream
    configurations: tuple[Configuration, ...]
    config_rows: tuple[ConfigRow, ...]
    newcomers: tuple[ConfigRow, ...]
    problem: Problem
    utility: Utility
    procedure_name: str
    options: dict[str, Any]
    proposer: Proposer | None
    population_said: bool
    check_repeatability: bool
    compare_answers: bool
    tolerance: float
    clock: Literal["cpu", "wall"]
    time: Literal["measured", "reported"]
    jobs: int
    order: Literal["arrival", "fixed"]
    window: int
    isolation: str | None
    executor: ExecutorSettings
    oversubscribe: bool
    stop: StopLimits
    ledger: Path
    identity: dict[str, Any]


# The section `[executor]`: where runs happen. Checked here; slots are made of it by `campaign.make_executor`.

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
                f'{place("executor", name)} means nothing on one machine; leave it out, or set kind = "dask"'
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


# How many runs can be under way at once without disturbing each other.


def allowed_cores() -> int:
    """Physical cores that this process may run on; where the system does not tell, as many as it calls processors."""
    return len(cores()) or os.cpu_count() or 1
