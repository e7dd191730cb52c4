"""The contract of the family of bounds, over the register: every registered bound is tested."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray, IntArray
from captime.bounds import BOUNDS, Bound

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None)

# Bounds that need more than sums are called differently; `tests/unit/test_bound_*.py` hold them to theirs.
FROM_SUMS = {name: member() for name, member in BOUNDS.items() if member.needs == "sums"}
each_bound = pytest.mark.parametrize("bound", FROM_SUMS.values(), ids=FROM_SUMS.keys())


def some_sums(rows: int, columns: int, floor: float) -> tuple[IntArray, FloatArray, FloatArray]:
    """Prefix lengths, and sums of low and of high ends, as lockstep rounds show them."""
    rng = np.random.default_rng(11)
    n = np.arange(1, columns + 1)
    completed = rng.random((rows, columns)) < 0.6
    worth = floor + (1.0 - floor) * rng.random((rows, columns))
    return n, np.cumsum(worth * completed, axis=1), np.cumsum(np.where(completed, worth, floor), axis=1)


@each_bound
def test_it_says_what_it_may_be_used_for(bound: Bound) -> None:
    """Two facts and a line for listings."""
    assert isinstance(bound.monotone, bool)
    assert isinstance(bound.time_uniform, bool)
    assert bound.summary
    assert "\n" not in bound.summary


@each_bound
def test_many_intervals_at_once_are_those_one_by_one(bound: Bound) -> None:
    """Configurations down, rounds across; lengths, logarithms and floors broadcast."""
    n, low, high = some_sums(3, 20, 0.25)
    logarithm = 5.0 + np.log(n) + np.array([[0.0], [1.0], [2.0]])
    floor = np.array([[0.25], [0.1], [0.0]])
    lower, upper = bound(n, low, high, logarithm, floor)
    assert lower.shape == upper.shape == (3, 20)
    for row in range(3):
        for column in range(20):
            one = bound(
                n[[column]],
                low[[row], [column]],
                high[[row], [column]],
                logarithm[[row], [column]],
                floor[row],
            )
            assert (one[0][0], one[1][0]) == pytest.approx((lower[row, column], upper[row, column]), abs=1e-12)


@each_bound
def test_one_row_of_logarithms_serves_all_configurations(bound: Bound) -> None:
    """A row is shared by all configurations at the same level."""
    n, low, high = some_sums(4, 10, 0.0)
    shared = bound(n, low, high, np.full(10, 3.0), np.zeros(1))
    apiece = bound(n, low, high, np.full((4, 10), 3.0), np.zeros((4, 10)))
    np.testing.assert_array_equal(shared, apiece)


@each_bound
def test_the_arguments_are_left_alone(bound: Bound) -> None:
    """Sums belong to the caller, and stay as they are."""
    n, low, high = some_sums(2, 10, 0.1)
    kept = [n.copy(), low.copy(), high.copy()]
    bound(n, low, high, np.full((2, 10), 3.0), np.full((2, 1), 0.1))
    for before, after in zip(kept, (n, low, high), strict=True):
        np.testing.assert_array_equal(before, after)


@each_bound
@steady
@given(
    scores=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30).map(np.array),
    log_inverse=st.floats(0.1, 50.0),
    floor=st.floats(0.0, 1.0),
)
def test_the_means_lie_inside(bound: Bound, scores: FloatArray, log_inverse: float, floor: float) -> None:
    """Lower end <= mean of the low ends <= mean of the high ends <= upper end."""
    high = np.maximum(scores, floor)
    n = len(scores)
    lower, upper = bound(
        np.array([n]), scores.sum(keepdims=True), high.sum(keepdims=True), np.array([log_inverse]), np.array([floor])
    )
    assert lower[0] <= scores.mean() + 1e-12
    assert upper[0] >= high.mean() - 1e-12


@each_bound
@steady
@given(st.floats(0.1, 50.0), st.floats(0.0, 10.0), st.integers(1, 1000))
def test_more_certainty_takes_a_wider_interval(bound: Bound, log_inverse: float, more: float, n: int) -> None:
    """A smaller failure probability never narrows anything."""
    half, floor = np.array([n / 2]), np.zeros(1)
    loose = bound(np.array([n]), half, half, np.array([log_inverse]), floor)
    strict = bound(np.array([n]), half, half, np.array([log_inverse + more]), floor)
    assert strict[0][0] <= loose[0][0]
    assert strict[1][0] >= loose[1][0]


@each_bound
@steady
@given(
    n=st.integers(1, 1000),
    means=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted),
    log_inverse=st.floats(0.1, 50.0),
    floor=st.floats(0.0, 1.0),
)
def test_a_bound_declared_monotone_is_monotone(
    bound: Bound, n: int, means: list[float], log_inverse: float, floor: float
) -> None:
    """Where scores rise, no end falls: the licence to count a cut run by its ends."""
    if not bound.monotone:
        pytest.skip("declared not monotone")
    totals = n * (floor + (1.0 - floor) * np.array(means))
    ends = [bound(np.array([n]), total, total, np.array([log_inverse]), np.array([floor])) for total in totals[:, None]]
    assert ends[0][0][0] <= ends[1][0][0]
    assert ends[0][1][0] <= ends[1][1][0]
