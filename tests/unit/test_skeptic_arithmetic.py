import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import mixture_lower
from captime.skeptic.directed import Bets, above, below, rounded_down, rounded_up

BETS = Bets.documented(6)
scores = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).map(np.array)
shares = st.floats(1e-3, 0.999)


def exactly(factors: list[list[Fraction]]) -> Fraction:
    """The largest wealth of the mixture at any length, in rational arithmetic."""
    wealth, best = [Fraction(1)] * len(BETS.shares), Fraction(1)
    for row in factors:
        wealth = [each * factor for each, factor in zip(wealth, row, strict=True)]
        best = max(best, sum(wealth, Fraction(0)) / len(wealth))
    return best


def against_mean(values: FloatArray, mean: float) -> list[list[Fraction]]:
    """1 - b + b·x/q, exactly."""
    exact = [Fraction(float(share)) for share in BETS.shares]
    return [[1 - b + b * Fraction(float(x)) / Fraction(mean) for b in exact] for x in values]


@settings(max_examples=60, deadline=None)
@given(values=scores, mean=shares)
def test_wealth_is_never_overstated(values: FloatArray, mean: float) -> None:
    """What the skeptic shows is so in exact arithmetic; and it misses by next to nothing."""
    best = exactly(against_mean(values, mean))
    if best > 1:
        assert not BETS.refutes_mean(values, mean, best * (1 + Fraction(1, 10**15)))
        assert BETS.refutes_mean(values, mean, best * (1 - Fraction(1, 10**10)))


@settings(max_examples=60, deadline=None)
@given(highs=scores, lows=scores, margin=st.floats(0.0, 0.95))
def test_duels_are_never_overstated(highs: FloatArray, lows: FloatArray, margin: float) -> None:
    """1 + f(ε - D) / (1 - ε), as in the documents."""
    n = min(len(highs), len(lows))
    exact = [Fraction(float(share)) for share in BETS.shares]
    epsilon = Fraction(margin)
    rows = [
        [1 + f * (epsilon - Fraction(float(high)) + Fraction(float(low))) / (1 - epsilon) for f in exact]
        for high, low in zip(highs[:n], lows[:n], strict=True)
    ]
    best = exactly(rows)
    differences = np.minimum(above(highs[:n] - lows[:n]), 1.0)
    if best > 1:
        assert not BETS.shows_no_lead(differences, margin, best * (1 + Fraction(1, 10**15)))
        assert BETS.shows_no_lead(differences, margin, best * (1 - Fraction(1, 10**9)))


@settings(max_examples=30, deadline=None)
@given(values=scores, log_inverse=st.floats(0.1, 8.0))
def test_lower_bounds_agree_with_the_engine(values: FloatArray, log_inverse: float) -> None:
    """The best over all lengths is at least what the engine's own bound says of the whole."""
    wanted = Fraction(math.exp(log_inverse))
    engine = mixture_lower(values, log_inverse, sine_nodes(6))
    assert BETS.lower_bound(values, wanted) >= engine - 1e-6


def test_long_products_neither_vanish_nor_explode() -> None:
    """Wealth that has vanished stays lost, wealth beyond all doubles is enough."""
    lost_then_won = np.concatenate((np.zeros(20_000), np.ones(20_000)))
    assert not BETS.refutes_mean(np.zeros(3000), 0.5, Fraction(2))
    assert BETS.refutes_mean(np.ones(5000), 0.5, Fraction(10) ** 300)
    assert not BETS.refutes_mean(lost_then_won[:20_100], 0.99, Fraction(2))


def test_an_upper_bound_is_a_lower_bound_seen_from_the_other_side() -> None:
    """At most 1 needs no proof; at most 0 cannot be shown."""
    highs = np.array([0.0, 0.1] * 40)
    assert BETS.shows_at_most(np.ones(3), 1.0, Fraction(10))
    assert BETS.shows_at_most(highs, 0.3, Fraction(10))
    assert not BETS.shows_at_most(highs, 0.04, Fraction(10))


@given(st.fractions(0, 10**6))
def test_fractions_become_doubles_on_the_safe_side(value: Fraction) -> None:
    """Up or down as wanted, and not further than to the neighbour."""
    up, down = rounded_up(value), rounded_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))
    assert below(np.array([1.0]))[0] < 1.0 < above(np.array([1.0]))[0]
