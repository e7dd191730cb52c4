"""Certificates in words: both halves of the claim on a space, nothing that sounds stronger than it is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from campaign_stand_ins import Numbered, folder, ledger_in
from captime.certificate import Certificate
from captime.cli import app
from captime.dashboard.state import LedgerFollower, state_of
from captime.ledger import LedgerReader, Noted
from captime.procedures.survey import SURVEY
from captime.report.campaigned import assumptions as said_by_campaign
from captime.report.campaigned import summary_and_table
from captime.report.ledger_data import LedgerData, ProgressCurve, read_story
from captime.report.ledger_words import (
    assumptions_on_record,
    bound_on_record,
    note_words,
    summary_of_ledger,
    summary_of_story,
)
from captime.report.views.intervals import epsilon_view
from captime.report.words import Summary, draws_among, gamma_words, lines, statement, why_stopped
from captime.scenario.spec import Goal
from space_campaigns import on_space, search

__all__ = ["folder"]

HELD = Certificate(1, 0.1, 0.1, 17, 0.4, 0.6, gamma=0.1, mode="selection")


def summary(held: Certificate, **more: object) -> Summary:
    """Something to make words of."""
    plain = Summary(
        certificate=held,
        names=[f"c{each}" for each in range(40)],
        utility="u",
        procedure="pool",
        options={},
        bound="mixture",
        goal=None,
        rounds=3,
        runs=9,
        cpu_seconds=1.0,
        left=30,
    )
    return replace(plain, **more)  # type: ignore[arg-type] # whatever a test wants to say


def test_on_a_space_both_halves_of_the_claim_are_said() -> None:
    """About the space, for which random draws speak, and about each one tried, drawn or proposed."""
    said = statement(summary(HELD, pool=17, draws=9))
    assert said == (
        "With probability at least 90 %, c1 is within 0.1000 of the best configuration outside the top 10.0 % of the "
        "space, and of each of the 17 configurations tried (9 of them random draws)."
    )
    assert "each of the first 17 configurations tried" in statement(summary(HELD, pool=18, draws=9))
    assert "tried." in statement(summary(HELD, pool=17))
    even = statement(summary(replace(HELD, epsilon=0.0), pool=17, draws=9))
    assert "c1 is as good as the best configuration outside" in even
    assert "and as each of the 17" in even
    assert "the best there can be" in statement(summary(replace(HELD, gamma=0.0), draws=9))
    assert "the best of these 17" in statement(summary(replace(HELD, gamma=None)))


def test_random_draws_are_counted_among_those_spoken_of() -> None:
    """The default, favourites and proposals are none; a list does not say who is one."""
    origins = ["default", "favourite", "random", "model", "random", "random"]
    assert draws_among(origins, 5) == 2
    assert draws_among(["listed", "listed"], 2) is None


def test_candidates_are_left_of_everybody() -> None:
    """Also of those who came after the first N that the certificate speaks of."""
    assert dict(lines(summary(HELD, pool=33)))["candidates left"] == "30 of 33"
    assert dict(lines(summary(replace(HELD, n_configs=40))))["candidates left"] == "30 of 40"


@pytest.mark.parametrize(
    ("epsilon", "gamma", "words"),
    [(1.0, 0.0, "–"), (1.0, 1.0, "–"), (0.4, 0.0, "0 (whole space)"), (0.4, 0.20004, "0.201"), (0.4, None, "–")],
)
def test_gamma_is_a_dash_while_nothing_is_claimed(epsilon: float, gamma: float | None, words: str) -> None:
    """At epsilon 1 a gamma says nothing; 0 is a statement of another kind; and it is rounded up."""
    assert gamma_words(replace(HELD, epsilon=epsilon, gamma=gamma), 3) == words


def test_the_sentence_is_the_same_wherever_it_is_printed(folder: Path) -> None:
    """By the campaign, from its ledger, in the report and on the dashboard; and no more are left than there are."""
    path = ledger_in(folder)
    told = summary_and_table(search(on_space(1), path))[0]
    with LedgerReader(path) as reader:
        newest = reader.last_certificate()
        assert newest is not None
        of_ledger = summary_of_ledger(reader, newest)
        n_configs = len(reader.configs)
    of_story = summary_of_story(read_story(path))
    shown = statement(told)
    assert "random draws)" in shown
    assert shown == statement(of_ledger) == statement(of_story)
    assert told.left_of == of_ledger.left_of == of_story.left_of == n_configs
    window = LedgerFollower(path)
    while window.refresh():
        pass
    state = state_of(window, 800.0)
    window.close()
    assert state["statement"] == shown
    status = CliRunner().invoke(app, ["status", str(path)])
    assert shown in status.stdout
    left = next(line for line in status.stdout.splitlines() if line.startswith("candidates left"))
    assert left.rstrip().endswith(f" of {n_configs}")


def test_the_figure_leaves_gamma_out_where_nothing_is_claimed(tmp_path: Path) -> None:
    """And its caption says why epsilon may rise, and what gamma 0 is."""
    steps = np.array([1.0, 2.0, 3.0, 4.0])
    epsilon, gamma = np.array([1.0, 0.6, 0.8, 0.3]), np.array([0.0, 0.0, 0.5, 0.5])
    whole = np.zeros(4, dtype=np.int64)
    story = LedgerData(tmp_path / "a.ledger", ["a"], ProgressCurve(steps, epsilon, gamma, whole, whole), None)
    view = epsilon_view([story])
    assert view is not None
    assert view.table is not None
    assert [row[2] for row in view.table.rows] == [None, 0.0, 0.5, 0.5]
    assert "another configuration took the lead" in view.caption
    assert "about every configuration" in view.caption
    alone = epsilon_view([replace(story, progress=replace(story.progress, gamma=np.full(4, np.nan)))])
    assert alone is not None
    assert "about every configuration" not in alone.caption


# ------------------------------------------------------------------ what happened, and why it ended


def a_story(path: Path, *notes: Noted, **scenario: object) -> LedgerData:
    """A ledger's story with nothing but notes and what was asked."""
    none, no_configs = np.empty(0), np.empty(0, dtype=np.int64)
    return LedgerData(
        path, ["a"], ProgressCurve(none, none, none, no_configs, no_configs), None, notes=notes, scenario=scenario
    )


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (Goal(0.1), "the epsilon asked for"),
        (Goal(0.1, 0.2, "both"), "the epsilon and gamma asked for"),
        (Goal(0.1, 0.2, "gamma"), "the gamma asked for"),
        (Goal(0.1, 0.2, "epsilon"), "the epsilon asked for"),
        (Goal(0.1, 0.0, "both"), "the epsilon asked for"),
    ],
)
def test_the_goals_that_were_reached_are_named(tmp_path: Path, goal: Goal, words: str) -> None:
    """Both where both were asked for, also from a ledger; other ends keep their words."""
    assert words in why_stopped("epsilon", goal)
    assert why_stopped("budget", goal) == "the budget of stop.cpu is spent"
    notes = [Noted(1, "goal", goal.facts()), Noted(2, "stopped", {"because": "epsilon"})]
    assert words in summary_of_story(a_story(tmp_path, *notes)).why_stopped


def test_notes_have_words_of_their_own() -> None:
    """No lists and braces of Python."""
    joined = note_words([], "configurations", {"earliest": 30, "list": [{"name": "mine", "settings": {"x": 1}}]})
    assert joined == "mine joined, for positions from 30 on"
    learned = {"runs": 146, "ledger": "old.ledger", "held_back": 20, "outside": [["a", "b"]]}
    assert note_words([], "learned", learned) == "146 runs of old.ledger for the model, 20 of them held back at first"
    assert note_words([], "instances", {"list": [["a", "#"]], "length": 9}) == "1 instance added, 9 in all"
    assert note_words([], "stopped", {"because": "epsilon", "wall_seconds": 3.0}).endswith("goals, 3 s on the clock")


@pytest.mark.parametrize(
    ("scenario", "bound"),
    [
        ({"procedure": "pool"}, "mixture"),
        ({"procedure": "up"}, "hoeffding"),
        ({"procedure": "up", "options": {"bound": "kl"}}, "kl"),
        ({"procedure": "nosuch"}, "as documented"),
    ],
)
def test_the_bound_of_a_ledger_has_a_name(scenario: dict[str, object], bound: str) -> None:
    """The one that `run` says."""
    assert bound_on_record(scenario) == bound


def test_lessons_are_not_called_checked(tmp_path: Path) -> None:
    """What the model was told is not on record, so it cannot be checked."""
    facts = {"campaign": "x", "runs": 12, "ledger": "old.ledger", "head": "h"}
    story = a_story(tmp_path, Noted(1, "learned", facts))
    assert [each.standing for each in assumptions_on_record(story) if "could learn" in each.words] == ["assumed"]


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        ("given", "run in the order given, which has to be random"),
        ("shuffle", "run in an order fixed beforehand"),
        ("replace", "drawn with replacement"),
    ],
)
def test_the_order_of_instances_is_told_as_it_was(tmp_path: Path, sampling: str, words: str) -> None:
    """What was given is not shuffled."""
    story = a_story(tmp_path, instances={"sampling": sampling, "list": [["a", "#"]]})
    assert words in assumptions_on_record(story)[0].words


class Given(Numbered):
    """Instances in the order of a list."""

    def describe(self) -> dict[str, object]:
        """How they are met."""
        return {"sampling": "given"}


def test_a_campaign_on_a_given_order_does_not_call_it_random(folder: Path) -> None:
    """It has to be, and captime has not made it so; and a single run that was given up is one run."""
    result = search(replace(on_space(1, epsilon=0.6), stream=Given(3000)), ledger_in(folder))
    result.census.verdicts["wall"] = 1
    said = said_by_campaign(result)
    assert "run in the order given, which has to be random" in said[0]
    assert "seed" not in said[0]
    assert any(each.startswith("1 run was given up") for each in said)


def test_next_steps_are_named_once_the_last_call_has_stopped(tmp_path: Path) -> None:
    """Also after the ledger was closed; not while it runs again, nor for a table that was only measured."""
    began, stopped, closed = (
        Noted(1, "began", {}),
        Noted(2, "stopped", {"because": "instances"}),
        Noted(3, "closed", {}),
    )
    wide = replace(HELD, gamma=None)
    for notes, procedure, named in (
        ((began, stopped, closed), "race", True),
        ((began, stopped, closed, Noted(4, "resumed", {})), "race", False),
        ((began,), "race", False),
        ((began, stopped, closed), SURVEY, False),
    ):
        story = replace(a_story(tmp_path, *notes, procedure=procedure, goal=0.01, length=60), certificate=wide)
        story = replace(story, names=[f"c{each}" for each in range(17)])
        assert ("add instances" in dict(lines(summary_of_story(story))).get("next steps", "")) == named
