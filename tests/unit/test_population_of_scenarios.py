"""What a claim is about: `instances.population` and `instances.seeds`, from the file to the identity of a ledger."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import captime
from captime.campaign.identity import as_begun, population_on_record
from captime.certificate import Population
from captime.errors import ScenarioDiffers, ScenarioError
from captime.ledger import LedgerReader
from captime.scenario import Scenario, scenario_of
from captime.skeptic.stream import Stream
from captime.streams import FiniteStream, Instance
from captime.streams.files import with_seeds
from stub_targets import steady

Document = dict[str, Any]


def document(tmp_path: Path, *, seeded: bool = True, **instances: Any) -> Document:
    """A scenario on four files, with what is said about its instances."""
    for number in range(4):
        (tmp_path / f"{number}.cnf").write_text(str(number), encoding="utf-8")
    command = [sys.executable, "-c", "print('yes')", "{instance}", "{a}", *(["{seed}"] if seeded else [])]
    return {
        "utility": "uniform(60)",
        "seed": 1,
        "target": {"command": command, "answer": "^yes"},
        "configurations": {"one": {"a": 1}, "two": {"a": 2}},
        "instances": {"files": "*.cnf", **instances},
    }


def read(tmp_path: Path, *, seeded: bool = True, **instances: Any) -> Scenario:
    """The same, as a scenario."""
    return scenario_of(document(tmp_path, seeded=seeded, **instances), tmp_path)


def test_the_population_reaches_the_procedure_and_the_identity(tmp_path: Path) -> None:
    """Said or not, one property of the scenario says it, and the identity names it unless it is the old one."""
    these = read(tmp_path, population="these")
    assert these.build().question.population is Population.THESE
    assert these.canonical()["instances"]["population"] == "these"
    drawn = read(tmp_path, population="drawn")
    assert drawn.build().question.population is Population.DRAWN
    assert "population" not in drawn.canonical()["instances"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"sampling": "given"}, "sampling is 'given', and the claim needs an order that captime draws"),
        ({"sampling": "replace"}, "whose draws come from exactly these instances"),
        ({"generator": [sys.executable, "-c", "print({k})"], "files": None}, "there is no set of them"),
    ],
)
def test_these_is_refused_where_it_makes_no_sense(tmp_path: Path, said: Document, words: str) -> None:
    """With where, what was found, and what to do."""
    asked = document(tmp_path, **{"population": "these", **said})
    asked["instances"] = {name: each for name, each in asked["instances"].items() if each is not None}
    with pytest.raises(ScenarioError, match=words) as caught:
        scenario_of(asked, tmp_path).build()
    assert "instances.population" in str(caught.value)


def test_these_is_refused_for_a_program_that_is_said_not_to_repeat_itself(tmp_path: Path) -> None:
    """Without a word about it, trial runs tell."""
    asked = document(tmp_path, seeded=False, population="these")
    assert scenario_of(asked, tmp_path).build().question.population is Population.THESE
    asked["target"]["repeatable"] = False
    with pytest.raises(ScenarioError, match="does not say that it takes the same time again"):
        scenario_of(asked, tmp_path).build()


def test_a_configuration_without_the_seed_cannot_join_a_campaign_that_relies_on_seeds(tmp_path: Path) -> None:
    """Its own command has no {seed}, and the others have one; where none has one, it can."""
    for seeded in (True, False):
        asked = document(tmp_path, seeded=seeded)
        asked["configurations"]["late"] = {"command": ["true", "{instance}"]}
        resumed = replace(
            scenario_of(asked, tmp_path),
            begun_with=2,
            recorded_population=Population.THESE,
            recorded_repeatable=True,
        )
        if seeded:
            with pytest.raises(ScenarioError, match="'late' was added to a campaign whose runs can be made again"):
                resumed.build()
        else:
            assert resumed.build().question.program.repeatable


def test_a_procedure_without_such_claims_is_refused(tmp_path: Path) -> None:
    """`up` speaks about the distribution only."""
    asked = {**document(tmp_path, population="these"), "procedure": "up"}
    with pytest.raises(ScenarioError, match="procedure 'up' makes no such claim; only pool and race can"):
        scenario_of(asked, tmp_path).build()


def test_other_populations_do_not_exist(tmp_path: Path) -> None:
    """A misspelling is refused with the words there are."""
    with pytest.raises(ScenarioError, match="'these' or 'drawn'"):
        read(tmp_path, population="those")


def test_drawn_beside_replace_is_refused(tmp_path: Path) -> None:
    """Draws with replacement say nothing about a distribution beyond these instances."""
    with pytest.raises(ScenarioError, match="leave population out"):
        read(tmp_path, population="drawn", sampling="replace").build()


def test_every_instance_is_a_member_once_for_each_seed(tmp_path: Path) -> None:
    """Members have names and seeds of their own, and the same content."""
    stream = read(tmp_path, seeds=3).stream
    elements = [stream.at(position) for position in range(12)]
    assert stream.length == 12
    assert len({each.instance.name for each in elements}) == 12
    assert Counter(each.instance.digest for each in elements).most_common(1)[0][1] == 3
    assert len({each.seed for each in elements}) == 12
    assert "0.cnf (seed 3)" in {each.instance.name for each in elements}
    assert read(tmp_path, seeds=3).population is Population.THESE


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"population": "drawn"}, "no independent draws"),
        ({"sampling": "replace"}, "no independent draws"),
        ({"seeded": False}, "no independent draws"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_seeds_are_refused_where_they_make_no_sense(tmp_path: Path, said: Document, words: str) -> None:
    """Several seeds of an instance are members of a set, never independent draws."""
    with pytest.raises(ScenarioError, match=words):
        read(tmp_path, **{"seeds": 2, **said}).build()


def test_seeds_of_a_program_that_is_given_none_are_refused(tmp_path: Path) -> None:
    """Every run of an instance would be the same."""
    asked = document(tmp_path, seeded=False, seeds=2)
    asked["target"]["repeatable"] = True
    with pytest.raises(ScenarioError, match="not given its seed"):
        scenario_of(asked, tmp_path).build()


def test_seeds_beside_a_generator_are_refused(tmp_path: Path) -> None:
    """They would have to be part of what the generator makes."""
    asked = document(tmp_path)
    asked["instances"] = {"generator": [sys.executable, "-c", "print({k})"], "seeds": 2}
    with pytest.raises(ScenarioError, match="means nothing for a generator"):
        scenario_of(asked, tmp_path).build()


def test_members_and_groups_go_together() -> None:
    """A group of variations has one member for each seed."""
    listed = [Instance(name, digest=name) for name in "abcd"]
    members, groups = with_seeds(listed, ["x", "x", "y", "y"], 2, "here")
    stream = FiniteStream(members, "shuffle", 5, groups=groups, seeds=2)
    assert stream.length == 4
    met = [stream.at(position).instance.digest for position in range(4)]
    assert sum(name in "ab" for name in met) == sum(name in "cd" for name in met) == 2


def test_a_name_that_a_further_seed_would_have_is_refused() -> None:
    """Two members must not be taken for each other."""
    with pytest.raises(ScenarioError, match="rename the file"):
        with_seeds([Instance("a"), Instance("a (seed 2)")], None, 2, "here")


@pytest.mark.parametrize("groups", [None, ["x", "x", "y", "z"]])
def test_verify_makes_the_order_of_members_again(groups: list[str] | None) -> None:
    """By its own path, from the scenario and its seed."""
    listed = [Instance(name, digest=name * 2) for name in "abcd"]
    members, member_groups = with_seeds(listed, groups, 3, "here")
    engine = FiniteStream(members, "shuffle", 7, groups=member_groups, seeds=3)
    section: Document = engine.describe()
    names = [str(name) for name, _ in section["list"]]
    again = Stream(section, 7, engine.length, engine.listed_as(names))
    assert again.recomputed
    assert section["seeds"] == 3
    for position in range(engine.length or 0):
        element = engine.at(position)
        assert again._at(0, position) == (element.instance.name, element.instance.digest)
        assert again._seed(position) == element.seed


def _configure(path: Path, **more: Any) -> captime.CampaignResult:
    wishes = {"utility": "uniform(60)", "epsilon": 0.9, "jobs": 1, "progress": False, "cpu": 5, **more}
    return captime.configure(steady, range(8), [{"a": 1}, {"a": 2}], ledger=path, **wishes)


def test_a_ledger_keeps_its_population_and_refuses_another(tmp_path: Path) -> None:
    """Left out it stays what it was; said otherwise it is refused with the remedy."""
    path = tmp_path / "a.ledger"
    _configure(path, population="drawn")
    with LedgerReader(path) as reader:
        assert population_on_record(reader.scenario) is Population.DRAWN
    assert _configure(path).question.population is Population.DRAWN
    with pytest.raises(ScenarioDiffers, match=r'instances.population: was "drawn", is "these"') as caught:
        _configure(path, population="these")
    assert "--ledger NEW" in str(caught.value)


def test_a_ledger_without_a_population_is_about_draws(tmp_path: Path) -> None:
    """Whatever the default is now: it was begun when there was no other claim."""
    path = tmp_path / "a.ledger"
    _configure(path, population="drawn")
    asked = read(tmp_path)
    assert as_begun(asked, path).recorded_population is Population.DRAWN
    assert population_on_record({}) is Population.DRAWN


def test_spaces_are_about_these_instances_by_default(tmp_path: Path) -> None:
    """The pool can do it with the options it has there; others make the claim about draws."""
    asked = document(tmp_path)
    del asked["configurations"]
    asked["space"] = {"a": {"type": "int", "low": 1, "high": 9, "default": 1}}
    scenario = scenario_of(asked, tmp_path)
    assert (scenario.procedure, scenario.population) == ("pool", Population.THESE)
    assert scenario.build().question.population is Population.THESE
    assert scenario_of({**asked, "options": {"pilot": 3}}, tmp_path).population is Population.THESE
    boosted = {**asked, "options": {"boost": 2.0}}
    assert scenario_of(boosted, tmp_path).population is Population.DRAWN
    boosted["instances"] = {**asked["instances"], "population": "these"}
    with pytest.raises(ScenarioError, match="no option 'boost'; it takes gamma, stop, pilot"):
        scenario_of(boosted, tmp_path).build()
