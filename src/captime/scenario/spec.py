"""The specification of a campaign, as a scenario builds it; independent of TOML."""

import math
import os
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, Literal

from captime.errors import ScenarioError
from captime.executors.local_slots import cores
from captime.executors.retry import PATIENCE
from captime.programs import Configuration
from captime.scenario.errors import SourceLocation
from captime.scenario.models import ExecutorSection
from captime.scenario.question import Question


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop, apart from the goal.

    Attributes:
        cpu: CPU seconds of the whole campaign, all calls together.
        wall: Wall-clock seconds of this call.
        until: A time of day, or a moment.
    """

    cpu: float = math.inf
    wall: float = math.inf
    until: time | datetime | None = None

    def wall_seconds(self, now: datetime) -> float:
        """Wall-clock seconds from now on, whichever rule comes first."""
        if self.until is None:
            return self.wall
        if isinstance(self.until, datetime):
            end = self.until if self.until.tzinfo is not None else self.until.replace(tzinfo=now.tzinfo)
        else:
            end = datetime.combine(now.date(), self.until, tzinfo=now.tzinfo)
            if end <= now:
                end += timedelta(days=1)
        return max(0.0, min(self.wall, (end - now).total_seconds()))


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a campaign is carried out; nothing that its answer's validity depends on.

    Attributes:
        jobs: How many runs are under way at once.
        order: `arrival`: outcomes are told as runs finish. `fixed`: outcomes are told in the order in which runs were
            asked for, so that the same outcomes give the same answer whatever the timing.
        window: With fixed order, how many runs are open at once.
        stop: When to stop, apart from the goal.
        isolation: How runs are kept together; None for the best that works here.
        pin: Give every slot a core of its own.
        take_over: Resume a ledger that another machine had begun to write to.
        conflicts: Stop when two configurations contradict each other.
        check_repeatability: Try whether the program repeats itself, before a procedure relies on it.
        patience: Seconds to wait for a machine that is out of disk, memory, processes or descriptors.
    """

    jobs: int = 1
    order: Literal["arrival", "fixed"] = "arrival"
    window: int = 8
    stop: StopRules = field(default_factory=StopRules)
    isolation: str | None = None
    pin: bool = True
    take_over: bool = False
    conflicts: bool = True
    check_repeatability: bool = False
    patience: float = PATIENCE


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
class CampaignSpec:
    """The specification of a campaign: everything that a scenario says about it, checked.

    Attributes:
        question: What is asked: program, stream, configurations, utility, procedure.
        configurations: The candidates, by index, as the program runs them.
        settings: How it is carried out.
        executor: Where runs happen.
        oversubscribe: Whether there may be more jobs than cores.
        ledger: The file that records the runs.
    """

    question: Question
    configurations: tuple[Configuration, ...]
    settings: RunSettings
    executor: ExecutorSettings
    oversubscribe: bool
    ledger: Path


# The section `[executor]`: where runs happen. Checked here; `campaign.assembly` makes slots of it.

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
