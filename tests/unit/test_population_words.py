"""Both claims in words: what each is about, what it is good for, and what can be done when instances are used up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from captime.certificate import Certificate, Population
from captime.report.campaigned import these_words
from captime.report.known_runs import lottery_of
from captime.report.ledger_data import Pace, floor_of
from captime.report.words import (
    Summary,
    certificate_json,
    claim_lines,
    lines,
    next_steps,
    seeds_of,
    statement,
    why_stopped,
)
from captime.scenario.spec import Goal
from captime.utilities import parse_utility

DRAWN = Certificate(1, 0.31, 0.1, 8, 0.3, 0.7, mode="selection")
THESE = Certificate(
    1,
    0.05,
    0.1,
    8,
    0.4,
    0.6,
    mode="selection",
    population=Population.THESE,
    instances=60,
    instances_run=41,
    other=DRAWN,
)


def summary(held: Certificate, **more: Any) -> Summary:
    """Something to make words of."""
    plain = Summary(
        certificate=held,
        names=[f"c{each}" for each in range(8)],
        utility="u",
        procedure="race",
        options={},
        bound="mixture",
        goal=None,
        rounds=3,
        runs=9,
        cpu_seconds=1.0,
        left=5,
    )
    return replace(plain, **more)


def test_the_statement_has_both_claims_with_their_epsilons() -> None:
    """The one that was chosen first."""
    assert statement(summary(THESE)) == (
        "With probability at least 90 %, c1 is within 0.0500 of the best of these 8 configurations on exactly these 60 "
        "instances (certain if all were run; 41 of 60 were). If they are a fair sample of what is to come: within "
        "0.3100."
    )
    other = replace(DRAWN, other=replace(THESE, other=None))
    assert statement(summary(other)) == (
        "With probability at least 90 %, c1 is within 0.3100 of the best of these 8 configurations. On exactly these "
        "60 instances: within 0.0500 (certain if all were run; 41 of 60 were)."
    )


def test_a_certificate_with_one_claim_says_what_it_has_always_said() -> None:
    """Nothing about populations where there is no other claim, and about draws as before."""
    plain = "With probability at least 90 %, c1 is within 0.3100 of the best of these 8 configurations."
    assert statement(summary(DRAWN)) == plain
    assert claim_lines(DRAWN) == []
    assert "If they are" not in statement(summary(replace(THESE, other=None)))


def test_a_set_that_was_run_to_its_end_is_said_to_be() -> None:
    """Epsilon 0: the best, on exactly these."""
    ended = replace(THESE, epsilon=0.0, instances_run=60)
    assert "c1 is the best of these 8 configurations on exactly these 60 instances (all 60 were run with it)." in (
        statement(summary(ended))
    )


def test_nothing_certified_is_not_dressed_up() -> None:
    """Neither claim is made before there is one, and each is missing for itself."""
    nothing = statement(summary(replace(THESE, epsilon=1.0)))
    assert nothing == "Nothing is certified yet; c1 is only the first guess among 8 configurations."
    half = statement(summary(replace(THESE, other=replace(DRAWN, epsilon=1.0))))
    assert half.endswith("If they are a fair sample of what is to come: nothing is certified yet.")
    single = replace(THESE, n_configs=1)
    assert statement(summary(single)) == "c1 is the only configuration, so there is nothing to compare it with."
    assert claim_lines(single) == []


def test_seeds_are_named() -> None:
    """One fixed seed for each instance, or several."""
    assert "on exactly these 60 instances with these seeds (" in statement(summary(THESE, seeds=1))
    assert "on exactly these 20 instances with 3 seeds each (" in statement(summary(THESE, seeds=3))


@pytest.mark.parametrize(
    ("target", "more", "seeds"),
    [
        ({"command": ["solve", "{instance}"]}, {}, 0),
        ({"command": ["solve", "--seed={seed}"]}, {}, 1),
        ({"command": ["solve", "--seed={seed}"]}, {"instances": {"seeds": 3}}, 3),
        ({"command": None, "function": "m:f"}, {}, 1),
        ({"command": ["wrap"], "wrapper": "aclib1"}, {}, 1),
        ({}, {"configurations": {"list": [{"name": "a", "command": ["other", "{seed}"]}]}}, 1),
    ],
)
def test_seeds_are_read_off_what_was_asked(target: dict[str, Any], more: dict[str, Any], seeds: int) -> None:
    """From the scenario of a ledger, as from that of a campaign."""
    assert seeds_of({"target": target, **more}) == seeds


def test_lines_say_what_each_claim_is_good_for() -> None:
    """In the order of the sentences; and delta is spent on each."""
    told = dict(lines(summary(THESE)))
    assert (
        told["these instances"] == "within 0.0500: for a set that is used again, such as a benchmark or a nightly suite"
    )
    assert told["more like them"].startswith("within 0.3100: for instances to come, if these are a fair sample of them")
    assert told["delta covers"].startswith("for each of the two claims, ")


def test_programs_are_told_both_claims() -> None:
    """Population, size and progress, and the other claim as an object of the same shape."""
    told = certificate_json(THESE, [f"c{each}" for each in range(8)])
    assert (told["population"], told["instances"], told["instances_run"]) == ("these", 60, 41)
    other = told["other"]
    assert isinstance(other, dict)
    assert (other["population"], other["epsilon"], other["other"]) == ("drawn", 0.31, None)


def test_what_the_claim_rests_on_names_no_distribution() -> None:
    """Unless there is a claim about one."""
    alone = these_words(60, " (seed 7)", replace(THESE, other=None), grouped=False, seeded=True)
    assert len(alone) == 1
    assert "nothing is assumed about where they come from" in alone[0]
    assert "independent draws" in these_words(60, "", THESE, grouped=False, seeded=True)[1]
    assert "one member of every group" in these_words(60, "", THESE, grouped=True, seeded=True)[1]


def test_a_set_of_a_program_without_seeds_has_none() -> None:
    """The sentence is about instances alone."""
    assert "each with its seed" in these_words(60, "", THESE, grouped=False, seeded=True)[0]
    assert "seed" not in these_words(60, "", THESE, grouped=False, seeded=False)[0]


def test_used_up_instances_name_the_next_steps() -> None:
    """How many more, or another claim; nothing where the goal was reached or something else ended it."""
    steps = next_steps("instances", DRAWN, 0.1, 60)
    assert steps.startswith(
        "add instances at the end of the list, about 580 in all for 0.1; or ask about exactly these"
    )
    assert "population = 'these'" in steps
    assert "sampling = 'replace'" in steps
    assert next_steps("instances", replace(DRAWN, epsilon=1.0), 0.1, 60).startswith(
        "add instances at the end of the list;"
    )
    assert next_steps("budget", DRAWN, 0.1, 60) == ""
    assert next_steps("instances", DRAWN, 0.4, 60) == ""
    assert "everything was run" in next_steps("instances", THESE, 0.01, 60)
    assert why_stopped("instances", Goal(0.1)) == "the instances are used up"


def test_no_time_is_named_for_a_goal_that_cannot_be_reached() -> None:
    """60 instances that gave 0.4 after 30 of them do not give 0.1."""
    pace = Pace(0.1)
    for moment, epsilon in ((10.0, 0.8), (20.0, 0.6), (40.0, 0.4)):
        pace.note(moment, epsilon)
    assert "0.1 in about" in pace.words()
    floor = floor_of(0.4, 30, 60, Population.DRAWN)
    assert pace.words(floor) == "(about 0.28 at best with all instances there are)"
    assert "0.1 in about" in pace.words(floor_of(0.4, 30, 60, Population.THESE))
    assert "0.1 in about" in pace.words(floor_of(0.4, 30, None, Population.DRAWN))
    assert "0.1 in about" in pace.words(floor_of(0.4, 30, 3000, Population.DRAWN))


def test_captimes_of_a_fixed_set_were_drawn_by_nobody() -> None:
    """The report takes the utilities themselves there."""
    scenario = {"procedure": "race", "delta": 0.1, "seed": 1, "instances": {"population": "these"}}
    utility = parse_utility("uniform(60)")
    assert lottery_of(scenario, utility, 2) is None
    assert lottery_of({**scenario, "instances": {}}, utility, 2) is not None


def test_the_page_about_populations_shows_the_statement_as_it_is() -> None:
    """The example of the documentation is what is printed."""
    page = (Path(__file__).parents[2] / "docs" / "population.md").read_text(encoding="utf-8")
    shown = " ".join(page.replace("\n> ", " ").split())
    assert statement(summary(THESE)).replace("c1", "`restarts-100`") in shown


def test_on_a_space_the_set_and_the_share_left_out_are_both_named() -> None:
    """More runs make epsilon exact, and never gamma; the statement about anything has its own words."""
    drawn = replace(DRAWN, gamma=0.2)
    held = replace(THESE, gamma=0.2, other=drawn)
    assert statement(summary(held, draws=6)) == (
        "With probability at least 90 %, c1 is within 0.0500 of the best configuration outside the top 20.0 % of the "
        "space, and of each of the 8 configurations tried (6 of them random draws), on exactly these 60 instances "
        "(41 of 60 were run with it). If they are a fair sample of what is to come: within 0.3100."
    )
    whole = replace(THESE, gamma=0.0, instances_run=60)
    assert "the best there can be, in this space or any other, on exactly these 60 instances (all 60 were" in statement(
        summary(whole)
    )
    assert any("drawn from the space" in said for said in these_words(60, "", held, grouped=False, seeded=True))
    assert not any("drawn from the space" in said for said in these_words(60, "", THESE, grouped=False, seeded=True))
