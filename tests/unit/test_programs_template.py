import pytest

from captime.errors import ScenarioError
from captime.programs.protocol import Configuration, Setting
from captime.programs.template import (
    ArgumentStyle,
    Template,
    check_settings,
    rounded_up,
    safe_path,
    text_of,
    without_exponent,
)

NASTY: list[str] = [
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a\nb",
    "*",
    "a b  c",
    "'\"",
    "-rf",
    "{x}",
    "\udcff\udcfe",
    "ü€",
    "v" * 100_000,
    "",
]


@pytest.mark.parametrize("value", NASTY, ids=range(len(NASTY)))
def test_values_reach_the_command_unchanged_and_as_one_word(value: str) -> None:
    """Nothing is split, quoted or expanded, whatever the value holds (T22)."""
    template = Template(["solve", "--x={x}", "{x}"], "t")
    assert template.fill({"x": value}) == ["solve", f"--x={value}", value]


@pytest.mark.parametrize(
    ("value", "word"),
    [(3, "3"), (0.1, "0.1"), (1.0, "1.0"), (1e-7, "1e-07"), (True, "true"), (False, "false"), (10**20, str(10**20))],
)
def test_numbers_are_written_exactly(value: Setting, word: str) -> None:
    """Integers as integers, floats so that they read back the same."""
    assert text_of(value) == word
    assert isinstance(value, bool) or float(word) == value


def test_a_list_is_so_many_words_or_none() -> None:
    """Only where the placeholder is a word of its own."""
    template = Template(["solve", "{flags}", "end"], "t")
    assert template.fill({"flags": ["--sat", "-v 2"]}) == ["solve", "--sat", "-v 2", "end"]
    assert template.fill({"flags": []}) == ["solve", "end"]
    with pytest.raises(ScenarioError, match="a word of its own"):
        Template(["--x={flags}"], "t").fill({"flags": []})


def test_doubled_braces_stand_for_themselves() -> None:
    """So that JSON can be passed."""
    assert Template(['{{"a": {x}}}'], "t").fill({"x": 1}) == ['{"a": 1}']


@pytest.mark.parametrize("word", ["{", "}", "{}", "a{b", "{a{b}}"])
def test_lone_braces_are_refused_with_the_word(word: str) -> None:
    """And the message says how to write them."""
    with pytest.raises(ScenarioError, match="written"):
        Template([word], "t")


@pytest.mark.parametrize("value", ["{output}", "x{scratch}", "{stdout}", "{part}", "nul\0"])
def test_a_value_that_would_be_taken_for_a_placeholder_is_refused(value: str) -> None:
    """The supervisor fills these in later; a value must not be changed by that."""
    with pytest.raises(ScenarioError, match="unchanged"):
        Template(["{x}"], "t").fill({"x": value})


def test_what_only_the_supervisor_knows_stays_for_it() -> None:
    """{output} and {scratch} are left in place."""
    assert Template(["{output}", "-d={scratch}"], "t").fill({}) == ["{output}", "-d={scratch}"]


def test_captimes_are_rounded_up_to_whole_seconds() -> None:
    """A program that stops itself must not do so before we do."""
    assert [rounded_up(each) for each in (0.1, 1.0, 1.001, float("inf"))] == ["1", "1", "2", "2147483647"]


def test_a_path_is_never_an_option() -> None:
    """Relative paths that begin with a dash."""
    assert safe_path("-v.cnf") == "./-v.cnf"


def check(settings: dict[str, Setting], command: list[str]) -> None:
    """As a scenario would be checked."""
    check_settings(Configuration("c", settings), Template(command, "t"), "configuration 'c'", all_passed=False)


def test_settings_and_command_have_to_fit() -> None:
    """Missing, unused, reserved and endless settings are refused with a hint."""
    check({"a": 1}, ["x", "{a}", "{instance}", "{seed}"])
    check({"a": 1, "b": 2}, ["x", "{settings}"])
    with pytest.raises(ScenarioError, match=r"needs {var_decai}.*'var_decay'"):
        check({"var_decay": 1}, ["x", "{var_decai}"])
    with pytest.raises(ScenarioError, match="'restart' is not used by the command; did you mean 'restarts'"):
        check({"restart": 1, "restarts": 2}, ["x", "{restarts}"])
    with pytest.raises(ScenarioError, match="already means something"):
        check({"seed": 1}, ["x", "{seed}"])
    with pytest.raises(ScenarioError, match="'a' has 200,000 characters"):
        check({"a": "v" * 200_000}, ["x", "{a}"])


def test_settings_can_be_written_in_the_styles_of_others() -> None:
    """A dash and two words, one word, or a switch of its own."""
    settings: dict[str, Setting] = {"decay": 1e-7, "mode": "a b", "flags": ["-q"]}
    assert ArgumentStyle()(settings) == ["-decay", "1e-07", "-mode", "a b", "-q"]
    assert ArgumentStyle(("--{name}={value}",))(settings) == ["--decay=1e-07", "--mode=a b", "-q"]
    assert ArgumentStyle(switches={"decay": "--d=", "mode": "-m "})(settings) == ["--d=1e-07", "-m", "a b", "-q"]
    assert ArgumentStyle(("{name}:{value}",))({"x": "{name}"}) == ["x:{name}"]
    assert ArgumentStyle(text=without_exponent)({"decay": 1e-7}) == ["-decay", "0.0000001"]
