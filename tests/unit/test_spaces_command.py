import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import ScenarioError

FILES = Path(__file__).parents[1] / "spaces"


def typed(*words: str | Path) -> Result:
    """`captime space` with these words."""
    return CliRunner().invoke(app, ["space", *map(str, words)])


def test_the_summary_names_everything() -> None:
    """Parameters, types, conditions, forbidden combinations, size."""
    result = typed(FILES / "old-conditions.pcs", "--sample", "2", "--seed", "4")
    assert result.exit_code == 0, result.output
    assert "9 parameters" in result.stdout
    assert "@1:vsids-decay | @1:heuristic == Vsids" in result.stdout
    assert "{@1:heuristic == None && @1:0:restarts == no}" in result.stdout
    assert "infinitely many" in result.stdout
    assert result.stdout.count("@1:heuristic=") == 2
    assert "all of them must hold" in result.stderr


def test_a_terminal_that_lacks_characters_shows_others() -> None:
    """The three dots of a range are not in every encoding; that is no reason to stop."""
    words = [sys.executable, "-m", "captime", "space", str(FILES / "old-numbers.pcs")]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(words, env=environment, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert b"8 parameters" in result.stdout


def test_json_holds_the_space_and_the_draws() -> None:
    """One object on standard output; the same seed gives the same draws."""
    first, again = (typed(FILES / "irace-guide.txt", "--json", "--sample", "3", "--seed", "9") for _ in range(2))
    assert first.stdout == again.stdout
    found = json.loads(first.stdout)
    assert list(found) == ["space", "default", "size", "combinations", "notes", "samples"]
    assert found["space"]["workers"] == {"type": "int", "low": 1, "high": 64, "log": True, "pass": "-w {value}"}
    assert len(found["samples"]) == 3


def test_a_default_that_was_drawn_is_told(tmp_path: Path) -> None:
    """Files of irace have no defaults; those that are assumed may be forbidden together."""
    file = tmp_path / "parameters.txt"
    file.write_text(
        'mode "-m " c (a, b)\nlevel "-l " i (1, 9)\n[forbidden]\nmode == "a" & level > 4\n', encoding="ascii"
    )
    result = typed(file, "--json")
    assert "stands in for the default" in result.stderr
    found = json.loads(result.stdout)
    assert found["default"] != {"mode": "a", "level": 5}
    assert len(found["notes"]) == 1


def test_conversion_writes_a_file_that_reads_back(tmp_path: Path) -> None:
    """From PCS to ConfigSpace's JSON and on to TOML: the same draws all the way."""
    asked = ["--json", "--sample", "5"]
    start = json.loads(typed(FILES / "new-conditions.pcs", *asked).stdout)
    for name, source in (("json", FILES / "new-conditions.pcs"), ("toml", tmp_path / "copy.json")):
        result = typed(source, "--to", name, "-o", tmp_path / f"copy.{name}")
        assert result.exit_code == 0, result.output
        assert json.loads(typed(tmp_path / f"copy.{name}", *asked).stdout)["samples"] == start["samples"]


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["missing.pcs"], "cannot be read"),
        ([FILES / "new-types.pcs", "-o", "x"], "add --to"),
        ([FILES / "new-types.pcs", "--to", "irace"], "expected one of toml"),
        ([FILES / "new-types.pcs", "--to", "pcs-old"], "effort is ordinal"),
        ([FILES / "new-types.pcs", "--from", "what"], "the format 'what' is unknown"),
        ([FILES / "new-types.pcs", "--to", "toml", "--json"], "in a call of its own"),
        ([FILES / "new-types.pcs", "--to", "toml", "-o", "no/such/folder"], "cannot be written"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: list[str | Path], about: str) -> None:
    """With what to do instead."""
    result = typed(*words)
    assert isinstance(result.exception, ScenarioError)
    assert about in str(result.exception)


def test_a_file_is_not_replaced_by_what_was_read_from_it(tmp_path: Path) -> None:
    """Its comments would be lost."""
    path = tmp_path / "mine.pcs"
    path.write_text("a [1, 2] [1]  # kept\n", encoding="utf-8")
    ran = CliRunner().invoke(app, ["space", str(path), "--to", "pcs", "-o", str(path)])
    assert isinstance(ran.exception, ScenarioError)
    assert "is the file that is read" in str(ran.exception)
    assert "# kept" in path.read_text(encoding="utf-8")
