import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities import from_callable, normalised, parse_utility, survival
from captime.utilities.python_function import first_moment

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None)


def hyperbola(t: float) -> float:
    """A utility of single numbers, importable from this file."""
    return 1.0 / (1.0 + t / 60.0)


def falling_steps(t: FloatArray) -> FloatArray:
    """A utility of arrays with jumps at 10 and 60."""
    return np.where(t < 10.0, 1.0, np.where(t < 60.0, 0.4, 0.0))


def only_numbers(t: float) -> float:
    """Refuses arrays: the truth of an array is ambiguous."""
    return 1.0 - t / 30.0 if t < 30.0 else 0.0


def test_a_function_of_arrays_is_used_as_it_is() -> None:
    """Called once for the whole array, so that millions of runs cost one call."""
    sizes: list[int] = []

    def counted(t: FloatArray) -> FloatArray:
        sizes.append(np.size(t))
        return np.exp(-t / 60.0)

    utility = from_callable(counted)
    sizes.clear()
    utility(np.linspace(0.0, 100.0, 1000))
    assert sizes == [1000]


def test_a_function_of_single_numbers_is_called_for_each() -> None:
    """A utility may be written without arrays."""
    utility = from_callable(only_numbers, breakpoints=[30])
    t = np.array([[0.0, 15.0], [30.0, math.inf]])
    assert utility(t).tolist() == [[1.0, 0.5], [0.0, 0.0]]


def test_a_function_that_confuses_arrays_is_called_for_each() -> None:
    """One that answers something else for an array than for its elements is not trusted with arrays."""

    def confused(t: FloatArray) -> FloatArray:
        return np.exp(-t / 60.0) if np.ndim(t) == 0 else np.exp(-np.sort(t)[::-1] / 60.0)

    assert from_callable(confused)(np.array([0.0, 60.0])).tolist() == pytest.approx([1.0, math.exp(-1.0)])


def test_the_end_of_a_function_is_found() -> None:
    """zero_at by bisection, to the last bit."""
    assert from_callable(falling_steps, breakpoints=[10, 60]).zero_at == 60.0
    assert from_callable(hyperbola).zero_at == math.inf


def test_the_inverse_lands_exactly_on_jumps() -> None:
    """Bisection over the numbers themselves ends at the jump, not near it."""
    utility = from_callable(falling_steps, breakpoints=[10, 60])
    x = np.array([0.0, 0.2, 0.4, 0.7, 1.0])
    assert utility.inverse(x).tolist() == [60.0, 60.0, 10.0, 10.0, 0.0]


@steady
@given(x=st.floats(min_value=0.0, max_value=1.0), scale=st.floats(min_value=1e-3, max_value=1e5))
def test_the_inverse_never_stops_too_early(x: float, scale: float) -> None:
    """u(inverse(x)) <= x without any tolerance, and one number earlier it is above."""
    utility = from_callable(lambda t: np.exp(-((t / scale) ** 0.7)))
    t = utility.inverse(np.array([x]))
    assert utility(t)[0] <= x
    if 0.0 < t[0] < math.inf:
        assert utility(np.nextafter(t, 0.0))[0] > x


def test_the_inverse_looks_beyond_the_checked_moments_if_it_must() -> None:
    """A slow function reaches 1e-10 long after 1e9 seconds."""
    t = from_callable(hyperbola).inverse(np.array([1e-10]))
    assert t[0] == pytest.approx(60.0 * (1e10 - 1.0))


def test_bisection_returns_the_upper_end_if_nothing_is_found() -> None:
    """The caller vouches for the upper end."""
    assert first_moment(np.ones_like, np.array([0.5]), 0.0, 7.0).tolist() == [7.0]
    assert first_moment(np.zeros_like, np.array([0.5]), 2.0, 7.0).tolist() == [2.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda t: 0.9 * np.exp(-t), "at t = 0 it is 0.9, expected 1"),
        (
            lambda t: np.exp(-t) * np.where(t > 100.0, -1.0, 1.0) - np.where(t > 100, 0.1, 0.0),
            "expected a number from 0",
        ),
        (lambda t: 1.0 + t, "expected a number from 0 to 1"),
        (lambda t: np.where(t < 50.0, np.exp(-t), np.exp(-t) + 0.25), "it rises from"),
        (lambda t: 1.0 / (1.0 + t) ** 0.1, "zero_tail=True"),
        (lambda t: np.where(t > 0.5, 0.5, 1.0), "is still 0.5"),
        (lambda t: np.where(t < 5.0, 1.0, np.nan), "it is nan"),
        (lambda t: 1.0 / math.sin(0.0 * t), "failed at t = 0 with ZeroDivisionError"),
        (lambda _: "much", "failed at t = 0 with ValueError"),
    ],
)
def test_what_is_no_utility_is_refused_with_the_moment(function: object, words: str) -> None:
    """Where it fails, what was found, what was expected."""
    with pytest.raises(UtilityError) as error:
        from_callable(function, name="mine")  # type: ignore[arg-type]  # some of them are wrong on purpose
    assert str(error.value).startswith("mine: ")
    assert words in str(error.value)


def test_the_moment_of_a_rise_is_named() -> None:
    """Both sides of it, so that it can be found in the user's own formula."""
    with pytest.raises(UtilityError, match=r"rises from 0\.2 at t = 19\.99\d* to 0\.7 at t = 20,"):
        from_callable(
            lambda t: np.where(t < 10, 1.0, np.where(t < 20, 0.2, np.where(t < 30, 0.7, 0.0))),
            breakpoints=[20],
        )


def test_a_narrow_rise_is_found_at_a_breakpoint() -> None:
    """The grid alone would step over it."""

    def spiky(t: FloatArray) -> FloatArray:
        return np.where(np.abs(t - 33.0) < 1e-5, 0.9, np.exp(-t / 10.0))

    from_callable(spiky)
    with pytest.raises(UtilityError, match="rises"):
        from_callable(spiky, breakpoints=[33.0])


def test_the_upper_value_at_a_jump_is_refused() -> None:
    """Completed means strictly before the captime, so t <= d has to be t < d."""
    with pytest.raises(UtilityError, match="write t < 300 instead of t <= 300"):
        from_callable(lambda t: np.where(t <= 300, 1.0, 0.0), breakpoints=[300])


def test_a_slow_tail_needs_a_statement() -> None:
    """With zero_tail the user vouches for the limit."""
    utility = from_callable(lambda t: 1.0 / (1.0 + t) ** 0.1, zero_tail=True)
    assert utility(np.array([math.inf]))[0] == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan, "10", True])
def test_a_wrong_breakpoint_is_refused(bad: object) -> None:
    """A jump at 0 would contradict u(0) = 1."""
    with pytest.raises(UtilityError, match="breakpoint"):
        from_callable(np.exp, breakpoints=[bad])  # type: ignore[list-item]


def test_what_cannot_be_called_is_refused() -> None:
    """A number is not a function."""
    with pytest.raises(UtilityError, match="cannot be called"):
        from_callable(5)  # type: ignore[arg-type]


def test_a_value_outside_the_range_between_the_checked_moments_is_an_error_later() -> None:
    """The checks cannot look everywhere; evaluation does not pass on what they missed."""
    utility = from_callable(lambda t: np.where(np.abs(t - 33.0) < 1e-5, 5.0, np.exp(-t / 10.0)), name="mine")
    with pytest.raises(UtilityError, match="mine: at t = 33 its worth is 5"):
        utility(np.array([1.0, 33.0]))


def test_an_importable_function_has_a_text_that_reads_back() -> None:
    """python(module:function) leads to the very same function."""
    utility = from_callable(hyperbola)
    assert str(utility) == f"python({__name__}:hyperbola)"
    assert parse_utility(str(utility)) == utility
    jumping = from_callable(falling_steps, breakpoints=[60, 10])
    assert str(jumping) == f"python({__name__}:falling_steps, 10, 60)"
    assert parse_utility(str(jumping)) == jumping


def test_a_nameless_function_is_called_by_the_given_name() -> None:
    """A lambda cannot be imported, so its text is the name."""
    assert str(from_callable(lambda t: np.exp(-t), name="my patience")) == "my patience"


def test_a_function_in_euros_is_normalised() -> None:
    """From 5 EUR at once down to -1 EUR: an epsilon of 0.1 is 0.6 EUR."""
    made = normalised(lambda t: np.maximum(-1.0, 5.0 - t), at_zero=5.0, at_infinity=-1.0)
    assert made.factor == 6.0
    assert made.utility(np.array([0.0, 3.0, 6.0, 7.0])).tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert made.utility.zero_at == pytest.approx(6.0)


def test_a_normalised_function_reads_back() -> None:
    """Its own limits are part of the text."""
    made = normalised(hyperbola, at_zero=1.0, at_infinity=-1e-20)
    assert parse_utility(str(made.utility)) == made.utility


def test_limits_that_do_not_fall_are_refused() -> None:
    """There is nothing to divide by."""
    with pytest.raises(UtilityError, match="at_zero is 1, expected"):
        normalised(hyperbola, at_zero=1.0, at_infinity=1.0)


def test_a_frozen_distribution_keeps_its_name() -> None:
    """Positional and named parameters become one text."""
    utility = survival(stats.weibull_min(1.5, scale=60))
    assert str(utility) == "scipy(weibull_min, c=1.5, scale=60)"
    assert parse_utility(str(utility)) == utility
    t = np.array([1.0, 60.0, 200.0])
    assert utility(t).tolist() == pytest.approx(stats.weibull_min(1.5, scale=60).sf(t).tolist())


def test_the_inverse_of_a_distribution_is_its_quantile() -> None:
    """SciPy's own inverse survival function agrees."""
    frozen = stats.gamma(2.0, scale=30)
    x = np.array([0.999, 0.5, 0.01])
    assert survival(frozen).inverse(x).tolist() == pytest.approx(frozen.isf(x).tolist(), rel=1e-9)


def test_any_object_with_a_survival_function_will_do() -> None:
    """No SciPy needed."""

    @dataclass(frozen=True)
    class Deadline:
        """Certain at one moment."""

        at: float

        def sf(self, t: FloatArray) -> FloatArray:
            """The chance that it is still ahead."""
            return np.where(np.asarray(t) < self.at, 1.0, 0.0)

    assert survival(Deadline(40.0)).zero_at == 40.0


def test_an_object_without_a_survival_function_is_refused() -> None:
    """With an example of what would do."""
    with pytest.raises(UtilityError, match=r"sf\(t\)"):
        survival(object())


def test_a_distribution_that_may_lie_before_zero_is_refused() -> None:
    """A deadline in the past would make an answer at once worth less than 1."""
    with pytest.raises(UtilityError, match="at t = 0"):
        survival(stats.norm(10, 5))
