import doctest
import math
import re
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime import utilities
from captime.errors import UtilityError
from captime.utilities import UTILITIES, formula, parse_utility, suggest
from captime.utilities.formula import duration_text, parse_duration
from captime.utilities.suggest import deadline_at, from_prices, half_after, halving_every, summarise, worthless_after

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("log-laplace(60, 1)", "log-laplace(60, 1)"),
        ("  log-laplace ( 60 ,1 )  ", "log-laplace(60, 1)"),
        ("log_laplace(60.0, 1e0)", "log-laplace(60, 1)"),
        ("LogLaplace(1min, 1)", "log-laplace(60, 1)"),
        ("LOGLAPLACE(shape=1, scale=60)", "log-laplace(60, 1)"),
        ("log-laplace(60, shape=1)", "log-laplace(60, 1)"),
        ("genloglaplace(60, 1, 2)", "generalised-log-laplace(60, 1, 2)"),
        ("generalized_log_laplace(60, left=2, right=1)", "generalised-log-laplace(60, 1, 2)"),
        ("uniform(5min)", "uniform(300)"),
        ("uniform(5 min)", "uniform(300)"),
        ("uniform(90s)", "uniform(90)"),
        ("uniform(2h)", "uniform(7200)"),
        ("uniform(100ms)", "uniform(0.1)"),
        ("uniform(7us)", "uniform(7e-06)"),
        ("uniform(1d)", "uniform(86400)"),
        ("uniform(.5)", "uniform(0.5)"),
        ("uniform(1e20)", "uniform(1e+20)"),
        ("uniform(0.30000000000000004)", "uniform(0.30000000000000004)"),
        ("tabulated(0:1, 10s:0.5, 1min:0)", "tabulated(0:1, 10:0.5, 60:0)"),
        (
            "cost-adjusted(uniform(1min), value=1, rate=0.01)",
            "cost-adjusted(uniform(60), 1, 0.01)",
        ),
        (
            "cost_adjusted(rate=1, value=2, deadline=uniform(60), cost=step, at=30s)",
            "cost-adjusted(uniform(60), 2, 1, step, 30)",
        ),
        ("scipy(weibull_min, 1.5, scale=1min)", "scipy(weibull_min, c=1.5, scale=60)"),
        ("scipy(weibull_min, scale=60, c=1.5, loc=0)", "scipy(weibull_min, c=1.5, scale=60)"),
        ("python(math:erfc, 2, 1, tail=zero)", "python(math:erfc, 1, 2, tail=zero)"),
        ("python(math:erfc, at-zero=1)", "python(math:erfc)"),
    ],
)
def test_what_people_write_becomes_the_canonical_text(written: str, canonical: str) -> None:
    """Units, capitals, hyphens, keywords and blanks are forgiven; output has one form."""
    assert str(parse_utility(written)) == canonical


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("log-laplace", 12, "opening bracket"),
        ("log-laplace(60, 1", 18, "the text ends"),
        ("log-laplace(60 1)", 16, "found '1)'"),
        ("log-laplace(60,, 1)", 16, "expected a number"),
        ("log-laplace(60, 1) now", 20, "the end of the text"),
        ("(60)", 1, "name of a utility"),
        ("log-laplac(60, 1)", 1, "did you mean log-laplace?"),
        ("nonsense(60)", 1, "Known are: step, uniform"),
        ("log-laplace(60, 1, 2)", 20, "takes 2 arguments"),
        ("uniform(60, 1)", 13, "takes 1 argument, found more"),
        ("log-laplace(60)", 1, "needs its parameter shape"),
        ("log-laplace(60, shap=1)", 17, "did you mean shape?"),
        ("log-laplace(60, scale=60)", 17, "given twice"),
        ("log-laplace(scale=60, 1)", 23, "plain argument after a named one"),
        ("log-laplace(60, 1s)", 17, "plain number without a unit"),
        ("log-laplace(60, one)", 17, "the word 'one'"),
        ("log-laplace(60:1, 1)", 13, "the pair 60.0:1.0"),
        ("log-laplace(uniform(60), 1)", 13, "the utility uniform(60)"),
        ("uniform(5m)", 10, "did you mean min?"),
        ("uniform(5 parsec)", 11, "not a unit of time"),
        ("uniform(0x10)", 10, "not a unit of time"),
        ("uniform(-5)", 1, "end is -5"),
        ("uniform(1e999)", 1, "end is inf"),
        ("uniform()", 1, "write uniform(end)"),
        ("cost-adjusted(60, 1, 1)", 15, "expected a utility"),
        ("cost-adjusted(uniform(-1), 1, 1)", 15, "end is -1"),
        ("tabulated(0:1, 60)", 1, "expected a knot"),
        ("tabulated(0:1, 60:0s)", 1, "expected a knot"),
        ("tabulated(0:1, 60:)", 19, "after the colon"),
        ("__import__('os')", 12, "expected a number"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: int, words: str) -> None:
    """Counting characters from 1, with what was found and what was expected."""
    with pytest.raises(UtilityError) as error:
        parse_utility(text)
    assert f"character {place}:" in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_is_refused_with_an_example(text: str) -> None:
    """Nothing is not a utility."""
    with pytest.raises(UtilityError, match=r"empty.*log-laplace"):
        parse_utility(text)


def test_only_a_text_can_be_read() -> None:
    """A number given by mistake gets a sentence, not a traceback."""
    with pytest.raises(UtilityError, match="expected a text"):
        parse_utility(60)  # type: ignore[arg-type]


def test_a_tower_of_utilities_is_refused_before_the_stack_ends() -> None:
    """A text from a stranger cannot exhaust Python's recursion."""
    with pytest.raises(UtilityError, match="inside each other"):
        parse_utility("cost-adjusted(" * 5000 + "uniform(60)" + ", 1, 1)" * 5000)


_PIECES = st.sampled_from(
    [
        *UTILITIES,
        "(",
        ")",
        ",",
        ":",
        "=",
        " ",
        "60",
        "-1",
        "1e9",
        "0.5",
        "5min",
        "3x",
        "scale",
        "shape",
        "é",
        "\0",
        "_",
    ]
)


@steady
@given(st.text(max_size=40) | st.lists(_PIECES, max_size=14).map("".join))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """No text leads to another exception than UtilityError, and what parses reads back."""
    # The only text that runs foreign code is not something to try at random.
    if "python" in text.lower():
        return
    try:
        utility = parse_utility(text)
    except UtilityError as error:
        assert str(error)  # noqa: PT017 (that it is this type of exception is the claim)
        return
    assert parse_utility(str(utility)) == utility


_POSITIVE = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


@steady
@given(scale=_POSITIVE, shape=_POSITIVE)
def test_every_double_survives_the_text(scale: float, shape: float) -> None:
    """Numbers are printed so that they come back bit by bit."""
    utility = UTILITIES["log-laplace"](scale, shape)  # type: ignore[call-arg]  # the protocol has no constructor
    assert parse_utility(str(utility)) == utility
    assert re.fullmatch(r"log-laplace\([^,]+, [^,]+\)", str(utility))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5 min", 90.0),
        ("5m", 300.0),
        ("2H", 7200.0),
        ("100ms", 0.1),
        (" 1d ", 86400.0),
        ("0", 0.0),
    ],
)
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    """With and without units."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 5", "5min30s", "-1", "1e999", "nan", "5M", "5 foot"])
def test_a_wrong_duration_is_refused_under_its_name(text: str) -> None:
    """The message begins with what the duration is for."""
    with pytest.raises(UtilityError, match=r"^--deadline is "):
        parse_duration(text, "--deadline")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (1.0, "1 s"),
        (0.001, "1 ms"),
        (0.25, "250 ms"),
        (2e-6, "2 µs"),
        (3e-10, "0.0003 µs"),
        (59.9999, "1 min"),
        (60.0, "1 min"),
        (90.0, "1.5 min"),
        (9000.0, "2.5 h"),
        (86400.0, "1 d"),
        (8.64e8, "10,000 d"),
        (1e20, "1.16e+15 d"),
        (math.inf, "never"),
    ],
)
def test_durations_are_printed_for_people(seconds: float, text: str) -> None:
    """In the largest unit that makes it at least 1."""
    assert duration_text(seconds) == text


@steady
@given(st.floats(min_value=1e-6, max_value=1e12))
def test_a_printed_duration_is_right_to_three_digits(seconds: float) -> None:
    """Printing and reading again loses no more than the digits that are not shown."""
    assert parse_duration(duration_text(seconds).replace(",", "")) == pytest.approx(seconds, rel=6e-3)


def test_sentences_become_utilities() -> None:
    """The examples of the documentation."""
    assert str(deadline_at(300)) == "step(300)"
    assert str(worthless_after(300)) == "uniform(300)"
    assert str(half_after(60)) == "log-laplace(60, 1)"
    assert halving_every(60)(np.array([0.0, 60.0, 120.0])).tolist() == pytest.approx([1.0, 0.5, 0.25])
    assert str(from_prices(2, 1)) == "uniform(1800)"


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True])
def test_a_sentence_with_an_impossible_number_is_refused(bad: float) -> None:
    """Named by what it is in the sentence."""
    with pytest.raises(UtilityError, match="the pay per hour"):
        from_prices(bad, 1)
    with pytest.raises(UtilityError, match="what an answer is worth"):
        from_prices(1, bad)
    with pytest.raises(UtilityError, match="worthless"):
        worthless_after(bad)


def test_a_summary_shows_familiar_times() -> None:
    """1 s to 1 d for a utility that lives among minutes."""
    summary = summarise(parse_utility("log-laplace(60, 1)"))
    assert [t for t, _ in summary.worth_at] == [1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0]
    assert dict(summary.worth_at)[600.0] == pytest.approx(0.05)
    assert dict(summary.time_at) == pytest.approx({0.9: 12.0, 0.5: 60.0, 0.1: 300.0})
    assert summary.zero_at == math.inf
    assert summary.text == "log-laplace(60, 1)"


def test_a_summary_goes_where_the_utility_lives() -> None:
    """Thousandths of a second or weeks appear only when they say something."""
    assert summarise(parse_utility("uniform(20ms)")).worth_at[0] == pytest.approx((0.001, 0.95))
    assert summarise(parse_utility("uniform(30d)")).worth_at[-1][0] == 8640000.0


@pytest.mark.parametrize("module", [utilities, suggest, formula], ids=lambda module: str(module.__name__))
def test_the_examples_in_the_docstrings_are_true(module: ModuleType) -> None:
    """What the documentation shows is what happens."""
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
