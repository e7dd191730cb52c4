"""Where the runs of a campaign happen: on this machine, or on a cluster; from the words of a scenario to slots."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from captime.campaign.run import MakeExecutor
from captime.errors import MissingExtra, ScenarioError
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader
from captime.programs.function import FunctionProgram
from captime.programs.protocol import Program
from captime.scenario.executor import WHICH_CLUSTER
from captime.scenario.parts import Parts

# Queues are long at times; after a day without any worker something is wrong.
_PATIENCE_SECONDS = 86400.0


def _never() -> bool:
    return False


@contextmanager
def executor_of(
    parts: Parts,
    ledger: Path,
    client: Any = None,
    jobs: int | None = None,
    interrupted: Callable[[], bool] = _never,
) -> Iterator[MakeExecutor | None]:
    """What makes the slots of a campaign; None for slots on this machine. A cluster that was started ends with it.

    Args:
        parts: Of the scenario.
        ledger: Of the campaign; machines that took part before are read from it.
        client: A `distributed.Client` to be used in place of what the scenario says.
        jobs: The largest number of runs at once.
        interrupted: Asked while a cluster is waited for; True makes slots that nothing can be run on.
    """
    wishes = parts.executor
    if wishes.kind == "local" and client is None:
        yield None
        return
    if client is None and not (wishes.address or wishes.scheduler_file or wishes.cluster):
        raise ScenarioError(f"executor does not say which cluster; {WHICH_CLUSTER}")
    _check(parts)
    try:
        # An optional package: only clusters need it.
        from captime.executors.dask_cluster import ClusterSettings, ReachedCluster, client_of  # noqa: PLC0415 (an optional package)
    except ImportError:
        raise MissingExtra("running on a Dask cluster", "dask") from None
    most = wishes.most if jobs is None else jobs
    if client is not None:
        yield _maker(parts, ledger, ReachedCluster(client), most)
        return
    cluster = ClusterSettings(
        wishes.address, wishes.scheduler_file, wishes.cluster, wishes.workers, dict(wishes.options)
    )
    with client_of(cluster, interrupted) as reached:
        yield _maker(parts, ledger, reached, most)


def _maker(parts: Parts, ledger: Path, reached: Any, most: int | None) -> MakeExecutor:
    from captime.executors.dask import DaskExecutor, DaskTerms  # noqa: PLC0415 (as above)
    from captime.executors.dask_client import DaskClient, NoClient  # noqa: PLC0415 (an optional package)
    from captime.executors.dask_speed import SpeedTerms  # noqa: PLC0415 (an optional package)

    wishes = parts.executor

    def instance(position: int) -> str | None:
        return parts.stream.at(position).instance.path

    def make(program: Program, tag: str) -> Executor:
        reference = wishes.reference
        if wishes.machines == "same" and reference is None:
            reference = _first_reference(ledger)
        terms = DaskTerms(
            isolation=parts.isolation,
            scratch=wishes.scratch,
            machines=SpeedTerms(wishes.machines, wishes.tolerance, reference),
            most=most,
            patience=_PATIENCE_SECONDS if wishes.patience is None else wishes.patience,
            transferred=instance if wishes.transfer else None,
            queue=reached.jobs,
        )
        link = NoClient if reached.client is None else partial(DaskClient, reached.client)
        return DaskExecutor(program, link, tag=tag, terms=terms)

    return make


def _check(parts: Parts) -> None:
    """Refuse what would be wrong on other machines."""
    if parts.executor.transfer and isinstance(parts.program, FunctionProgram):
        raise ScenarioError(
            "executor.transfer sends instances to commands, and the target is a function, which would be given a path "
            "that is not there; put the instances into a shared folder and leave transfer out"
        )
    if parts.executor.machines == "normalised" and parts.clock == "wall":
        raise ScenarioError(
            'executor.machines is "normalised", but the speed of a core says nothing about wall-clock time; use '
            'target.clock = "cpu", or machines = "same"'
        )


def _first_reference(ledger: Path) -> float | None:
    """Return what the reference took on the first machine that ever took part; None if there was none."""
    if not ledger.exists():
        return None
    with LedgerReader(ledger) as reader:
        for event in reader.events():
            if event.kind == "machine" and event.facts.get("accepted"):
                return float(str(event.facts["reference"]))
    return None
