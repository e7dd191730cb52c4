import importlib
import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from captime.cli.utility import utility_command
from captime.errors import CaptimeError, MissingExtra, ScenarioError, UtilityError
from captime.report.charts.mpl import draw_utility, sample_times, time_window
from captime.utilities import parse_utility

app = typer.Typer()
app.command("utility")(utility_command)


def run(*arguments: str) -> Result:
    """The command as a person would start it."""
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> CaptimeError:
    """The error the command ends with."""
    error = run(*arguments).exception
    assert isinstance(error, CaptimeError)
    return error


def test_the_table_shows_familiar_times_and_worths() -> None:
    """Worth at round times, times at round worths, the text first."""
    lines = [" ".join(line.split()) for line in run("LogLaplace(1min, 1)").stdout.splitlines()]
    assert lines[0] == "log-laplace(60, 1)"
    assert {"1 s 0.9917", "1 min 0.5", "10 min 0.05", "0.9 12 s", "0.5 1 min", "0.1 5 min"} <= set(lines)
    assert "worthless from: never" in lines


def test_the_table_is_plain_in_a_pipe() -> None:
    """No frames and no colours where no terminal reads them."""
    assert run("uniform(60)").stdout.isascii()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--worthless-after", "5min"], "uniform(300)"),
        (["--deadline", "5 min"], "step(300)"),
        (["--half-after", "1min"], "log-laplace(60, 1)"),
        (["--halving-every", "60"], "exponential(86.5617024533378)"),
        (["--pay-per-hour", "2", "--worth", "1"], "uniform(1800)"),
    ],
)
def test_a_sentence_becomes_a_utility(options: list[str], text: str) -> None:
    """Each option of the help text does what the help text says."""
    assert run(*options).stdout.splitlines()[0] == text


def test_json_has_the_same_numbers() -> None:
    """A moment that never comes is null."""
    found = json.loads(run("log-laplace(60, 1)", "--json").stdout)
    assert found["utility"] == "log-laplace(60, 1)"
    assert found["zero_at"] is None
    assert {"seconds": 60.0, "worth": 0.5} in found["worth_at"]
    assert found["time_at"][1] == {"worth": 0.5, "seconds": 60.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no utility is given"),
        (["uniform(60)", "--half-after", "60"], "2 utilities are given"),
        (["--pay-per-hour", "2"], "--pay-per-hour is given without --worth"),
        (["--worth", "2"], "--worth is given without --pay-per-hour"),
        (["--pay-per-hour", "0", "--worth", "1"], "the pay per hour is 0"),
        (["--half-after", "soon"], "--half-after is 'soon'"),
        (["uniform(60)", "--plot", "u.gif"], "suffix '.gif'"),
        (["uniforn(60)"], "did you mean uniform?"),
    ],
)
def test_a_wrong_request_is_refused_with_a_remedy(arguments: list[str], words: str) -> None:
    """The error goes up to the door of the command line, which makes it exit code 2."""
    error = refused(*arguments)
    assert isinstance(error, ScenarioError)
    assert words in str(error)


def test_the_help_leads_from_a_sentence_to_a_utility() -> None:
    """The three most common sentences."""
    text = " ".join(run("--help").stdout.split())
    for words in ("Worthless after 5 minutes", "I pay 2 EUR an hour", "Half as good after a minute"):
        assert words in text


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_picture_is_written_in_the_format_of_its_suffix(tmp_path: Path, suffix: str, begins: bytes) -> None:
    """And the place is told on stderr, so that stdout stays the result."""
    path = tmp_path / f"u.{suffix}"
    result = run("log-laplace(60, 1)", "--plot", str(path))
    assert result.exit_code == 0
    assert path.read_bytes().startswith(begins)
    assert str(path) not in result.stdout


def test_drawing_leaves_pyplot_alone(tmp_path: Path) -> None:
    """No global figure is opened, and pyplot is not even imported."""
    before = "matplotlib.pyplot" in sys.modules
    draw_utility(parse_utility("step(300)"), tmp_path / "u.png")
    assert ("matplotlib.pyplot" in sys.modules) == before


@pytest.mark.parametrize(
    "text",
    [
        "step(1us)",
        "uniform(1e9)",
        "pareto(60, 0.01)",
        "tabulated(0:1, 1:0.001, 1e9:0)",
        "python(math:erfc)",
        "log-laplace(60, 100)",
    ],
)
def test_any_utility_can_be_drawn(text: str, tmp_path: Path) -> None:
    """Steep ones, slow ones, tiny ones and huge ones."""
    utility = parse_utility(text)
    first, last = time_window(utility)
    assert 0.0 < first < last < 1e300
    assert sample_times(utility, first, last).size >= 600
    draw_utility(utility, tmp_path / "u.svg")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A picture that cannot be written is the user's to correct."""
    with pytest.raises(ScenarioError, match="cannot be written"):
        draw_utility(parse_utility("uniform(60)"), tmp_path / "missing" / "u.png")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the command works without it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"captime\[plot\]"):
        draw_utility(parse_utility("uniform(60)"), tmp_path / "u.png")


def test_a_function_on_the_path_is_found_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """python(module:function) works from the command line."""
    (tmp_path / "captime_test_patience.py").write_text(
        "def patience(t):\n    return 1 / (1 + t / 60)\n\ndef hope(t):\n    return 1.0 + t\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert "1 min 0.5" in " ".join(run("python(captime_test_patience:patience)").stdout.split())
    error = refused("python(captime_test_patience:hope)")
    assert isinstance(error, UtilityError)
    assert "expected a number from 0 to 1" in str(error)
