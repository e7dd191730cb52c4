"""The list of mutants fits the code, and a few of them are planted; `make mutants` plants all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants.catalogue import MUTANTS
from mutants.run import chosen, part_of, problems


def test_every_mutant_fits_the_code_and_names_tests_that_exist() -> None:
    """A text that has moved, or a test that was renamed, would make a mutant say nothing."""
    assert problems(MUTANTS) == []
    assert len(MUTANTS) >= 60
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    files = {mutant.file.split("/")[0] for mutant in MUTANTS}
    assert {"bounds", "budget.py", "plans.py", "evidence.py", "procedures", "skeptic"} <= files


def test_a_sample_is_drawn_by_its_seed() -> None:
    """The same seed draws the same mutants."""
    assert chosen(MUTANTS, 5, 3, "") == chosen(MUTANTS, 5, 3, "")
    assert chosen(MUTANTS, None, 0, "kl at half") == [mutant for mutant in MUTANTS if "kl at half" in mutant.name]


def test_parts_are_all_mutants_each_once() -> None:
    """So that several processes, one after the other or at once, can share the work."""
    parts = [part_of(MUTANTS, f"{which}/3") for which in (1, 2, 3)]
    assert sorted(mutant.name for part in parts for mutant in part) == sorted(mutant.name for mutant in MUTANTS)
    for wrong in ("0/3", "4/3", "1", "a/b", ""):
        with pytest.raises(SystemExit, match="expected K/N"):
            part_of(MUTANTS, wrong)


def test_a_few_mutants_are_killed() -> None:
    """Against a copy of the package; quick ones, in a process of its own: this one knows the package already."""
    for name in ("a failure counts as an answer", "kl at half the price"):
        done = subprocess.run(
            [sys.executable, "-m", "mutants.run", "--only", name],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 of 1 mutants were killed." in done.stdout
