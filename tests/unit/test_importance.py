"""Importance of parameters: what is planted is found, what is noise is not, and the report shows both."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from captime.report.ledger_data import read_story
from captime.report.views import FIGURES
from captime.report.views.importance import FEWEST, importance_view, importances
from captime.spaces import Known, Settings, Space, read_space_section
from space_campaigns import on_space, search

SECTION: dict[str, object] = {
    "strong": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
    "weak": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
    "idle": {"type": "int", "low": 1, "high": 9, "default": 5},
    "mode": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
    "inner": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
    "conditions": ["inner | mode == b"],
}


def space() -> Space:
    """A space with a strong, a weak and an idle parameter, and one that is active under a condition."""
    return read_space_section(SECTION, "here", Path())


def told(here: Space, count: int, worth: bool = True) -> list[Known]:
    """Configurations with a planted worth, or with one that has nothing to do with them."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(count):
        settings: Settings = here.draw(3, number)
        value = 0.5 + 0.5 * (float(str(settings["strong"])) - 0.5) + 0.1 * (float(str(settings["weak"])) - 0.5)
        value = (value if worth else 0.5) + 0.02 * float(rng.standard_normal())
        found.append(Known(settings, value, value, 100, 0.04))
    return found


def test_what_is_planted_is_found_in_its_order() -> None:
    """Variances 0.25/12 and 0.01/12: the strong one has 25/26 of the variance, and the range holds that."""
    here = space()
    found = importances(here, told(here, 60))
    by_name = {each.name: each for each in found}
    assert [each.name for each in found][:2] == ["strong", "weak"]
    assert by_name["strong"].effect == pytest.approx(25 / 26, abs=0.06)
    assert by_name["weak"].effect == pytest.approx(1 / 26, abs=0.04)
    assert all(by_name[name].effect < 0.02 for name in ("idle", "mode", "inner"))
    assert all(0.0 <= each.low <= each.effect <= each.high for each in found)


def test_the_same_evidence_says_the_same_twice() -> None:
    """Bootstrap samples are drawn by a key of their own."""
    here = space()
    assert importances(here, told(here, 20)) == importances(here, told(here, 20))


def test_few_configurations_say_nothing() -> None:
    """And configurations without a score do not count."""
    here = space()
    known = told(here, FEWEST)
    assert importances(here, known)
    assert importances(here, [*known[1:], replace(known[0], n=0)]) == []


def test_ranges_widen_where_worth_is_noise() -> None:
    """No parameter explains anything: what a fit says about any of them differs from sample to sample."""
    here = space()
    planted = importances(here, told(here, 30))[0]
    noise = importances(here, told(here, 30, worth=False))
    assert max(each.high - each.low for each in noise) > 3.0 * (planted.high - planted.low)


def test_a_report_on_a_space_shows_it(tmp_path: Path) -> None:
    """One parameter has all of the effect, whatever its rows are worth; a race on a list has no such figure."""
    path = tmp_path / "space.ledger"
    search(on_space(1, options={"gamma": 0.2}), path)
    story = read_story(path)
    view = importance_view(story)
    assert "importance" in FIGURES
    assert view is not None
    assert view.table is not None
    assert [row[0] for row in view.table.rows] == ["x"]
    assert view.numbers["configurations"] == len(story.names)
    assert importance_view(replace(story, scenario={})) is None
