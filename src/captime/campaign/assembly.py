"""From the specification of a campaign to its runs: the question, the settings, and the slots that runs are made on.

Every command and function that makes runs for a scenario takes this way: `Assembly.of`, `slots`, then `run`, `measure`
or `compare`. So all of them run where the scenario says, resume in the same way, and stop on the same signals.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from captime.campaign.measurement import Compared, Decided, check_sampling, compare_until, survey_of
from captime.campaign.result import CampaignResult
from captime.campaign.run import MakeExecutor, run_campaign
from captime.campaign.transfer import EarlierCampaigns
from captime.errors import MissingExtra, ScenarioError
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader
from captime.live import Observer
from captime.programs.function import FunctionProgram
from captime.programs.protocol import Program
from captime.runs import never
from captime.scenario.spec import WHICH_CLUSTER, CampaignQuestion, CampaignSpec, RunSettings, StopRules, allowed_cores


@dataclass(frozen=True, slots=True)
class Assembly:
    """A campaign put together: what is asked, where it is recorded, and how its runs are made.

    Attributes:
        spec: The specification.
        question: What is asked.
        ledger: Where every run is recorded.
        settings: How it is carried out.
        jobs: The number of runs at once that was asked for beside the scenario; None for the scenario's own.
    """

    spec: CampaignSpec
    question: CampaignQuestion
    ledger: Path
    settings: RunSettings
    jobs: int | None = None

    @classmethod
    def of(
        cls,
        spec: CampaignSpec,
        ledger: Path,
        question: CampaignQuestion | None = None,
        *,
        jobs: int | None = None,
        oversubscribe: bool = False,
    ) -> "Assembly":
        """Put a campaign together.

        Args:
            spec: The specification.
            ledger: Where every run is recorded.
            question: What is asked; the scenario's own question if it is left out.
            jobs: Number of runs at once; the scenario's if it is left out.
            oversubscribe: Allow more of them than there are cores.
        """
        on_cluster = spec.executor.kind != "local"
        allowed = oversubscribe or spec.oversubscribe or on_cluster
        settings = _with_jobs(spec.settings, jobs, oversubscribe=allowed)
        return cls(spec, spec.question if question is None else question, ledger, settings, jobs)

    def within(self, *, cpu: float, anytime: bool = False) -> "Assembly":
        """Return the same with this budget of CPU time; `anytime` lifts the scenario's limits on the clock."""
        stop = StopRules(cpu=cpu) if anytime else replace(self.settings.stop, cpu=cpu)
        return replace(self, settings=replace(self.settings, stop=stop))

    @contextmanager
    def slots(self, interrupted: Callable[[], bool], client: Any = None) -> Iterator["OpenCampaign"]:
        """Reach the machines that the scenario names; a cluster that was started for it ends with the block.

        Args:
            interrupted: Asked while a cluster is waited for and before every lap; True stops.
            client: A `distributed.Client` to be used in place of what the scenario says.
        """
        with executor_of(self.spec, self.ledger, client, self.jobs, interrupted) as make:
            yield OpenCampaign(self, interrupted, make)


@dataclass(frozen=True, slots=True)
class OpenCampaign:
    """A campaign whose machines can be reached; each method begins it, or resumes what its ledger holds.

    Attributes:
        assembly: Question, ledger and settings.
        interrupted: Asked before every lap; True stops.
        make_executor: Makes the slots; None for slots on this machine.
    """

    assembly: Assembly
    interrupted: Callable[[], bool]
    make_executor: MakeExecutor | None

    def run(
        self,
        observer: Observer | None,
        earlier: EarlierCampaigns | None = None,
        *,
        question: CampaignQuestion | None = None,
        enough: Callable[[], bool] = never,
    ) -> CampaignResult:
        """Answer the question with its procedure; on a space the model learns from `earlier` campaigns, too.

        Args:
            observer: Called after every lap.
            earlier: On a space, earlier campaigns from which the model, and nothing else, learns.
            question: Asked in place of the campaign's own.
            enough: Asked before every lap; True stops, as an interruption does.
        """
        return run_campaign(
            question or self.assembly.question,
            self.assembly.ledger,
            self.assembly.settings,
            observer=observer,
            interrupted=lambda: self.interrupted() or enough(),
            make_executor=self.make_executor,
            earlier=earlier,
        )

    def measure(self, observer: Observer | None, *, captime: float, instances: int | None) -> CampaignResult:
        """Make all runs up to one captime that are still missing in the ledger; see `survey_of`."""
        check_sampling(self.assembly.question)
        return self.run(observer, question=survey_of(self.assembly.question, captime, instances))

    def compare(
        self, observer: Observer | None, decided: Decided, *, captime: float, instances: int | None
    ) -> Compared:
        """Make runs up to one captime until enough is known; see `compare_until`."""
        question = self.assembly.question
        survey = survey_of(question, captime, instances)
        run = partial(self.run, observer, question=survey)
        return compare_until(question, self.assembly.ledger, decided, captime, lambda due: run(enough=due))


def _with_jobs(manner: RunSettings, jobs: int | None, *, oversubscribe: bool) -> RunSettings:
    """Return the same with another number of jobs, as long as they do not disturb each other."""
    if jobs is None:
        return manner
    cores = allowed_cores()
    if jobs > cores and not oversubscribe:
        raise ScenarioError(
            f"--jobs is {jobs}, but there are {cores} cores; more runs than cores disturb each other's times. Ask for "
            "fewer, or add --oversubscribe and the certificate will mention it"
        )
    return replace(manner, jobs=jobs)


# Where the runs of a campaign happen: on this machine, or on a cluster; from the words of a scenario to slots.

# Queues are long at times; after a day without any worker something is wrong.
_PATIENCE_SECONDS = 86400.0


@contextmanager
def executor_of(
    spec: CampaignSpec,
    ledger: Path,
    client: Any = None,
    jobs: int | None = None,
    interrupted: Callable[[], bool] = never,
) -> Iterator[MakeExecutor | None]:
    """What makes the slots of a campaign; None for slots on this machine. A cluster that was started ends with it.

    Args:
        spec: The specification.
        ledger: Of the campaign; machines that took part before are read from it.
        client: A `distributed.Client` to be used in place of what the scenario says.
        jobs: The largest number of runs at once.
        interrupted: Asked while a cluster is waited for; True makes slots that nothing can be run on.
    """
    wishes = spec.executor
    if wishes.kind == "local" and client is None:
        yield None
        return
    if client is None and not (wishes.address or wishes.scheduler_file or wishes.cluster):
        raise ScenarioError(f"executor does not say which cluster; {WHICH_CLUSTER}")
    _check(spec)
    try:
        # An optional package: only clusters need it.
        from captime.executors.dask_cluster import ClusterSettings, ReachedCluster, client_of  # noqa: PLC0415 (an optional package)
    except ImportError:
        raise MissingExtra("running on a Dask cluster", "dask") from None
    most = spec.most if jobs is None else jobs
    if client is not None:
        yield _maker(spec, ledger, ReachedCluster(client), most)
        return
    cluster = ClusterSettings(
        wishes.address, wishes.scheduler_file, wishes.cluster, wishes.workers, dict(wishes.options)
    )
    with client_of(cluster, interrupted) as reached:
        yield _maker(spec, ledger, reached, most)


def _maker(spec: CampaignSpec, ledger: Path, reached: Any, most: int | None) -> MakeExecutor:
    from captime.executors.dask import DaskExecutor, DaskTerms  # noqa: PLC0415 (as above)
    from captime.executors.dask_client import DaskClient, NoClient  # noqa: PLC0415 (an optional package)
    from captime.executors.dask_workers import SpeedTerms  # noqa: PLC0415 (an optional package)

    wishes = spec.executor

    def instance(position: int) -> str | None:
        return spec.question.stream.at(position).instance.path

    def make(program: Program, tag: str) -> Executor:
        reference = wishes.reference
        if wishes.machines == "same" and reference is None:
            reference = _first_reference(ledger)
        terms = DaskTerms(
            isolation=spec.settings.isolation,
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


def _check(spec: CampaignSpec) -> None:
    """Refuse what would be wrong on other machines."""
    if spec.executor.transfer and isinstance(spec.question.program, FunctionProgram):
        raise ScenarioError(
            "executor.transfer sends instances to commands, and the target is a function, which would be given a path "
            "that is not there; put the instances into a shared folder and leave transfer out"
        )
    if spec.executor.machines == "normalised" and spec.question.clock == "wall":
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
