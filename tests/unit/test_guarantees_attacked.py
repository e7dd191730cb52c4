"""Attacks on the guarantee outside race and pool that succeeded once: given-up runs, a borrowed gamma, and others."""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import question_on, small_table, virtual_slots
from captime import simulate
from captime.arrays import FloatArray
from captime.campaign import run_campaign, survey_of
from captime.campaign import table_of as measured_table_of
from captime.campaign.measurement import measured_runs
from captime.campaign.validation import score_ends
from captime.certificate import Orders, no_orders
from captime.drive import drive
from captime.evidence import Evidence
from captime.executors import Executor, VirtualExecutor
from captime.live import LiveOutcome, drive_parallel
from captime.procedures import PROCEDURES, Problem
from captime.procedures.coup_plus import CoupPlus
from captime.procedures.protocol import Procedure
from captime.procedures.race import Race
from captime.procedures.survey import Survey
from captime.programs.protocol import Program
from captime.runs import RunOutcome, Status
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of


class GivesUp(VirtualExecutor):
    """Virtual workers that give up every run of some configurations, as the wall-clock guard does."""

    given_up: Mapping[int, float] = {}
    """By configuration: CPU seconds at which its runs are given up."""

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Replace the outcomes of those configurations."""
        return [self._replaced(outcome) for outcome in super().collect(timeout)]

    def _replaced(self, outcome: RunOutcome) -> RunOutcome:
        seconds = self.given_up.get(outcome.request.config)
        if seconds is None or (outcome.status is Status.CAPPED and seconds >= outcome.request.captime):
            return outcome
        return dataclasses.replace(outcome, status=Status.ABANDONED, runtime=seconds, cost=seconds)


def campaign(
    procedure: Procedure, seconds: FloatArray, given_up: Mapping[int, float], workers: int = 1, utility: str = ""
) -> LiveOutcome:
    """Drive a procedure over recorded runtimes, with the runs of some configurations given up."""
    executor = GivesUp(table_of(seconds, NEVER), in_order(seconds.shape[1]), workers)
    executor.given_up = given_up
    evidence = Evidence(len(seconds), procedure.plan, parse_utility(utility))
    return drive_parallel(procedure, executor, evidence)


SLEEPER = "uniform(64)"


@pytest.mark.parametrize("name", ["coup-plus", "coup-plus-pool", "naive", "up", "oup", "fixed-captimes"])
def test_runs_given_up_prove_nothing(name: str) -> None:
    """A program that only sleeps is given up with next to no CPU time used: its worth may be 0, and nothing else shows.

    The other configuration is worth 0.4375 for certain, so a lower bound above 0 on the sleeper is false.
    """
    n = 500
    seconds = np.stack((np.full(n, NEVER), np.full(n, 36.0)))
    problem = Problem(2, parse_utility(SLEEPER), 0.1, epsilon=0.3, captime_first=32.0, n_instances=n)
    outcome = campaign(PROCEDURES[name](problem), seconds, {0: 0.0}, utility=SLEEPER)
    said = outcome.certificate
    truth = (0.0, 1.0 - 36.0 / 64.0)
    assert said.utility_low <= truth[said.config]
    assert said.epsilon >= max(truth) - truth[said.config]
    # Answers that were not seen may have been worth up to 1: the other one is not shown to be the best either.
    assert said.epsilon >= 1.0 - 0.5


def test_naive_says_what_it_knows_when_runs_were_given_up() -> None:
    """It certifies what its bounds show, not the epsilon asked for, and does not call that its goal."""
    n = 500
    rng = np.random.default_rng(1)
    seconds = np.stack((np.full(n, NEVER), rng.uniform(0.0, 32.0, n), rng.uniform(0.0, 64.0, n)))
    problem = Problem(3, parse_utility(SLEEPER), 0.1, epsilon=0.3, n_instances=n)
    made = PROCEDURES["naive"](problem)
    outcome = campaign(made, seconds, {0: 1.0}, utility=SLEEPER)
    assert outcome.certificate.config == 1
    assert 0.3 < outcome.certificate.epsilon < 1.0
    assert outcome.stopped == "instances"
    whole = campaign(PROCEDURES["naive"](problem), seconds, {}, utility=SLEEPER)
    assert (whole.certificate.epsilon, whole.stopped) == (0.3, "epsilon")


def test_a_given_up_run_counts_what_it_may_be_worth_in_coup_plus() -> None:
    """The lower end counts u(κ) for it, less what the cap hides; the upper end counts u at the moment of giving up."""
    utility = parse_utility(SLEEPER)
    n = 200
    ends = {}
    for name, given_up in (("cut", {}), ("given up", {0: 8.0})):
        made = CoupPlus(Problem(2, utility, 0.1, captime_first=32.0, n_instances=n))
        never = np.stack((np.full(n, NEVER), np.full(n, 60.0)))
        outcome = campaign(made, never, given_up, utility=SLEEPER)
        ends[name] = (float(made.intervals.lower[0]), float(made.intervals.upper[0]), outcome)
    assert ends["given up"][0] <= ends["cut"][0]
    assert ends["given up"][1] >= 1.0 - 8.0 / 64.0 - 1e-9


@pytest.mark.parametrize("workers", [1, 16])
def test_coup_stamps_the_gamma_of_the_pool_that_was_searched(workers: int) -> None:
    """Runs under way when the table turns out too small for the next phase belong to the phase they were made in."""
    seconds = np.random.default_rng(5).exponential(20.0, (12, 4000))
    problem = Problem(12, parse_utility("uniform(64)"), 0.1, n_instances=4000)
    made = PROCEDURES["coup"](problem, gamma_rate=1.0, epsilon_rate=0.5)
    outcome = campaign(made, seconds, {}, workers, "uniform(64)")
    assert outcome.stopped == "instances"
    gamma, pool = outcome.certificate.gamma, outcome.certificate.n_configs
    assert gamma == math.exp(-1.0)
    # A pool misses the luckiest gamma with probability (1 - gamma)^n, and phase 1 has paid 3·delta/π² for that.
    assert (1.0 - gamma) ** pool <= 3.0 * 0.1 / math.pi**2


def test_a_pool_ends_on_a_stream_that_is_shorter_than_its_pilot() -> None:
    """A configuration that ran the whole stream has left the pilot, although the pilot is longer."""
    table = synthetic_table(1, 30, 3, limit=900.0)
    result = simulate(table, utility="uniform(60)", procedure="pool", epsilon=0.999)
    assert result.outcome.stopped in {"instances", "configurations", "epsilon"}
    assert result.outcome.samples.max() <= 3


class Undecided(Survey):
    """Wants nothing and is not content."""

    def ask(self, slots: int) -> Orders:
        """Order nothing."""
        return no_orders()


def test_a_procedure_that_wants_nothing_ends_a_simulation() -> None:
    """A replay that is asked for nothing has nothing to add: waiting for ever would not change that."""
    table, utility = synthetic_table(1, 2, 5, limit=900.0), parse_utility("uniform(60)")
    procedure = Undecided(Problem(2, utility, 0.1, n_instances=5), captime=10.0)
    replay = Replay(table, stream_of("shuffle", table.groups, seed=0), procedure.plan, utility)
    assert drive(procedure, replay).stopped == "idle"


@pytest.mark.parametrize(("first_runs", "called"), [(3, 8), (4, 15)])
def test_the_scout_calls_more_members_only_where_everybody_goes(first_runs: int, called: int) -> None:
    """Who is called to a position for what happened there is no blind choice, unless all others go there too.

    The first eight are neither promising nor far below the goal, so the scout of 288 configurations wants more.
    """
    made = PROCEDURES["race"](
        Problem(288, parse_utility("uniform(64)"), 0.1, epsilon=0.3, n_instances=4000, short_captimes=False),
        first_runs=first_runs,
    )
    assert isinstance(made, Race)
    seconds = np.full((288, 4000), 64.0 * 0.45)
    table, utility = table_of(seconds, NEVER), parse_utility("uniform(64)")
    replay = Replay(table, in_order(4000), made.plan, utility)
    first = made.ask(1)
    assert (len(first), set(first.n.tolist())) == (8, {4})
    made.tell(replay.tally, replay.answer(first))
    second = made.ask(1)
    met = set(first.config.tolist()) | {
        config for config, n in zip(second.config.tolist(), second.n.tolist(), strict=True) if n <= 4
    }
    assert len(met) == called


def test_a_run_that_was_given_up_is_no_run_that_never_finishes() -> None:
    """On held-out instances it is worth anything up to u of the seconds it was seen, not 0 at both ends."""
    table = RuntimeTable.build("held-out", ["a", "b"], ["i", "j"], np.array([[1.0, 8.0], [2.0, 8.0]]), recorded_limit=8)
    unfinished = np.array([[np.nan, np.nan], [np.nan, 3.0]])
    low, high = score_ends(table, parse_utility("uniform(10)"), unfinished)
    np.testing.assert_allclose(low, [[0.9, 0.0], [0.8, 0.0]])
    np.testing.assert_allclose(high, [[0.9, 0.2], [0.8, 0.7]])


class GivesUpOnOne(VirtualExecutor):
    """Gives up one run of one configuration after 2 s, as if its wall-clock guard had stopped it."""

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Replace the outcome of that run."""
        return [
            dataclasses.replace(outcome, status=Status.ABANDONED, runtime=2.0, cost=2.0)
            if (outcome.request.config, outcome.request.instance) == (1, 3)
            else outcome
            for outcome in super().collect(timeout)
        ]


def test_a_measured_table_does_not_say_what_became_of_a_given_up_run(tmp_path: Path) -> None:
    """`measure` leaves its instance out and says so; `validate` is told how long it was seen."""
    table, path, captime = small_table(3, 12), tmp_path / "measured.ledger", 30.0

    def slots(program: Program, tag: str) -> Executor:
        return GivesUpOnOne(table, in_order(12), 2)

    run_campaign(survey_of(question_on(table), captime, 12), path, make_executor=slots)
    measured, unfinished = measured_runs(path, "held-out", captime)
    assert measured.n_instances == 12
    assert np.argwhere(~np.isnan(unfinished)).tolist() == [[1, 3]]
    assert unfinished[1, 3] == 2.0
    told = measured_table_of(path, "measured", captime)
    assert told.n_instances == 11
    assert not np.isinf(told.seconds).any()
    assert any("1 instances are left out because 1 runs on them were given up" in note for note in told.notes)


def test_a_validation_that_was_stopped_counts_no_instance_behind_a_missing_run(tmp_path: Path) -> None:
    """A long run is under way while short ones end behind it; to count these and leave it out would flatter."""
    seconds = np.ones((1, 40))
    seconds[0, 3] = 29.0
    table, path, captime = table_of(seconds, 100.0), tmp_path / "stopped.ledger", 30.0
    laps = itertools.count()
    made = run_campaign(
        survey_of(question_on(table), captime, 40),
        path,
        make_executor=virtual_slots(table, 2),
        interrupted=lambda: next(laps) >= 20,
    )
    assert made.outcome.stopped == "interrupted"
    assert 3 < measured_runs(path, "held-out", captime)[0].n_instances < 40
    counted, _ = measured_runs(path, "held-out", captime, unbroken=True)
    assert counted.instances == ("instance-0", "instance-1", "instance-2")
