import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import mixture_lower
from captime.errors import LedgerDamaged
from captime.skeptic.books import Story
from captime.skeptic.directed import Bets, above, below, rounded_down, rounded_up
from captime.skeptic.lottery import Lottery
from captime.skeptic.pilot import Pilot
from captime.utilities import parse_utility

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


def test_the_wealth_of_a_mixture_is_the_mean_over_its_bets() -> None:
    """Two bets that have won half are worth 1.5 together, not 3."""
    bets = Bets(np.array([0.5, 0.5]))
    factors = np.array([[1.5, 1.5]])
    assert bets.ever_worth(factors, Fraction(14, 10))
    assert not bets.ever_worth(factors, Fraction(16, 10))


def test_nothing_is_shown_to_be_worth_less_than_it_scored() -> None:
    """Scores of 0.6 show, in the end, that their mean is at most a little more, and never that it is less."""
    bets, scores = Bets.documented(24), np.full(4000, 0.6)
    assert bets.shows_at_most(scores, 0.65, Fraction(10))
    assert not bets.shows_at_most(scores, 0.59, Fraction(10))


def test_the_weights_of_all_ranks_sum_to_at_most_one() -> None:
    """The check pays for leaders as the documents say, whichever configuration leads."""
    pilot = Pilot(16, {config: config for config in range(50)}, 50)
    assert sum(pilot.weight(config) for config in range(50)) <= 1
    assert pilot.weight(0) == Fraction(1, 2)


def test_no_run_may_have_a_little_more_time_than_was_drawn() -> None:
    """A captime half as long again is found on any position."""
    lottery = Lottery(parse_utility("uniform(10)"), 3, 1.25)
    position = np.arange(5)
    drawn = lottery._drawn(position)
    none = np.zeros(5, dtype=np.bool_)
    told = Story(position, position, drawn, np.zeros(5), np.full(5, np.nan), none, none, none)
    lottery.check_captimes(0, told)
    longer = drawn.copy()
    longer[3] *= 1.5
    with pytest.raises(LedgerDamaged, match="position 3"):
        lottery.check_captimes(0, replace(told, captime=longer))
