"""Fixed captimes with betting bounds: one event for all n and all captimes, delta split for the recommendation."""

import math
from fractions import Fraction

import numpy as np
import pytest

from campaigns import limit_for, wrong_stories
from captime import simulate
from captime.budget import SelectionBudget
from captime.plans import Ladder
from captime.procedures import PROCEDURES, Problem
from captime.procedures.fixed_captimes import FixedCaptimes
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility
from runtime_laws import LAWS
from turn_by_turn import Question


def built(utility: str = "log-laplace(60, 1)", captime_first: float = 1.0, n_configs: int = 3) -> FixedCaptimes:
    """At delta = 0.1."""
    problem = Problem(n_configs, parse_utility(utility), 0.1, captime_first=captime_first, n_instances=1000)
    made = PROCEDURES["fixed-captimes"](problem)
    assert isinstance(made, FixedCaptimes)
    return made


@pytest.mark.parametrize("n_configs", [1, 2, 10, 10**4])
def test_lower_bounds_and_the_one_upper_bound_take_exactly_delta(n_configs: int) -> None:
    """n_configs · delta / (2 n_configs) + delta / 2, whatever the sample sizes and captimes."""
    budget = SelectionBudget(0.1, n_configs)
    assert n_configs * budget.share(1, 0) + budget.share_upper() == 1
    assert budget.share(10**6, 40) == budget.share(1, 0) == Fraction(1, 2 * n_configs)
    assert budget.log_inverse(np.array([7]), np.array([3]))[0] == budget.log_inverse_lower
    assert math.exp(-budget.log_inverse_lower) == pytest.approx(0.1 / (2 * n_configs), rel=1e-12)
    assert math.exp(-budget.log_inverse_upper) == pytest.approx(0.05, rel=1e-12)


def test_the_first_captime_is_the_first_that_teaches() -> None:
    """u(64) < 2/3 <= u(32) for log-laplace(60, 1); a step never falls below before its end."""
    for made, first in ((built(), 64.0), (built(captime_first=0.5), 64.0), (built("step(8)"), 8.0)):
        assert isinstance(made.plan, Ladder)
        assert made.plan.rungs[0] == first


def test_an_order_is_a_longer_captime_or_two_percent_more_runs() -> None:
    """Never both, never beyond the stream, and no more for the front runner than for who has run least."""
    made = built()
    made._n[:] = [500, 300, 998]
    made._rising[1] = True
    orders = made.ask(3)
    asked = {
        config: (n, level)
        for config, n, level in zip(orders.config.tolist(), orders.n.tolist(), orders.level.tolist(), strict=True)
    }
    assert asked == {0: (506, 0), 1: (300, 1), 2: (1000, 0)}


def test_captimes_rise_until_they_hide_less_than_chance_does() -> None:
    """At the end no configuration that is still run has more to gain from a longer captime than from more runs."""
    table = synthetic_table(2, 6, 4000, limit=900.0)
    question = Question(table.seconds, "fixed-captimes", utility="log-laplace(60, 1)", limit=900.0, delta=0.1)
    outcome, made = question.run()
    assert isinstance(made, FixedCaptimes)
    raised = [event for event in outcome.trace.incidents() if event.kind == "captime"]
    assert raised
    best = outcome.certificate.config
    width = made.intervals.upper[best] - made.intervals.lower[best]
    assert outcome.capping[best] <= width / 2 or outcome.captimes[best] == 900.0


def test_fixed_captimes_are_wrong_no_more_often_than_allowed() -> None:
    """What delta covers: every lower bound, the upper bound of the best, every certificate. 4 fresh tables a law."""
    wrong = wrong_stories("fixed-captimes", 80, 4, seed=7, delta=0.2, every_upper=False)
    assert wrong <= limit_for(4 * len(LAWS), 0.2)


def test_it_costs_a_fraction_of_oup_and_says_what_delta_covers() -> None:
    """The same table, the same goal."""
    table = synthetic_table(5, 20, 8000, limit=900.0)
    by_name = {
        name: simulate(table, utility="log-laplace(60, 1)", procedure=name, epsilon=0.15)
        for name in ("oup", "fixed-captimes")
    }
    assert {result.outcome.stopped for result in by_name.values()} == {"epsilon"}
    assert by_name["fixed-captimes"].cpu_seconds < by_name["oup"].cpu_seconds / 4
    held = by_name["fixed-captimes"].certificate
    assert held.mode == "selection"
    assert sum(share for _, share in held.shares) == 1.0


def test_one_configuration_needs_no_run() -> None:
    """There is no other to compare it with."""
    result = simulate(synthetic_table(1, 1, 10, limit=9.0), utility="uniform(60)", procedure="fixed-captimes")
    assert (result.outcome.stopped, result.cpu_seconds) == ("single", 0.0)
