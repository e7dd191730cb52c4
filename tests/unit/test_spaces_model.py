"""Spaces as values: draws, laws, features, children, sizes, words of a command line."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest, norm

from captime.errors import ScenarioError
from captime.spaces import Space, Style, section_of
from captime.spaces.features import Basis, Ranges, features
from captime.spaces.formats.section import read_section
from captime.spaces.parameters import STYLES, arguments
from captime.spaces.search import Nursery
from captime.spaces.values import Settings, number_in, text_of

SECTION: dict[str, object] = {
    "engine": {"type": "categorical", "choices": ["a", "b", "c"], "default": "b"},
    "depth": {"type": "int", "low": 1, "high": 1000, "log": True, "default": 30},
    "decay": {"type": "float", "low": 0.5, "high": 0.999, "default": 0.95},
    "fast": {"type": "bool", "default": False},
    "effort": {"type": "ordinal", "choices": ["low", "mid", "high"], "default": "mid"},
    "fixed": {"type": "constant", "value": 7},
    "conditions": ["depth | engine in {b, c}", "decay | engine == c", "effort | fast == false"],
    "forbidden": ["engine == a && fast == true", "depth > 500 && decay < 0.6"],
}


def space(**changed: object) -> Space:
    """The space of these tests, with words changed or added."""
    return read_section({**SECTION, **changed}, "test")


def only(**table: object) -> Space:
    """A space of one parameter, x."""
    return read_section({"x": table}, "test")


# ---------------------------------------------------------------- draws


def test_a_draw_depends_on_seed_and_number_and_on_nothing_else() -> None:
    """In any order, from any copy of the space, with anything drawn in between."""
    forwards = [space().draw(3, number) for number in range(20)]
    other = space()
    other.sample(np.random.default_rng(1))
    assert [other.draw(3, number) for number in reversed(range(20))] == forwards[::-1]
    assert [space().draw(4, number) for number in range(20)] != forwards


def test_draws_do_not_move_from_version_to_version() -> None:
    """A ledger of last year names its random configurations by number; this is one of them."""
    assert space().draw(2025, 8) == {
        "engine": "c",
        "depth": 13,
        "decay": 0.8925593537331447,
        "fast": False,
        "effort": "high",
        "fixed": 7,
    }


def test_draws_are_spread_as_the_laws_say() -> None:
    """Numbers, logarithms, weights and priors, against SciPy and binomial limits."""
    rng = np.random.default_rng(0)
    even = only(type="float", low=2.0, high=6.0).drawn(rng, 4000)[:, 0]
    assert kstest((even - 2) / 4, "uniform").pvalue > 1e-4
    log = only(type="float", low=1e-4, high=1.0, log=True).drawn(rng, 4000)[:, 0]
    assert kstest(np.log10(log) / 4 + 1, "uniform").pvalue > 1e-4
    bell = only(type="float", low=-8.0, high=8.0, prior="normal", mean=1.0, sd=1.5).drawn(rng, 4000)[:, 0]
    assert kstest(bell, norm(1.0, 1.5).cdf).pvalue > 1e-4
    beta = only(type="float", low=0.0, high=10.0, prior="beta", alpha=2, beta=5).drawn(rng, 4000)[:, 0]
    assert kstest(beta / 10, "beta", args=(2, 5)).pvalue > 1e-4
    weighted = only(type="categorical", choices=["x", "y", "z"], weights=[1, 0, 3]).drawn(rng, 4000)[:, 0]
    assert not (weighted == 1).any()
    assert binomtest(int((weighted == 2).sum()), 4000, 0.75).pvalue > 1e-4


def test_whole_numbers_have_equal_shares_at_the_ends_too() -> None:
    """A range of four: a quarter each; the ends are not halved by rounding."""
    drawn = only(type="int", low=3, high=6).drawn(np.random.default_rng(1), 8000)[:, 0]
    for value in (3, 4, 5, 6):
        assert binomtest(int((drawn == value).sum()), 8000, 0.25).pvalue > 1e-4


def test_forbidden_draws_are_drawn_again_and_the_rest_keep_their_shares() -> None:
    """The law is that of the space given that it is allowed."""
    plain = {"x": {"type": "int", "low": 0, "high": 9}, "forbidden": ["x > 5", "x == 0"]}
    drawn = read_section(plain, "test").drawn(np.random.default_rng(2), 5000)[:, 0]
    assert set(drawn) == {1, 2, 3, 4, 5}
    assert binomtest(int((drawn == 5).sum()), 5000, 0.2).pvalue > 1e-4


def test_a_space_with_nothing_allowed_says_so() -> None:
    """Instead of drawing for ever."""
    with pytest.raises(ScenarioError, match=r"test: \d+ random configurations in a row"):
        read_section({"x": {"type": "float", "low": 0.0, "high": 1.0}, "forbidden": ["x >= 0"]}, "test")


def test_rare_legal_draws_are_found() -> None:
    """One configuration in a hundred thousand is legal; all draws find one."""
    section = {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.0}, "forbidden": ["x > 0.00001"]}
    here = read_section(section, "test")
    assert all(float(here.draw(1, number)["x"]) <= 0.00001 for number in range(20))


def test_a_default_that_nobody_gave_may_be_forbidden() -> None:
    """Then a random configuration stands in; a default that was given is an error."""
    assumed = read_section({"x": {"type": "int", "low": 0, "high": 10}, "forbidden": ["x == 5"]}, "test")
    assert assumed.default == assumed.draw(0, 0)
    with pytest.raises(ScenarioError, match="test: the default configuration is forbidden"):
        read_section({"x": {"type": "int", "low": 0, "high": 10, "default": 5}, "forbidden": ["x == 5"]}, "test")


# ---------------------------------------------------------------- configurations


@pytest.mark.parametrize(
    ("settings", "about"),
    [
        ({"engine": "a"}, "fast is not set"),
        ({"engine": "a", "fast": False, "effort": "low", "fixed": 7, "depth": 3}, "depth is set but inactive"),
        ({"engine": "a", "fast": True, "fixed": 7}, "forbidden"),
        ({"engine": "q"}, "expected one of a, b, c"),
        ({"depth": 3.5}, "a number from 1 to 1000"),
        ({"depth": "3"}, "a number from 1 to 1000"),
        ({"depth": True}, "a number from 1 to 1000"),
        ({"speed": 3}, "there is no parameter speed"),
    ],
)
def test_what_is_no_configuration_of_the_space_is_refused(settings: Settings, about: str) -> None:
    """Incomplete, inactive, forbidden, out of range, of another kind, unknown."""
    with pytest.raises(ScenarioError, match=about):
        space().check(settings)


def test_favourites_are_completed_with_defaults() -> None:
    """What is not said is the default; what would have no effect is an error."""
    assert space(favourites=[{"engine": "c"}]).favourites == (
        {"engine": "c", "depth": 30, "decay": 0.95, "fast": False, "effort": "mid", "fixed": 7},
    )
    with pytest.raises(ScenarioError, match=r"favourites\[1\]: depth is set but inactive"):
        space(favourites=[{}, {"engine": "a", "depth": 3}])


def test_values_keep_their_kind_and_their_digits() -> None:
    """Whole numbers are ints, booleans are booleans, floats survive JSON to the last bit."""
    for number in range(50):
        drawn = space().draw(9, number)
        assert json.loads(json.dumps(drawn)) == drawn
        assert type(drawn["fast"]) is bool
        assert type(drawn.get("depth", 1)) is int
        assert type(drawn.get("decay", 0.5)) is float


def test_the_canonical_form_is_json_and_reads_back() -> None:
    """Also through JSON, and with every word of the section."""
    full = space(
        favourites=[{"engine": "a"}],
        arguments="-{name} {value}",
        true="--{name}",
        false="--no-{name}",
        words=["on", "off"],
        file={"type": "float", "low": 0.0, "high": 1.0, "prior": "normal", "mean": 0.5, "sd": 0.1, "digits": 3},
        flag={"type": "bool", "weights": [1, 3], "pass": "--flag", "off": "--no-flag"},
    )
    text = json.dumps(section_of(full))
    again = read_section(json.loads(text), "again")
    assert json.dumps(section_of(again)) == text
    assert [again.draw(0, number) for number in range(9)] == [full.draw(0, number) for number in range(9)]


# ---------------------------------------------------------------- sizes


def test_sizes_are_exact_where_they_can_be_counted() -> None:
    """Conditions and forbidden combinations included; infinite where there are reals."""
    assert space().size is None
    assert space().combinations is None
    finite = {name: value for name, value in SECTION.items() if name not in ("decay", "conditions", "forbidden")}
    finite |= {"depth": {"type": "int", "low": 1, "high": 4}, "conditions": ["depth | engine in {b, c}"]}
    finite |= {"forbidden": ["engine == a && fast == true"]}
    counted = read_section(finite, "test")
    # engine a: 1 * 3 efforts; b and c: 2 * 4 depths * 2 fast * 3 efforts.
    assert counted.size == 3 + 48
    everything = counted.all()
    assert everything is not None
    assert len({json.dumps(each) for each in everything}) == 51
    for each in everything:
        counted.check(each)
    large = read_section({"x": {"type": "int", "low": 0, "high": 10**9}}, "test")
    assert (large.size, large.combinations) == (None, 10**9 + 1)


# ---------------------------------------------------------------- features, terms and children


def test_features_tell_inactive_from_every_value() -> None:
    """Numbers from 0 to 1 by their scale, marks for choices, -1 for inactive parameters."""
    here = space()
    configurations: list[Settings] = [
        {"engine": "c", "depth": 1, "decay": 0.999, "fast": True, "fixed": 7},
        {"engine": "a", "fast": False, "effort": "high", "fixed": 7},
    ]
    rows = features(here, np.array([here.codes(each) for each in configurations]))
    np.testing.assert_allclose(rows, [[0, 0, 1, 0, 1, 1, -1], [1, 0, 0, -1, -1, 0, 1]])


def test_inactive_parameters_do_nothing_in_the_model() -> None:
    """Their terms are 0; every other term is finite, and belongs to a parameter that can change."""
    here = space()
    basis = Basis(here)
    rows = np.array([here.codes(here.draw(3, number)) for number in range(50)])
    terms = basis(rows)
    assert terms.shape == (50, len(basis.owners))
    assert np.isfinite(terms).all()
    assert here.names.index("fixed") not in basis.owners.tolist()
    for term, place in enumerate(basis.owners.tolist()):
        inactive = np.isnan(rows[:, place])
        assert (terms[inactive, term] == 0.0).all()
        assert len(np.unique(terms[~inactive, term])) > 1


def test_ranges_there_and_back() -> None:
    """The columns of all ordered parameters at once say what the parameters say one by one."""
    here = space()
    ranges = Ranges(here)
    rows = np.array([here.codes(here.draw(4, number)) for number in range(50)])
    units = ranges.units(rows)
    for column, place in enumerate(ranges.places.tolist()):
        np.testing.assert_allclose(units[:, column], here.parameters[place].unit(rows[:, place]))
    np.testing.assert_allclose(ranges.values(units), rows[:, ranges.places])


def test_floats_with_digits_keep_them() -> None:
    """Every value that a rounded float can take comes back as itself, with and without a logarithm."""
    ends = {"plain": {"low": 0.0}, "scaled": {"low": 0.01, "log": True}}
    section = {name: {"type": "float", "high": 1.0, "digits": 2, **more} for name, more in ends.items()}
    ranges = Ranges(read_section(section, "test"))
    values = np.repeat(np.arange(1, 101)[:, np.newaxis] / 100, 2, axis=1)
    np.testing.assert_allclose(ranges.values(ranges.units(values)), values)
    assert ranges.values(np.array([[0.1234, 0.5]])).tolist() == [[0.12, 0.1]]


def test_children_may_be_run_and_take_after_their_parents() -> None:
    """Most of what they have comes from a parent; something is new now and then."""
    here = space()
    rng = np.random.default_rng(5)
    parents = np.array([here.codes(here.draw(1, number)) for number in range(2)])
    children = Nursery(here, rng).children(parents, rng, 200)
    assert len(children) > 150
    inherited = []
    for row in children:
        here.check(here.settings(row))
        inherited.append(np.mean([value in parents[:, place] for place, value in enumerate(row) if value == value]))  # noqa: PLR0124 (not a number: inactive)
    assert np.mean(inherited) > 0.6
    assert len(np.unique(children, axis=0)) > 20


def test_children_of_numbers_stay_in_range_and_reach_far_and_near() -> None:
    """Half of the changes are normal steps on the number's own scale, folded back at the ends."""
    logged = only(type="float", low=1e-6, high=1.0, log=True)
    rng = np.random.default_rng(3)
    steps = Nursery(logged, rng).children(np.array([[1e-6]]), rng, 2000)[:, 0]
    assert ((steps >= 1e-6) & (steps <= 1.0)).all()
    places = np.log10(steps[steps > 1e-6]) / 6 + 1
    assert 0.25 < places.mean() < 0.37  # the mean of a folded normal step of 0.15 is 0.12, of a fresh value 0.5


# ---------------------------------------------------------------- command lines


@pytest.mark.parametrize(
    ("style", "words"),
    [
        (Style(), ["--engine=a", "--fast=false", "--effort=mid", "--fixed=7"]),
        (Style(STYLES["dash-words"]), ["-engine", "a", "-fast", "false", "-effort", "mid", "-fixed", "7"]),
        (Style(true="--{name}"), ["--engine=a", "--effort=mid", "--fixed=7"]),
        (Style(true="--{name}", false="--no-{name}"), ["--engine=a", "--no-fast", "--effort=mid", "--fixed=7"]),
        (Style("{name}={value}", words=("1", "0")), ["engine=a", "fast=0", "effort=mid", "fixed=7"]),
    ],
)
def test_settings_become_the_words_of_a_style(style: Style, words: list[str]) -> None:
    """In the order of the parameters; inactive ones (depth, decay) are left out."""
    here = space()
    assert arguments(here.parameters, here.completed({"engine": "a"}), style) == words


def test_a_parameter_may_have_words_of_its_own() -> None:
    """One word, two words, a flag, its opposite, a value with blanks."""
    here = read_section(
        {
            "a": {"type": "int", "low": 0, "high": 9, "default": 4, "pass": "-a{value}"},
            "b": {"type": "float", "low": 0.0, "high": 1.0, "default": 1e-7, "pass": "--set b {value}"},
            "c": {"type": "bool", "default": True, "pass": "--see"},
            "d": {"type": "bool", "default": False, "pass": "--dig", "off": "--no dig"},
            "e": {"type": "categorical", "choices": ["two words", ""], "pass": "-e {value}"},
            "f": {"type": "categorical", "choices": ["--x 1 --y 2", ""], "pass": "{words}"},
        },
        "test",
    )
    assert here.arguments(here.default) == [
        *("-a4", "--set", "b", "0.0000001", "--see", "--no", "dig", "-e", "two words", "--x", "1", "--y", "2"),
    ]
    assert here.arguments(here.completed({"c": False, "d": True, "e": "", "f": ""})) == [
        *("-a4", "--set", "b", "0.0000001", "--dig", "-e"),
    ]
    with pytest.raises(ScenarioError, match="no place for the value"):
        only(type="int", low=0, high=1, **{"pass": "--x"})


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, derandomize=True)
def test_texts_of_floats_read_back_to_the_last_bit(value: float) -> None:
    """And have no exponent where none is needed."""
    text = text_of(value)
    assert float(text) == value
    assert number_in(text) == value
    if 1e-15 <= abs(value) < 1e16:
        assert "e" not in text
