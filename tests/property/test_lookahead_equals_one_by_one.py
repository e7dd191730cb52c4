"""Judging many rounds in one stroke of array arithmetic decides exactly like judging them one at a time.

`drive` shows a lockstep procedure many rounds at once. The same procedure behind a door that hides this ability is
asked, answered and told round by round; the two stories must be one. A third telling, run by run in plain Python, is
the textbook loop of the benchmarks.
"""

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.drive import Outcome, drive
from captime.plans import Plan
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.sources.accounting import Accounting
from captime.sources.replay import Replay
from captime.sources.sampling import stream_of
from captime.tally import Tally
from captime.targets import Targets
from captime.trace import Incident
from captime.utilities import parse_utility
from runtime_laws import NEVER, table_of

steady = settings(derandomize=True, deadline=None, max_examples=60)

plain_up: Callable[..., Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "plain_loop.py"))[
    "plain_up"
]

UTILITIES = ("log-laplace(4, 1)", "uniform(64)", "exponential(10)", "step(8)")
# Utilities whose values on these runtimes are sums of few powers of two: no rounding, so ties are real ties.
EXACT_UTILITIES = ("uniform(64)", "step(8)")
EXACT_RUNTIMES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 63.0, NEVER])


class OneByOne:
    """A procedure whose ability to look ahead is hidden."""

    def __init__(self, inner: Procedure) -> None:
        self._inner = inner
        self.intervals = getattr(inner, "intervals", None)

    @property
    def plan(self) -> Plan:
        """The inner one's."""
        return self._inner.plan

    @property
    def bound(self) -> str:
        """The inner one's."""
        return self._inner.bound

    @property
    def candidates(self) -> BoolArray:
        """The inner one's."""
        return self._inner.candidates

    @property
    def rounds(self) -> int:
        """The inner one's."""
        return self._inner.rounds

    @property
    def pays(self) -> bool:
        """The inner one's."""
        return self._inner.pays

    def ask(self, slots: int) -> Targets:
        """Passed on."""
        return self._inner.ask(slots)

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Passed on."""
        self._inner.tell(tally, changed)

    def certificate(self) -> Certificate:
        """Passed on."""
        return self._inner.certificate()

    def finished(self) -> str | None:
        """Passed on."""
        return self._inner.finished()


@dataclass(frozen=True)
class Question:
    """A small simulation, ready to be run in several ways."""

    seconds: FloatArray
    limit: float
    utility: str
    procedure: str
    options: dict[str, object]
    delta: float
    epsilon: float
    captime_first: float
    sampling: str
    budget: float
    seed: int

    def run(
        self,
        *,
        one_by_one: bool,
        accounting: Accounting = "restart",
        laps: int | None = None,
        budget: float | None = None,
    ) -> Outcome:
        """The whole story, or only so many laps of it."""
        table = table_of(self.seconds, self.limit)
        stream = stream_of(self.sampling, table.groups, self.seed)
        utility = parse_utility(self.utility)
        problem = Problem(
            n_configs=table.n_configs,
            utility=utility,
            delta=self.delta,
            epsilon=self.epsilon,
            captime_first=self.captime_first,
            captime_limit=table.limit,
            n_instances=stream.length,
        )
        made = PROCEDURES[self.procedure](problem, **self.options)
        replay = Replay(table, stream, made.plan, utility, accounting=accounting, pays=made.pays)
        left = iter(range(laps)) if laps is not None else None
        return drive(
            OneByOne(made) if one_by_one else made,
            replay,
            budget=self.budget if budget is None else budget,
            interrupted=lambda: left is not None and next(left, None) is None,
        )


VARIANTS: list[tuple[str, dict[str, object]]] = [
    ("up", {}),
    ("up", {"events": 2}),
    ("up", {"variant": "paper"}),
    ("up", {"variant": "as-published"}),
    ("oracle", {}),
]


@st.composite
def questions(draw: st.DrawFn, variants: list[tuple[str, dict[str, object]]] = VARIANTS) -> Question:
    """Small tables of continuous runtimes, or of runtimes on captimes with many ties."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_configs, n_instances = draw(st.sampled_from([2, 3, 5, 8, 1])), draw(st.sampled_from([400, 150, 40, 2, 1]))
    procedure, options = draw(st.sampled_from(variants))
    sampling = draw(st.sampled_from(["given", "shuffle", "replace"]))
    exact = draw(st.booleans())
    if exact:
        weight = rng.dirichlet(np.full(len(EXACT_RUNTIMES), draw(st.sampled_from([0.1, 1.0]))), size=n_configs)
        # An endless stream ends by its costs, so there must be some.
        known = np.maximum(EXACT_RUNTIMES, 0.25) if sampling == "replace" else EXACT_RUNTIMES
        seconds = np.array([rng.choice(known, size=n_instances, p=row) for row in weight])
    else:
        speed = rng.normal(scale=draw(st.sampled_from([3.0, 0.3])), size=(n_configs, 1))
        seconds = np.exp(speed + rng.normal(scale=draw(st.sampled_from([0.5, 2.0])), size=(n_configs, n_instances)))
    if draw(st.integers(0, 3)) == 0:
        # From easy to hard: no honest stream, but one on which bounds contradict each other and the books still agree.
        seconds = np.sort(seconds, axis=1)
    endless = sampling == "replace"
    assume(not (endless and procedure == "oracle"))
    return Question(
        seconds=seconds,
        limit=draw(st.sampled_from([NEVER, 32.0, 3.0])),
        utility=draw(st.sampled_from(EXACT_UTILITIES if exact else UTILITIES)),
        procedure=procedure,
        options=options,
        delta=draw(st.sampled_from([0.9, 0.5, 0.05])),
        epsilon=draw(st.sampled_from([0.0, 0.2, 0.8])),
        captime_first=1.0 if "as-published" in options.values() else draw(st.sampled_from([1.0, 0.25, 5.0])),
        sampling=sampling,
        budget=n_configs * (draw(st.floats(0.25, 100.0)) if endless or draw(st.booleans()) else NEVER),
        seed=seed,
    )


def assert_same_story(one: Outcome, other: Outcome) -> None:
    """Everything that is counted or chosen is the same, everything that is added up is the same but for rounding."""
    assert (one.stopped, one.rounds, one.crossed) == (other.stopped, other.rounds, other.crossed)
    for counted in ("candidates", "runs", "samples", "captimes"):
        np.testing.assert_array_equal(getattr(one, counted), getattr(other, counted), err_msg=counted)
    for added in ("seconds", "capping"):
        np.testing.assert_allclose(getattr(one, added), getattr(other, added), rtol=1e-12, atol=1e-12, err_msg=added)
    assert one.rerun_seconds == pytest.approx(other.rerun_seconds, rel=1e-12)
    assert_same_certificate(one.certificate, other.certificate)
    ours, theirs = one.trace.decisions(), other.trace.decisions()
    for counted in ("round", "runs", "config", "candidates"):
        np.testing.assert_array_equal(getattr(ours, counted), getattr(theirs, counted), err_msg=counted)
    np.testing.assert_allclose(ours.epsilon, theirs.epsilon, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-12, atol=1e-12)
    assert [_event(each) for each in one.trace.incidents()] == [_event(each) for each in other.trace.incidents()]


def _event(incident: Incident) -> tuple[str, int, int, float | None]:
    return incident.kind, incident.round, incident.config, incident.captime


def assert_same_certificate(one: Certificate, other: Certificate) -> None:
    """The same statement but for rounding."""
    assert (one.config, one.delta, one.n_configs) == (other.config, other.delta, other.n_configs)
    ours = (one.epsilon, one.utility_low, one.utility_high)
    assert ours == pytest.approx((other.epsilon, other.utility_low, other.utility_high), rel=0, abs=1e-12)


@steady
@given(questions())
def test_many_rounds_at_once_tell_the_story_of_one_round_at_a_time(question: Question) -> None:
    """Decisions, certificates, eliminations, captimes, costs and executions."""
    assert_same_story(question.run(one_by_one=False), question.run(one_by_one=True))


@pytest.mark.parametrize(("procedure", "options"), VARIANTS)
@pytest.mark.parametrize("sampling", ["shuffle", "given"])
def test_eliminations_come_at_the_same_rounds(procedure: str, options: dict[str, object], sampling: str) -> None:
    """Long enough for candidates to go, on an honest stream and on one from easy to hard."""
    chance = np.linspace(0.1, 0.9, 6)[:, None]
    done = np.arange(1200) < chance * 1200
    seconds = np.where(done, 5.25 - np.arange(6)[:, None], NEVER)
    question = Question(seconds, NEVER, "exponential(3)", procedure, options, 0.9, 0.0, 1.0, sampling, NEVER, seed=3)
    ahead = question.run(one_by_one=False)
    assert any(each.kind == "eliminated" for each in ahead.trace.incidents())
    assert len(ahead.trace.blocks) < ahead.rounds
    assert_same_story(ahead, question.run(one_by_one=True))


def test_contradicting_bounds_are_reported() -> None:
    """A leader that turns from always to never done is no stream of independent draws; its crossed interval says so."""
    position = np.arange(1500)
    seconds = np.where([position < 750, position % 10 != 0], 0.25, NEVER)
    question = Question(seconds, NEVER, "step(1)", "up", {}, 0.9, 0.0, 1.0, "given", NEVER, seed=0)
    ahead = question.run(one_by_one=False)
    assert ahead.crossed > 0
    assert_same_story(ahead, question.run(one_by_one=True))


@steady
@given(questions(), st.integers(0, 12))
def test_an_interrupted_story_is_the_beginning_of_the_whole_one(question: Question, laps: int) -> None:
    """After any lap the certificate at hand is one that the procedure, told round by round, holds there too."""
    part, whole = question.run(one_by_one=False, laps=laps), question.run(one_by_one=True)
    assert part.stopped in ("interrupted", whole.stopped)
    shown, told = part.trace.decisions(), whole.trace.decisions()
    assert len(shown.round) == part.rounds <= whole.rounds
    np.testing.assert_array_equal(shown.config, told.config[: part.rounds])
    np.testing.assert_allclose(shown.epsilon, told.epsilon[: part.rounds], rtol=0, atol=1e-12)
    if part.rounds:
        assert (part.certificate.config, part.certificate.epsilon) == (shown.config[-1], min(1.0, shown.epsilon[-1]))
    else:
        assert part.certificate.epsilon == (1.0 if len(question.seconds) > 1 else 0.0)


@steady
@given(questions(), st.floats(0.01, 1.0))
def test_a_cpu_budget_is_overrun_by_one_round_at_most(question: Question, share: float) -> None:
    """The round during which the money runs out is the last; every round before began with money left."""
    total = float(question.run(one_by_one=True).seconds.sum())
    assume(total > 0)
    budget = share * total
    ahead, plain = question.run(one_by_one=False, budget=budget), question.run(one_by_one=True, budget=budget)
    assert (ahead.trace.decisions().seconds[:-1] < budget).all()
    assert_same_story(ahead, plain)


@steady
@given(questions())
def test_both_accountings_are_what_run_by_run_book_keeping_gives(question: Question) -> None:
    """Restart pays a cut run in full again, resume only what is added; the decisions do not depend on it."""
    restart = question.run(one_by_one=False, budget=NEVER if question.sampling != "replace" else None)
    costs, executions = paid_run_by_run(question, restart)
    if question.procedure == "oracle":
        costs = {"restart": 0.0, "resume": 0.0}
    assert float(restart.seconds.sum()) == pytest.approx(costs["restart"], rel=1e-9, abs=1e-9)
    assert int(restart.runs.sum()) == executions
    assert costs["restart"] >= costs["resume"] - 1e-9
    saved = restart.rerun_seconds["restart"] - restart.rerun_seconds["resume"]
    assert float(restart.seconds.sum()) - saved == pytest.approx(costs["resume"], rel=1e-9, abs=1e-9)
    if question.sampling != "replace":
        resume = question.run(one_by_one=False, accounting="resume", budget=NEVER)
        assert float(resume.seconds.sum()) == pytest.approx(costs["resume"], rel=1e-9, abs=1e-9)
        assert_same_certificate(resume.certificate, restart.certificate)


def paid_run_by_run(question: Question, outcome: Outcome) -> tuple[dict[str, float], int]:
    """What the story must have cost, from its list of raised captimes, one run at a time."""
    table = table_of(question.seconds, question.limit)
    rows = stream_of(question.sampling, table.groups, question.seed).rows(0, int(outcome.samples.max(initial=0)))
    top = min(question.limit, parse_utility(question.utility).zero_at)
    first = min(question.captime_first, top)
    if question.procedure == "oracle":
        first = top
    elif "as-published" in question.options.values():
        first = 1.0
    raised: dict[int, list[tuple[int, float]]] = {config: [] for config in range(table.n_configs)}
    for incident in outcome.trace.incidents():
        if incident.captime is not None:
            raised[incident.config].append((incident.round, incident.captime))
    costs, executions = {"restart": 0.0, "resume": 0.0}, 0
    for config in range(table.n_configs):
        for position in range(int(outcome.samples[config])):
            runtime = float(table.seconds[config, rows[position]])
            # A captime raised in the round that met this position was raised before this run was made.
            before = [captime for number, captime in raised[config] if number <= position + 1]
            after = [captime for number, captime in raised[config] if number > position + 1]
            captime = before[-1] if before else first
            executions += 1
            costs["restart"] += min(runtime, captime)
            costs["resume"] += min(runtime, captime)
            for longer in after:
                if runtime < captime:
                    break
                executions += 1
                costs["restart"] += min(runtime, longer)
                costs["resume"] += min(runtime, longer) - captime
                captime = longer
    return costs, executions


@steady
@given(questions([("up", {})]))
def test_up_decides_like_the_textbook_loop(question: Question) -> None:
    """Run by run, with dictionaries and no arrays: the same answer at the same price."""
    assume(question.sampling != "replace")
    table = table_of(question.seconds, question.limit)
    utility = parse_utility(question.utility)
    ours = question.run(one_by_one=False, budget=NEVER)
    order = stream_of(question.sampling, table.groups, question.seed).rows(0, table.n_instances)
    top = min(table.limit, utility.zero_at)
    worth: dict[float, float] = {}

    def u(t: float) -> float:
        if t not in worth:
            worth[t] = float(utility(np.array([t]))[0])
        return worth[t]

    plain = plain_up(
        lambda config, instance: float(table.seconds[config, order[instance]]),
        table.n_configs,
        table.n_instances,
        u,
        delta=question.delta,
        epsilon=question.epsilon,
        first=min(question.captime_first, top),
        top=top,
    )
    assume(table.n_configs > 1)
    assert (ours.certificate.config, ours.rounds) == (plain.config, plain.rounds)
    assert ours.certificate.epsilon == pytest.approx(plain.epsilon, abs=1e-9)
    assert ours.candidates.tolist() == sorted(plain.candidates)
    assert ours.captimes.tolist() == plain.captimes
    assert int(ours.runs.sum()) == plain.runs
    assert float(ours.seconds.sum()) == pytest.approx(plain.seconds, rel=1e-9)
    gone = [(each.round, each.config) for each in ours.trace.incidents() if each.kind == "eliminated"]
    assert gone == sorted(plain.eliminations)
