import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from captime.errors import UtilityError
from captime.utilities import Utility, parse_utility
from captime.utilities.cost_adjusted import RemainingCost
from captime.utilities.formulas import Uniform

LOG_LAPLACE = {1: 0.991667, 32: 0.733333, 64: 0.46875, 300: 0.1, 512: 0.0585938, 600: 0.05, 900: 0.0333333}


def worth(text: str, t: float) -> float:
    """u(t) for a text."""
    return float(parse_utility(text)(np.array([t]))[0])


def moment(text: str, x: float) -> float:
    """The inverse at x for a text."""
    return float(parse_utility(text).inverse(np.array([x]))[0])


@pytest.mark.parametrize(("t", "expected"), LOG_LAPLACE.items())
def test_log_laplace_has_the_published_values(t: float, expected: float) -> None:
    """Test vectors of the reference, to the digits they are printed with."""
    assert worth("log-laplace(60, 1)", t) == pytest.approx(expected, rel=5e-6)


# (text, t, u(t)), each computed by hand from the formula in the reference.
BY_HAND = [
    ("step(300)", 299.999, 1.0),
    ("step(300)", 300, 0.0),
    ("uniform(60)", 15, 0.75),
    ("uniform(60)", 61, 0.0),
    ("exponential(60)", 60, math.exp(-1)),
    ("pareto(60, 2)", 59, 1.0),
    ("pareto(60, 2)", 120, 0.25),
    ("log-laplace(60, 2)", 30, 0.875),
    ("log-laplace(60, 2)", 120, 0.125),
    ("generalised-log-laplace(60, 1, 2)", 30, 1 - 1 / 3 * 0.25),
    ("generalised-log-laplace(60, 1, 2)", 60, 2 / 3),
    ("generalised-log-laplace(60, 1, 2)", 120, 1 / 3),
    ("log-normal(60, 1)", 60, 0.5),
    ("log-normal(60, 2)", 60 * math.exp(2), 0.15865525393145707),
    ("piecewise(300, 60, 0.6)", 30, 0.7),
    ("piecewise(300, 60, 0.6)", 60, 0.4),
    ("piecewise(300, 60, 0.6)", 180, 0.2),
    ("piecewise(300, 60, 0.6)", 300, 0.0),
    ("poly(60, 2)", 30, 0.75),
    ("poly(60, 0.5)", 15, 0.5),
    ("linear(10, 60)", 9, 1.0),
    ("linear(10, 60)", 35, 0.5),
    ("geometric(1, 100)", 0.5, 1.0),
    ("geometric(1, 100)", 10, 0.5),
    ("geometric(1, 100)", 100, 0.0),
    ("forward(10, 60, 2)", 10, 1.0),
    ("forward(10, 60, 2)", 35, 0.25),
    ("backward(10, 60, 2)", 22.5, 0.5),
    ("backward(10, 60, 2)", 60, 0.0),
    ("parc(300, 2)", 150, 0.75),
    ("parc(300, 2)", 300, 0.0),
    ("tabulated(0:1, 10:0.5, 60:0)", 5, 0.75),
    ("tabulated(0:1, 10:0.5, 60:0)", 35, 0.25),
    ("tabulated(0:1, 10:0.5, tail=drop)", 10, 0.0),
    ("tabulated(0:1, 10:0.5, tail=pareto)", 40, 0.125),
    ("scipy(weibull_min, c=1.5, scale=60)", 60, math.exp(-1)),
    ("python(math:erfc)", 0.5, math.erfc(0.5)),
    # B = 1, r = 0.01, κ0 = 60: [1 - t/60 + 0.01 (60 - t)² / 120] / 1.3, at t = 30: (0.5 + 0.075) / 1.3
    ("cost-adjusted(uniform(60), value=1, rate=0.01)", 30, 0.575 / 1.3),
    ("cost-adjusted(exponential(60), 1, 0.01)", 60, math.exp(-1)),
    # [1 + 0.01 (60 - 30)] / [1 + 0.01 · 60]
    ("cost-adjusted(step(60), 1, 0.01)", 30, 1.3 / 1.6),
    ("cost-adjusted(step(60), 1, 0.01)", 60, 0.0),
    # A fee of 0.5 at 30 s, when the deadline is still ahead with chance ½: 0.25 before, nothing after.
    ("cost-adjusted(uniform(60), 1, 0.5, step, 30)", 15, 1.0 / 1.25),
    ("cost-adjusted(uniform(60), 1, 0.5, step, 30)", 30, 0.5 / 1.25),
    ("cost-adjusted(uniform(60), 1, 7, constant)", 30, 0.5),
]


@pytest.mark.parametrize(("text", "t", "expected"), BY_HAND)
def test_every_family_has_its_value_computed_by_hand(text: str, t: float, expected: float) -> None:
    """One or more moments on every branch of every formula."""
    assert worth(text, t) == pytest.approx(expected, rel=1e-12, abs=1e-15)


INVERSES = [
    ("step(300)", 0.5, 300.0),
    ("uniform(60)", 0.25, 45.0),
    ("exponential(60)", 0.5, 60 * math.log(2)),
    ("pareto(60, 2)", 0.25, 120.0),
    ("log-laplace(60, 1)", 0.9, 12.0),
    ("log-laplace(60, 1)", 0.1, 300.0),
    ("generalised-log-laplace(60, 1, 2)", 1 / 3, 120.0),
    ("generalised-log-laplace(60, 1, 2)", 1 - 1 / 12, 30.0),
    ("log-normal(60, 1)", 0.5, 60.0),
    ("piecewise(300, 60, 0.6)", 0.7, 30.0),
    ("piecewise(300, 60, 0.6)", 0.2, 180.0),
    ("poly(60, 2)", 0.75, 30.0),
    ("linear(10, 60)", 0.5, 35.0),
    ("geometric(1, 100)", 0.5, 10.0),
    ("forward(10, 60, 2)", 0.25, 35.0),
    ("backward(10, 60, 2)", 0.5, 22.5),
    ("parc(300, 2)", 0.75, 150.0),
    ("parc(300, 2)", 0.3, 300.0),
    ("tabulated(0:1, 5:0.5, 20:0.5, 60:0)", 0.5, 5.0),
    ("tabulated(0:1, 5:0.5, 20:0.5, 60:0)", 0.25, 40.0),
    ("tabulated(0:1, 10:0.5, tail=drop)", 0.3, 10.0),
    ("tabulated(0:1, 10:0.5, tail=pareto)", 0.125, 40.0),
    ("cost-adjusted(step(60), 1, 0.01)", 1.3 / 1.6, 30.0),
    ("cost-adjusted(exponential(60), 1, 0.01)", 0.5, 60 * math.log(2)),
    ("scipy(uniform, scale=60)", 0.25, 45.0),
]


@pytest.mark.parametrize(("text", "x", "expected"), INVERSES)
def test_every_inverse_has_its_value_computed_by_hand(text: str, x: float, expected: float) -> None:
    """One or more worths on every branch of every inverse."""
    assert moment(text, x) == pytest.approx(expected, rel=1e-9)


def by_quadrature(deadline: Utility, value: float, slope: float, t: float) -> float:
    """The cost-adjusted utility by another library's integration, linear cost."""

    def s(x: float) -> float:
        return float(deadline(np.array([x]))[0])

    def ahead(start: float) -> float:
        # In pieces, so that no breakpoint lies inside one; beyond the last piece the tail is smooth.
        cuts = sorted({start, *(each for each in (*deadline.breakpoints, 60.0, 600.0, 6e3, 6e4) if each > start)})
        pieces = [quad(s, a, b, limit=200)[0] for a, b in pairwise(cuts)]
        return float(slope * (sum(pieces) + quad(s, cuts[-1], math.inf, limit=200)[0]))

    return (value * s(t) + ahead(t)) / (value + ahead(0.0))


@pytest.mark.parametrize(
    "deadline",
    [
        "exponential(60)",
        "uniform(60)",
        "step(60)",
        "log-normal(60, 0.7)",
        "log-laplace(60, 3)",
        "piecewise(300, 60, 0.5)",
        "parc(300, 2)",
        "scipy(weibull_min, c=1.5, scale=60)",
    ],
)
@pytest.mark.parametrize("t", [0.0, 3.0, 45.0, 100.0])
def test_costs_agree_with_numeric_integration(deadline: str, t: float) -> None:
    """Closed forms and our own integration against SciPy's quadrature."""
    adjusted = worth(f"cost-adjusted({deadline}, 2, 0.05)", t)
    assert adjusted == pytest.approx(by_quadrature(parse_utility(deadline), 2.0, 0.05, t), abs=2e-7)


@pytest.mark.parametrize("deadline", ["exponential(60)", "uniform(60)", "step(60)"])
def test_the_closed_integrals_agree_with_the_numeric_one(deadline: str) -> None:
    """Two roads to the same expected cost."""
    utility = parse_utility(deadline)
    numeric = RemainingCost(utility, np.ones_like, "test")
    t = np.concatenate([[0.0], np.geomspace(1e-3, 500.0, 101), [1e9, math.inf]])
    assert np.max(np.abs(numeric(t) - utility.remaining(t))) < 60.0 * 1e-8  # type: ignore[attr-defined]


def test_a_log_cost_has_its_known_value_for_a_step_deadline() -> None:
    """With deadline 60 the cost ahead of t is a (ln 61 - ln(1 + t))."""
    expected = (1 + 0.5 * math.log(61 / 31)) / (1 + 0.5 * math.log(61))
    assert worth("cost-adjusted(step(60), 1, 0.5, cost=log)", 30) == pytest.approx(expected, rel=1e-9)


def test_a_power_tail_is_integrated_to_infinity() -> None:
    """The mean of Pareto(60, 1.25) is 300: four fifths of it lie beyond the scale."""
    numeric = RemainingCost(parse_utility("pareto(60, 1.25)"), np.ones_like, "test")
    assert numeric(np.array([0.0, 60.0, 960.0])).tolist() == pytest.approx([300.0, 240.0, 120.0], rel=1e-7)


@pytest.mark.parametrize(
    "text",
    [
        "cost-adjusted(pareto(60, 1), 1, 0.01)",
        "cost-adjusted(log-laplace(60, 1), 1, 0.01)",
        "cost-adjusted(log-laplace(60, 0.5), 1, 0.01)",
        "cost-adjusted(scipy(halfcauchy, scale=60), 1, 0.01)",
    ],
)
def test_an_infinite_expected_cost_is_refused(text: str) -> None:
    """A deadline that may be far too far away cannot limit a bill that grows with time."""
    with pytest.raises(UtilityError, match="expected cost is infinite"):
        parse_utility(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cost-adjusted(uniform(60), 0, 1)", "value is 0"),
        ("cost-adjusted(uniform(60), 1, -1)", "rate is -1"),
        ("cost-adjusted(uniform(60), 1, 1, cubic)", "cost is 'cubic'"),
        ("cost-adjusted(uniform(60), 1, 1, linear, 5)", "only a step cost"),
        ("cost-adjusted(uniform(60), 1, 1, step)", "at is 0"),
        ("piecewise(60, 300, 0.5)", "end is 60"),
        ("piecewise(300, 60, 1)", "less than 1"),
        ("linear(60, 10)", "start is 60"),
        ("parc(300, 0.5)", "at least 1"),
        ("tabulated(0:1)", "at least two"),
        ("tabulated(0:0.9, 10:0)", "first 0:1"),
        ("tabulated(0:1, 10:0.5)", "last worth is 0.5"),
        ("tabulated(0:1, 10:0.5, 10:0)", "later"),
        ("tabulated(0:1, 10:0.5, 20:0.6, 30:0)", "20:0.6"),
        ("tabulated(0:1, 10:0, tail=up)", "tail is 'up'"),
        ("scipy(weibull_mix, c=1)", "did you mean weibull_min"),
        ("scipy(weibull_min)", "needs its parameter c"),
        ("scipy(weibull_min, k=1)", "no parameter 'k'"),
        ("scipy(weibull_min, c=-1)", "refuses"),
        ("scipy(weibull_min, c=1min)", "without a unit"),
        ("scipy(norm)", "at t = 0 it is 0.5"),
        ("python(captime_has_no_such_module:f)", "cannot be imported"),
        ("python(math:no_such_function)", "has no 'no_such_function'"),
        ("python(math:sqrt)", "at t = 0 it is 0"),
        ("python(math:pi)", "cannot be called"),
        ("python(5)", "module:function"),
    ],
)
def test_a_wrong_parameter_is_named(text: str, words: str) -> None:
    """The message says which parameter, what was found and what was expected."""
    with pytest.raises(UtilityError) as error:
        parse_utility(text)
    assert words in str(error.value)


def test_a_scalar_gives_an_array_without_dimensions() -> None:
    """What comes back can be used as a number."""
    value = Uniform(60)(15)
    assert value.shape == ()
    assert float(value) == 0.75
