import math
import pickle
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.errors import UtilityError
from captime.utilities import UTILITIES, Utility, parse_utility
from captime.utilities.formula import Named

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None)

# Every member through its own example, and the corners of some of them besides.
EXAMPLES = [cast("Named", member).example for member in UTILITIES.values()]
CORNERS = [
    "pareto(0.001, 2.5)",
    "log-laplace(60, 0.3)",
    "log-laplace(0.02, 7)",
    "generalised-log-laplace(60, 3.5, 0.2)",
    "log-normal(3600, 0.1)",
    "piecewise(300, 299, 0.01)",
    "poly(60, 0.5)",
    "linear(0, 60)",
    "geometric(1e-6, 1e9)",
    "forward(0, 60, 0.5)",
    "forward(10, 60, 1)",
    "backward(0, 60, 0.5)",
    "parc(300, 1)",
    "parc(300, 10)",
    "tabulated(0:1, 5:1, 10:0.5, 20:0.5, 60:0)",
    "tabulated(0:1, 10:0.5, tail=drop)",
    "tabulated(0:1, 10:0.5, tail=pareto)",
    "cost-adjusted(exponential(60), 1, 0.01)",
    "cost-adjusted(step(60), 1, 0.01)",
    "cost-adjusted(log-normal(60, 1), 2, 0.1)",
    "cost-adjusted(parc(300, 2), 1, 0.01)",
    "cost-adjusted(log-laplace(60, 1), 1, 0.2, log)",
    "cost-adjusted(uniform(60), 1, 0.5, step, 30)",
    "cost-adjusted(uniform(60), 1, 3, constant)",
    "cost-adjusted(cost-adjusted(uniform(60), 1, 0.1), 1, 0.1)",
    "scipy(uniform, scale=60)",
    "scipy(poisson, mu=0.5, loc=3)",
    "scipy(lomax, c=1.2, scale=10)",
    "python(math:erfc, 0.5, tail=zero)",
]
# Building a member can integrate and import: once per text is enough.
BUILT = {text: parse_utility(text) for text in (*EXAMPLES, *CORNERS)}

each_utility = pytest.mark.parametrize("utility", BUILT.values(), ids=BUILT.keys())
any_utility = st.sampled_from(list(BUILT.values()))
any_time = st.floats(min_value=0.0, max_value=1e12) | st.sampled_from([0.0, math.inf])


def moments(utility: Utility) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A wide grid, with both sides of every breakpoint."""
    at = np.array(utility.breakpoints)
    near = [at, np.nextafter(at, 0.0), np.nextafter(at, np.inf)]
    return np.unique(np.concatenate([[0.0], np.geomspace(1e-9, 1e12, 5001), *near]))


def one(utility: Utility, t: float) -> float:
    """The worth at a single moment."""
    return float(utility(np.array([t]))[0])


@pytest.mark.parametrize("name", UTILITIES)
def test_the_register_key_is_the_name_the_member_prints(name: str) -> None:
    """A member is found again under the name it writes."""
    member = UTILITIES[name]
    assert cast("Named", member).name == name
    assert isinstance(parse_utility(cast("Named", member).example), member)


@each_utility
def test_an_answer_at_once_has_full_worth(utility: Utility) -> None:
    """u(0) = 1, exactly."""
    assert one(utility, 0.0) == 1.0
    assert one(utility, -0.0) == 1.0


@each_utility
def test_an_answer_that_never_comes_is_worth_nothing(utility: Utility) -> None:
    """u(inf) = 0, exactly, and the tail comes close to it."""
    assert one(utility, math.inf) == 0.0
    assert one(utility, 1e300) < 1e-3


@each_utility
def test_worth_stays_in_the_unit_interval_and_never_rises(utility: Utility) -> None:
    """On a wide grid and on both sides of every breakpoint."""
    u = utility(moments(utility))
    assert np.all((u >= 0.0) & (u <= 1.0))
    assert np.max(np.diff(u)) <= 1e-12


@each_utility
def test_the_value_at_a_breakpoint_is_the_one_right_after_it(utility: Utility) -> None:
    """Right-continuous: at a jump the lower value holds."""
    at = np.array(utility.breakpoints)
    assert np.all(np.abs(utility(at) - utility(np.nextafter(at, np.inf))) <= 1e-6)
    assert np.all(at > 0.0)


@each_utility
def test_zero_at_is_the_first_worthless_moment(utility: Utility) -> None:
    """Nothing from it on, something before it."""
    if math.isinf(utility.zero_at):
        assert float(utility.inverse(np.array([0.0]))[0]) == math.inf
        return
    t = utility.zero_at * np.array([1.0, 1.0 + 1e-9, 2.0, 1e6])
    assert np.all(utility(t) == 0.0)
    # The last ulps before it may round to 0; a thousandth before it there must be something left.
    assert one(utility, utility.zero_at * 0.999) > 0.0
    assert float(utility.inverse(np.array([0.0]))[0]) == utility.zero_at


@each_utility
def test_the_ends_of_the_inverse_are_zero_and_zero_at(utility: Utility) -> None:
    """Full worth or more is had at once; no worth is reached at zero_at."""
    found = utility.inverse(np.array([1.0, 1.5, math.inf, 0.0]))
    assert found.tolist() == [0.0, 0.0, 0.0, utility.zero_at]


@steady
@given(utility=any_utility, x=st.floats(min_value=1e-6, max_value=1.0, exclude_max=True))
def test_the_inverse_is_the_first_moment_at_or_below_the_value(utility: Utility, x: float) -> None:
    """Right after it the worth is at most x, right before it it is at least x (up to rounding)."""
    t = float(utility.inverse(np.array([x]))[0])
    assert t >= 0.0
    assert one(utility, t * (1.0 + 1e-9)) <= x + 1e-9
    if t > 0.0:
        assert one(utility, t * (1.0 - 1e-9)) >= x - 1e-9


@steady
@given(utility=any_utility, early=any_time, late=any_time)
def test_later_is_never_better(utility: Utility, early: float, late: float) -> None:
    """For any two moments whatsoever."""
    early, late = sorted((early, late))
    assert one(utility, late) <= one(utility, early) + 1e-12


@steady
@given(utility=any_utility, t=st.lists(any_time, min_size=1, max_size=8))
def test_a_vector_is_valued_like_its_elements(utility: Utility, t: list[float]) -> None:
    """Arrays of any shape and Python floats agree, and the shape is kept."""
    together = utility(np.array(t))
    singly = [float(utility(np.float64(each))) for each in t]  # type: ignore[arg-type]  # scalars are allowed
    assert together.tolist() == pytest.approx(singly, rel=1e-14, abs=0.0)
    assert utility(np.array(t).reshape(1, -1, 1)).shape == (1, len(t), 1)
    assert utility.inverse(np.full((2, 3), 0.5)).shape == (2, 3)


@each_utility
def test_a_python_float_a_list_and_nothing_are_accepted(utility: Utility) -> None:
    """Convenience at the keyboard: no array has to be made first, and an empty one is fine."""
    assert float(utility(0.0)) == 1.0  # type: ignore[arg-type]  # the protocol promises less than members do
    assert np.shape(utility([0, 1, 2])) == (3,)  # type: ignore[arg-type]
    assert utility(np.array([])).shape == (0,)
    assert utility.inverse(np.array([])).shape == (0,)


@each_utility
def test_the_argument_is_left_alone(utility: Utility) -> None:
    """Work in place happens on copies: a table of runtimes survives being valued."""
    t = np.array([0.0, 1.0, 59.0, 60.0, 1e5, math.inf])
    x = np.array([0.0, 0.25, 0.5, 1.0])
    utility(t)
    utility.inverse(x)
    assert t.tolist() == [0.0, 1.0, 59.0, 60.0, 1e5, math.inf]
    assert x.tolist() == [0.0, 0.25, 0.5, 1.0]


@each_utility
def test_the_text_reads_back_as_an_equal_utility(utility: Utility) -> None:
    """parse(str(u)) == u, and prints the same again."""
    again = parse_utility(str(utility))
    assert again == utility
    assert str(again) == str(utility)


@each_utility
@pytest.mark.parametrize("bad", [-1.0, -1e-300, math.nan])
def test_a_negative_or_missing_number_is_refused_with_its_place(utility: Utility, bad: float) -> None:
    """Both for times and for values to invert."""
    with pytest.raises(UtilityError, match="element 1 of 3"):
        utility(np.array([0.0, bad, 1.0]))
    with pytest.raises(UtilityError, match="element 1 of 3"):
        utility.inverse(np.array([0.0, bad, 1.0]))


@each_utility
def test_what_is_no_number_is_refused(utility: Utility) -> None:
    """Words are not times."""
    with pytest.raises(UtilityError, match="expected a number"):
        utility("soon")  # type: ignore[arg-type]


SIMPLE = [text for text in EXAMPLES if all(part not in text for part in ("tabulated", "cost", "scipy", "python"))]


@pytest.mark.parametrize("text", SIMPLE)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "60", None])
def test_a_wrong_first_parameter_is_refused_by_name(text: str, bad: object) -> None:
    """The message names the family and the parameter, and shows a valid example."""
    member: Any = type(BUILT[text])
    arguments = [getattr(BUILT[text], field) for field in member.__match_args__]
    if bad == 0.0 and member.__match_args__[0] == "start":
        bad = -0.5  # a time of grace may be 0
    name = cast("Named", member).name
    with pytest.raises(UtilityError, match=rf"^{name}: {member.__match_args__[0]} is .*expected a finite") as e:
        member(bad, *arguments[1:])
    assert cast("Named", member).example in str(e.value)


@pytest.mark.parametrize("text", [text for text in SIMPLE if "," in text])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_wrong_last_parameter_is_refused_by_name(text: str, bad: float) -> None:
    """Not only the first one is looked at."""
    member: Any = type(BUILT[text])
    arguments = [getattr(BUILT[text], field) for field in member.__match_args__]
    with pytest.raises(UtilityError, match=f"{member.__match_args__[-1]} is"):
        member(*arguments[:-1], bad)


@pytest.mark.parametrize("text", SIMPLE)
def test_a_closed_formula_survives_pickling(text: str) -> None:
    """Workers in other processes get equal utilities."""
    assert pickle.loads(pickle.dumps(BUILT[text])) == BUILT[text]


@steady
@given(
    scale=st.floats(min_value=1e-300, max_value=1e300),
    shape=st.floats(min_value=1e-3, max_value=1e3),
    t=any_time,
)
def test_extreme_parameters_neither_warn_nor_leave_the_range(scale: float, shape: float, t: float) -> None:
    """Overflow and underflow end in 0 or 1, never in a warning or a NaN."""
    for name in ("log-laplace", "pareto", "log-normal", "poly"):
        utility = UTILITIES[name](scale, shape)  # type: ignore[call-arg]  # the protocol has no constructor
        assert 0.0 <= one(utility, t) <= 1.0
        assert not np.any(np.isnan(utility.inverse(np.array([0.0, 1e-9, 0.5, 1.0 - 1e-9]))))
