"""The statements about two commands hold as often as they say, whenever one looks; and they have teeth."""

import math

import numpy as np
import pytest
from scipy import stats

from captime import Problem, RuntimeTable, parse_utility
from captime.arrays import FloatArray
from captime.bounds.mixture import log_wealth
from captime.certificate import Orders
from captime.comparison.pairs import (
    DECIDED,
    Difference,
    Gate,
    GateVerdict,
    PairedScores,
    UntilDecided,
    WorthMore,
    first_crossing,
    paired_scores,
)
from captime.procedures import REGISTERS
from captime.procedures.problem import build_procedure
from captime.report.known_runs import KnownRuns
from captime.sources.replay import Replay
from captime.sources.window import stream_of

DELTA, POSITIONS, TRIALS = 0.1, 250, 400
BOOST = 1.25


def lottery(worth: FloatArray, rng: np.random.Generator) -> PairedScores:
    """Scores of two commands whose runs are worth this, with one draw of the captime for both."""
    drawn = rng.random(worth.shape[1])
    scores = np.maximum(worth, 1.0 / BOOST) * (drawn < BOOST * worth)
    return PairedScores(scores, scores)


def worths(rng: np.random.Generator, loss: float) -> FloatArray:
    """What the runs of two commands are worth on common instances, the second one less by `loss` on average.

    The two have the instance in common and nothing else; now and then the second one loses everything.
    """
    hardness = rng.beta(1.2, 1.2, POSITIONS)
    base, candidate = (np.clip(0.2 + 0.6 * hardness + rng.normal(0.0, 0.05, POSITIONS), 0.15, 0.85) for _ in range(2))
    spared = rng.random(POSITIONS) >= loss / 0.5
    # Clipping is symmetric and hardness has mean 1/2: both are worth 1/2 on average before the losses.
    return np.stack((base, candidate * spared))


def wrong_verdicts(loss: float, wrong: GateVerdict, delta: float, margin: float = 0.1) -> int:
    """How often the gate says something wrong, looked at after every position."""
    rng = np.random.default_rng(2024)
    gates = (Gate(margin, delta).after(lottery(worths(rng, loss), rng)) for _ in range(TRIALS))
    return sum(gate.verdict is wrong for gate in gates)


@pytest.mark.parametrize(
    ("loss", "wrong"),
    [(0.0, GateVerdict.WORSE), (0.1, GateVerdict.NOT_WORSE), (0.2, GateVerdict.NOT_WORSE)],
    ids=["equal", "worse by the margin", "worse by twice the margin"],
)
def test_wrong_verdicts_stay_within_delta(loss: float, wrong: GateVerdict) -> None:
    """At the edges of both statements, where errors are most frequent; one seed in a million fails a true gate."""
    assert wrong_verdicts(loss, wrong, DELTA) <= stats.binom.isf(1e-6, TRIALS, DELTA)


def wrong_statements(loss: float, better: int, q: float, delta: float) -> int:
    """How often one statement is ever reached although it is false, whatever the other one says."""
    rng, level = np.random.default_rng(77), -math.log(delta)
    pairs = (lottery(worths(rng, loss), rng) for _ in range(TRIALS))
    return sum(math.isfinite(first_crossing(each.combined(better, 1.0, 1.0), q, level)) for each in pairs)


@pytest.mark.parametrize(("loss", "better", "q"), [(0.0, 0, 0.5), (0.1, 1, 0.45)], ids=["worse", "not worse"])
def test_each_statement_stays_within_its_delta_and_a_planted_error_is_caught(
    loss: float, better: int, q: float
) -> None:
    """At its edge a statement is reached with probability delta at most; one at eight times its delta is caught."""
    most = stats.binom.isf(1e-6, TRIALS, DELTA)
    assert wrong_statements(loss, better, q, DELTA) <= most < wrong_statements(loss, better, q, 8.0 * DELTA)


def test_right_verdicts_are_reached() -> None:
    """What is equal passes and what loses twice the margin is stopped, mostly within these positions."""
    rng = np.random.default_rng(5)
    for loss, right in ((0.0, GateVerdict.NOT_WORSE), (0.3, GateVerdict.WORSE)):
        found = [Gate(0.15, DELTA).after(lottery(worths(rng, loss), rng)).verdict for _ in range(50)]
        assert found.count(right) >= 40


@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_at_least_errs_within_delta(factor: float) -> None:
    """A command that is worth the same, or just as much more as is asked about, at the edge of both answers."""
    rng, wrong = np.random.default_rng(8), 0
    for _ in range(TRIALS):
        # With a loss the second one is worth 1/factor of the first.
        pairs = lottery(worths(rng, 0.5 * (1.0 - 1.0 / factor)), rng)
        verdict = WorthMore(0.25, DELTA).after(pairs).verdict
        wrong += verdict in ((Difference.FIRST, Difference.SECOND) if factor == 1.0 else (Difference.SECOND,))
        # At exactly 25 % more, "neither" is wrong.
        wrong += factor > 1.0 and verdict is Difference.NEITHER
    assert wrong <= stats.binom.isf(1e-6, TRIALS, DELTA)


def test_at_least_finds_what_is_there() -> None:
    """Much better, and equal."""
    high, low = np.full(400, 0.9), np.full(400, 0.3)
    asked = WorthMore(0.1, DELTA)
    assert asked.after(PairedScores(np.stack((high, low)), np.stack((high, low)))).verdict is Difference.FIRST
    assert asked.after(PairedScores(np.stack((low, high)), np.stack((low, high)))).verdict is Difference.SECOND
    assert asked.after(PairedScores(np.stack((high, high)), np.stack((high, high)))).verdict is Difference.NEITHER
    nothing = np.zeros((2, 0))
    assert asked.after(PairedScores(nothing, nothing)).verdict is Difference.UNDECIDED


def test_the_crossing_is_that_of_the_bound() -> None:
    """The first prefix on which the wealth of the register's mixture reaches the level; chunks make no difference."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        samples, q, level = rng.beta(2.0, 1.5, 60), 0.45, 2.0
        crossed = first_crossing(samples, q, level)
        reached = [m for m in range(1, 61) if log_wealth(samples[:m], q) >= level]
        assert crossed == (reached[0] if reached else math.inf)
    long = np.where(np.arange(9000) < 8500, 0.5, 1.0)
    assert 8500 < first_crossing(long, 0.5, 5.0) < 8600


def test_open_runs_only_hurt() -> None:
    """A run whose score is an interval counts against every statement; so none is reached sooner by not knowing."""
    rng = np.random.default_rng(4)
    exact = lottery(worths(rng, 0.0), rng)
    blurred = PairedScores(np.where(rng.random(exact.low.shape) < 0.2, 0.0, exact.low), exact.high)
    (low, high), (blurred_low, blurred_high) = (each.difference(2.3) for each in (exact, blurred))
    assert blurred_low <= low <= high <= blurred_high


def test_pairs_end_where_a_run_is_missing() -> None:
    """Position 2 of the second command is missing: two positions count, whatever comes behind."""
    config, position = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 0, 1, 3])
    nothing = np.zeros(7)
    runs = KnownRuns(config, position, config, nothing, nothing, config, nothing, config, nothing)
    scores = np.arange(7.0) / 10.0
    pairs = paired_scores(runs, scores, scores)
    assert pairs.low.tolist() == [[0.0, 0.1], [0.4, 0.5]]


def judged(worse: float, seed: int) -> tuple[GateVerdict, str | None]:
    """The gate with the engine of the command on a made-up pair: the second takes `worse` times as long."""
    rng, utility, margin = np.random.default_rng((11, seed)), parse_utility("log-laplace(1, 1)"), 0.15
    hardness = np.exp(rng.normal(0.0, 1.0, 2000))
    seconds = np.stack([hardness * slow * np.exp(rng.normal(0.0, 0.15, 2000)) for slow in (1.0, worse)])
    table = RuntimeTable.build("pair", ["a", "b"], map(str, range(2000)), seconds, timeout=math.inf)
    problem = Problem(2, utility, DELTA, margin, n_instances=2000, seed=seed)
    gate = Gate(margin, DELTA)
    procedure = UntilDecided(build_procedure("race", REGISTERS, problem, {}), problem, lambda: gate.decided)
    replay = Replay(table, stream_of("given", table.groups, seed=0), procedure.plan, utility)
    while procedure.finished() is None:
        procedure.tell(replay.tally, replay.answer(procedure.ask(slots=1)))
        n = int(replay.tally.n.min())
        low, high = zip(*(replay.tally.samples(config, 0, n) for config in (0, 1)), strict=True)
        gate = gate.after(PairedScores(np.stack(low), np.stack(high)))
    return gate.verdict, procedure.finished()


def test_the_whole_gate_with_its_engine_is_right() -> None:
    """Ten equal pairs pass, ten that are three times as slow are stopped, up to delta; all are decided."""
    equal, slower = ([judged(worse, seed) for seed in range(10)] for worse in (1.0, 3.0))
    assert {reason for _, reason in equal + slower} == {DECIDED}
    most = stats.binom.isf(1e-6, 10, DELTA)
    assert sum(verdict is not GateVerdict.NOT_WORSE for verdict, _ in equal) <= most
    assert sum(verdict is not GateVerdict.WORSE for verdict, _ in slower) <= most


class Content:
    """A stand-in for an engine that wants one position of each and is content then."""

    def __init__(self) -> None:
        self.told = False

    def finished(self) -> str | None:
        """Content after it was told something."""
        return "epsilon" if self.told else None

    def ask(self, slots: int) -> Orders:
        """Five positions, the first four skipped by the first command."""
        del slots
        both = np.arange(2)
        return Orders(both, np.array([5, 5]), np.zeros(2, dtype=np.int64), np.array([4, 4]))

    def tell(self, tally: object, changed: object) -> None:
        """Be content."""
        del tally, changed
        self.told = True


class Known:
    """A stand-in for what is known: how many positions."""

    n = np.array([5, 5])


def test_beyond_the_goal_both_commands_are_ordered_in_step() -> None:
    """What the engine skipped stays skipped, the stream's end is respected, and the decision ends it."""
    decided = False
    problem = Problem(2, parse_utility("uniform(1)"), DELTA, 0.1, n_instances=7)
    around = UntilDecided(Content(), problem, lambda: decided)  # type: ignore[arg-type] # stand-ins
    around.ask(2)
    around.tell(Known(), np.arange(2))  # type: ignore[arg-type] # likewise
    assert around.finished() is None
    order = around.ask(2)
    assert order.n.tolist() == [6, 6]
    assert order.first is not None
    assert order.first.tolist() == [4, 4]
    assert around.ask(8).n.tolist() == [7, 7]
    assert len(around.ask(2)) == 0
    assert around.finished() == "instances"
    decided = True
    assert around.finished() == DECIDED
