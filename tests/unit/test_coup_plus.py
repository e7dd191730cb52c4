"""COUP+ on a fixed pool: KL bounds, the front runner and its challenger, and none of the known mistakes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from campaigns import limit_for, wrong_stories
from captime import simulate
from captime.arrays import IntArray
from captime.budget import ThreeBoundsBudget
from captime.procedures import PROCEDURES, Problem
from captime.procedures.coup_plus import CoupPlus
from captime.sources.synthetic import synthetic_table
from captime.tally import Tally, blank_tally
from captime.utilities import parse_utility
from runtime_laws import LAWS
from turn_by_turn import Question, assert_same_story, questions, steady
from unit.test_budget_exact import check_logarithms, check_spending


@steady
@given(questions("coup-plus", st.just({})))
def test_many_turns_at_a_time_decide_like_one_by_one(question: Question) -> None:
    """Two configurations a decision, one where the stream has ended for the other."""
    assert_same_story(question)


@pytest.mark.parametrize("n_configs", [1, 2, 10, 10**4])
def test_three_inequalities_a_cell_spend_all_of_delta_and_no_more(n_configs: int) -> None:
    """Over all configurations, sample sizes and rungs, in rational arithmetic."""
    budget = ThreeBoundsBudget(0.1, n_configs)
    check_spending(budget, n_configs)
    check_logarithms(budget)


def built(n_configs: int = 3, utility: str = "uniform(64)") -> CoupPlus:
    """COUP+ at delta = 0.1."""
    made = PROCEDURES["coup-plus"](Problem(n_configs, parse_utility(utility), 0.1, n_instances=1000))
    assert isinstance(made, CoupPlus)
    return made


def told(made: CoupPlus, n: list[int], high: list[float], low: list[float], completed: list[int]) -> Tally:
    """A tally with these sums, at level 0."""
    tally = blank_tally(len(n), lambda config, first, last: (np.empty(0), np.empty(0)))
    tally.n[:], tally.utility_high[:], tally.utility_low[:], tally.completed[:] = n, high, low, completed
    made.tell(tally, np.arange(len(n)))
    return tally


def test_bounds_are_those_of_natural_logarithms_and_lie_outside() -> None:
    """Kl of the reported end equals ln(1/δ_cell)/n in nats, and never exceeds it on the inner side."""
    made = built(2)
    floor = 1 - 1 / 64
    n, mean, done = 200, 0.995, 120
    told(made, [n, n], [mean * n] * 2, [mean * n - floor * (n - done)] * 2, [done] * 2)
    price = float(made.budget.log_inverse(np.array([n]), np.array([0]))[0]) / n
    stretched = (mean - floor) / (1 - floor)

    def divergence(p: float, q: float) -> float:
        return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))

    top = (made.intervals.upper[0] - floor) / (1 - floor)
    assert divergence(stretched, top) == pytest.approx(price, rel=1e-6)
    assert divergence(stretched, top) >= price * (1 - 1e-9)


def test_the_two_who_are_due_are_the_front_runner_and_the_most_hopeful_other() -> None:
    """Largest mean first; then the largest upper bound, the larger mean among equals."""
    made = built(4)
    assert made.ask(1).config.tolist() == [0, 1]
    told(made, [50, 50, 50, 0], [49.5, 49.9, 49.2, 0.0], [30.0, 40.0, 20.0, 0.0], [30, 40, 20, 0])
    assert made.ask(1).config.tolist() == [1, 3]
    assert set(made.ask(4).config.tolist()) == {0, 1, 2, 3}


def test_means_are_recomputed_after_a_captime_has_risen() -> None:
    """The mean by which the front runner is chosen is that of all runs at the captime in force."""
    rng = np.random.default_rng(3)
    seconds = rng.lognormal(2.0, 1.0, (4, 400))
    outcome, made = Question(seconds, "coup-plus", utility="log-laplace(8, 1)", delta=0.1).run()
    assert isinstance(made, CoupPlus)
    raised = {event.config for event in outcome.trace.incidents() if event.kind == "captime"}
    utility = parse_utility("log-laplace(8, 1)")
    checked = 0
    for config in set(outcome.candidates.tolist()) & raised:
        n, captime = int(outcome.samples[config]), outcome.captimes[config]
        expected = float(utility(np.minimum(seconds[config, :n], captime)).mean())
        assert made._mean[config] == pytest.approx(expected, rel=1e-12)
        checked += 1
    assert checked


def test_coup_plus_is_wrong_no_more_often_than_allowed() -> None:
    """Every bound at every look (running bounds remember the worst) and every certificate, 8 fresh tables a law."""
    wrong = wrong_stories("coup-plus", 120, 8, seed=6, delta=0.2)
    assert wrong <= limit_for(8 * len(LAWS), 0.2)


def test_it_certifies_the_best_and_costs_less_than_oup() -> None:
    """The same table, the same goal."""
    table = synthetic_table(5, 20, 8000, limit=900.0)
    costs = {}
    for procedure in ("oup", "coup-plus"):
        result = simulate(table, utility="log-laplace(60, 1)", procedure=procedure, epsilon=0.15)
        assert result.outcome.stopped == "epsilon"
        costs[procedure] = result.cpu_seconds
    assert costs["coup-plus"] < costs["oup"]


def test_the_other_goes_on_when_one_has_used_up_the_stream() -> None:
    """And when both have, it ends."""
    made = built(2)
    made._n[:] = [1000, 3]
    assert made.ask(1).config.tolist() == [1]
    made._n[:] = 1000
    everything: IntArray = made.ask(1).config
    assert (len(everything), made.finished()) == (0, "instances")
