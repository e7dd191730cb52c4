"""Judging many rounds in one stroke of array arithmetic decides exactly like judging them one at a time.

`drive` shows a lockstep procedure many rounds at once. The same procedure behind a door that hides this ability is
asked, answered and told round by round; the two stories must be one. A third telling, run by run in plain Python, is
the textbook loop of the benchmarks.
"""

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from captime.drive import Outcome
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from runtime_laws import NEVER, table_of
from turn_by_turn import RUNTIMES, Question, assert_same_certificate, assert_same_outcome, assert_same_story

steady = settings(derandomize=True, deadline=None, max_examples=60)

plain_up: Callable[..., Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "plain_loop.py"))[
    "plain_up"
]

UTILITIES = ("log-laplace(4, 1)", "uniform(64)", "exponential(10)", "step(8)")
# Their values on RUNTIMES are sums of few powers of two: no rounding, so ties are real ties.
EXACT_UTILITIES = ("uniform(64)", "step(8)")


VARIANTS: list[tuple[str, dict[str, object]]] = [
    ("up", {}),
    ("up", {"events": 2}),
    ("up", {"variant": "paper"}),
    ("up", {"variant": "paper", "rule": "new"}),
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
        weight = rng.dirichlet(np.full(len(RUNTIMES), draw(st.sampled_from([0.1, 1.0]))), size=n_configs)
        # An endless stream ends by its costs, so there must be some.
        known = np.maximum(RUNTIMES, 0.25) if sampling == "replace" else RUNTIMES
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


@steady
@given(questions())
def test_many_rounds_at_once_tell_the_story_of_one_round_at_a_time(question: Question) -> None:
    """Decisions, certificates, eliminations, captimes, costs and executions."""
    assert_same_story(question)


@pytest.mark.parametrize(("procedure", "options"), VARIANTS)
@pytest.mark.parametrize("sampling", ["shuffle", "given"])
def test_eliminations_come_at_the_same_rounds(procedure: str, options: dict[str, object], sampling: str) -> None:
    """Long enough for candidates to go, on an honest stream and on one from easy to hard."""
    chance = np.linspace(0.1, 0.9, 6)[:, None]
    done = np.arange(1200) < chance * 1200
    seconds = np.where(done, 5.25 - np.arange(6)[:, None], NEVER)
    question = Question(seconds, procedure, options, utility="exponential(3)", delta=0.9, sampling=sampling, seed=3)
    ahead = question.outcome()
    assert any(each.kind == "eliminated" for each in ahead.trace.incidents())
    assert len(ahead.trace.blocks) < ahead.rounds
    assert_same_outcome(ahead, question.outcome(one_by_one=True))


def test_contradicting_bounds_are_reported() -> None:
    """A leader that turns from always to never done is no stream of independent draws; its crossed interval says so."""
    position = np.arange(1500)
    seconds = np.where([position < 750, position % 10 != 0], 0.25, NEVER)
    question = Question(seconds, "up", utility="step(1)", delta=0.9)
    ahead = question.outcome()
    assert ahead.crossed > 0
    assert_same_outcome(ahead, question.outcome(one_by_one=True))


@steady
@given(questions(), st.integers(0, 12))
def test_an_interrupted_story_is_the_beginning_of_the_whole_one(question: Question, laps: int) -> None:
    """After any lap the certificate at hand is one that the procedure, told round by round, holds there too."""
    part, whole = question.outcome(laps=laps), question.outcome(one_by_one=True)
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
    total = float(question.outcome(one_by_one=True).seconds.sum())
    assume(total > 0)
    poorer = replace(question, budget=share * total)
    ahead, plain = poorer.outcome(), poorer.outcome(one_by_one=True)
    assert (ahead.trace.decisions().seconds[:-1] < poorer.budget).all()
    assert_same_outcome(ahead, plain)


@steady
@given(questions())
def test_both_accountings_are_what_run_by_run_book_keeping_gives(question: Question) -> None:
    """Restart pays a cut run in full again, resume only what is added; the decisions do not depend on it."""
    if question.sampling != "replace":
        question = replace(question, budget=NEVER)
    restart = question.outcome()
    costs, executions = paid_run_by_run(question, restart)
    if question.procedure == "oracle":
        costs = {"restart": 0.0, "resume": 0.0}
    assert float(restart.seconds.sum()) == pytest.approx(costs["restart"], rel=1e-9, abs=1e-9)
    assert int(restart.runs.sum()) == executions
    assert costs["restart"] >= costs["resume"] - 1e-9
    saved = restart.rerun_seconds["restart"] - restart.rerun_seconds["resume"]
    assert float(restart.seconds.sum()) - saved == pytest.approx(costs["resume"], rel=1e-9, abs=1e-9)
    if question.sampling != "replace":
        resume = replace(question, accounting="resume").outcome()
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
    ours = replace(question, budget=NEVER).outcome()
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
