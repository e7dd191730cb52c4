"""Campaigns about exactly these instances, from `captime.configure` to `captime verify`, resumed, grown and broken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

import captime
from captime.campaign import run_campaign
from captime.certificate import Population
from captime.cli import app
from captime.cli.shared import print_certificate
from captime.errors import LedgerDamaged, ScenarioDiffers, ScenarioError
from captime.ledger import LedgerReader
from captime.procedures.fixed_set import FixedSetRace
from captime.report.campaigned import assumptions, campaign_json, summary_and_table
from captime.report.ledger_data import read_story
from captime.scenario import scenario_of
from captime.skeptic import audit
from stub_targets import restless, solve_if_it_works, solve_space, steady, unseeded, unseeded_restless

SETTINGS = {"quick": {"works": True}, "lame": {"works": False}, "odd": {"works": True}}


def _configure(path: Path, instances: Any, **more: Any) -> captime.CampaignResult:
    wishes = {"utility": "uniform(60)", "jobs": 2, "seed": 5, "progress": False, "population": "these", **more}
    return captime.configure(solve_if_it_works, instances, SETTINGS, ledger=path, **wishes)


def _typed(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger about exactly these 40 instances, stopped at 0.2."""
    path = tmp_path_factory.mktemp("set") / "a.ledger"
    result = _configure(path, range(40), epsilon=0.2)
    assert result.outcome.stopped == "epsilon"
    assert result.config_name != "lame"
    return path


def test_the_claim_is_about_these_instances_and_carries_the_other_one(begun: Path) -> None:
    """Both are in the ledger, and the report, status, best and verify say both."""
    with LedgerReader(begun) as reader:
        newest = reader.last_certificate()
    assert newest is not None
    held = newest.certificate
    assert held.population is Population.THESE
    assert held.instances == 40
    assert held.epsilon <= 0.2
    assert held.other is not None
    assert held.other.population is Population.DRAWN
    assert held.other.epsilon >= held.epsilon
    for words in (_typed("status", begun), _typed("best", begun), _typed("verify", begun)):
        assert "on exactly these 40 instances with these seeds (" in words
        assert "If they are a fair sample of what is to come: " in words
    told = json.loads(_typed("status", begun, "--json"))["certificate"]
    assert (told["population"], told["other"]["population"]) == ("these", "drawn")
    page = begun.with_suffix(".html")
    _typed("report", begun, "-o", page)
    assert "on exactly these 40 instances with these seeds" in page.read_text(encoding="utf-8")


def test_intervals_of_all_configurations_are_said_to_be_about_more_like_them(begun: Path) -> None:
    """The report bounds means of a distribution; it must not claim them for the set."""
    assert read_story(begun).on_set
    assert "all intervals hold at once, for more instances like these, with probability" in _typed("status", begun)


def test_a_campaign_resumes_to_the_exact_end_and_is_confirmed(begun: Path, tmp_path: Path) -> None:
    """Epsilon 0: everything that matters was run, and the next calls change nothing."""
    path = tmp_path / "b.ledger"
    path.write_bytes(begun.read_bytes())
    result = _configure(path, range(40), epsilon=0.0)
    assert result.certificate.epsilon == 0.0
    assert audit(path).verdict == "confirmed"
    again = _configure(path, range(40), epsilon=0.0)
    assert again.certificate.epsilon == 0.0
    assert int(again.outcome.runs.sum()) == int(result.outcome.runs.sum())
    with pytest.raises(ScenarioDiffers, match=r'instances.population: was "these", is "drawn"'):
        _configure(path, range(40), population="drawn")
    assert _configure(path, range(40), population=None, epsilon=0.5).question.population is Population.THESE


def test_more_instances_make_a_claim_about_the_larger_set(begun: Path, tmp_path: Path) -> None:
    """Those that were there keep their places; the claim is about all of them."""
    path = tmp_path / "c.ledger"
    path.write_bytes(begun.read_bytes())
    result = _configure(path, range(60), epsilon=0.2)
    assert result.certificate.instances == 60
    assert audit(path).verdict == "confirmed"


def _asked(path: Path, instances: range, noise: int) -> captime.AskTell:
    """A campaign of two near ties and a slow configuration, whose runs take the same time whenever they are made."""
    paces = {"one": 4.0, "slow": 9.5, "two": 4.0}
    campaign = captime.AskTell(paces, "uniform(10)", epsilon=0.2, instances=list(instances), seed=noise, ledger=path)
    while campaign.finished is None:
        for run in campaign.ask(2):
            rng = np.random.default_rng((noise, run.config, run.instance))
            campaign.tell(run, "completed", run.settings + float(rng.uniform(-0.1, 0.1)))
    return campaign


@pytest.fixture(params=range(12))
def grown(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A ledger to which instances were added when one configuration had been cleared early."""
    path = tmp_path / "grown.ledger"
    with _asked(path, range(40), request.param):
        pass
    with _asked(path, range(60), request.param) as campaign:
        assert campaign.certificate.instances == 60
    return path


def test_the_ranking_of_a_larger_set_is_that_of_the_runs_before_it(grown: Path) -> None:
    """Orders that follow the ranking before it is written down do not count for it."""
    found = audit(grown)
    assert found.verdict == "confirmed"
    assert any("the ranking follows from the first" in line for line in found.account)


def test_another_ranking_of_a_larger_set_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forger who ranks the cleared configuration first once instances were added."""
    path = tmp_path / "forged.ledger"
    with _asked(path, range(40), 0):
        pass
    honest = FixedSetRace.facts

    def told(race: FixedSetRace) -> dict[str, object] | None:
        facts = honest(race)
        if facts is None or facts["instances"] != 60:
            return facts
        terms = cast("dict[str, Any]", facts["set"])
        return {**facts, "set": {**terms, "ranking": terms["ranking"][::-1]}}

    monkeypatch.setattr(FixedSetRace, "facts", told)
    with _asked(path, range(60), 0):
        pass
    with pytest.raises(LedgerDamaged, match="it was changed"):
        audit(path)


def test_asking_and_telling_says_what_its_claim_is_about(tmp_path: Path) -> None:
    """A list of instances is a set; numbers without a list are draws, and so are runs that cannot be repeated."""
    terms: dict[str, Any] = {"configurations": ["a", "b"], "utility": "uniform(10)"}
    about = {
        "list": captime.AskTell(**terms, instances=[1, 2, 3]),
        "said": captime.AskTell(**terms, instances=[1, 2, 3], population="drawn"),
        "given": captime.AskTell(**terms, instances=[1, 2, 3], sampling="given"),
        "once": captime.AskTell(**terms, instances=[1, 2, 3], repeatable=False),
        "numbers": captime.AskTell(**terms, n_instances=3),
    }
    assert {name for name, campaign in about.items() if campaign.certificate.population is Population.THESE} == {"list"}
    for wrong, match in (
        ({"n_instances": 3, "population": "these"}, "no list of instances"),
        ({"instances": [1, 2], "sampling": "given", "population": "these"}, "an order that captime draws"),
        ({"instances": [1, 2], "population": "all"}, "expected 'these' or 'drawn'"),
    ):
        with pytest.raises(ScenarioError, match=match):
            captime.AskTell(**terms, **wrong)
    path = tmp_path / "drawn.ledger"
    with captime.AskTell(**terms, instances=[1, 2, 3], population="drawn", seed=1, ledger=path):
        pass
    with captime.AskTell(**terms, instances=[1, 2, 3], seed=1, ledger=path) as campaign:
        assert campaign.certificate.population is Population.DRAWN


@pytest.mark.parametrize(("size", "everything"), [(4, True), (40, False)])
def test_running_everything_is_said_wherever_a_campaign_is_shown(
    tmp_path: Path, size: int, everything: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set too small for a comparison by chance: result, terminal, status, report and their JSON name the way."""
    path, page = tmp_path / "e.ledger", tmp_path / "e.html"
    result = _configure(path, range(size), epsilon=0.05)
    assert len(result.question.names) * size == result.outcome.runs.sum() or not everything
    summary, table = summary_and_table(result)
    print_certificate(summary)
    _typed("report", path, "-o", page)
    shown = [capsys.readouterr().out, _typed("status", path), page.read_text(encoding="utf-8")]
    start = "every configuration runs every instance: on a set this small"
    assert [start in " ".join(each.split()) for each in shown] == [everything] * 3
    assert campaign_json(result, summary, table)["runs_everything"] is everything
    assert json.loads(_typed("status", path, "--json"))["runs_everything"] is everything


def test_several_seeds_of_each_instance_are_members_of_the_set(tmp_path: Path) -> None:
    """Ten instances with three seeds each: thirty members, and the sentence says so."""
    path = tmp_path / "d.ledger"
    section = {"values": list(range(10)), "seeds": 3}
    result = _configure(path, section, population=None, epsilon=0.0)
    assert result.certificate.instances == 30
    assert audit(path).verdict == "confirmed"
    assert "on exactly these 10 instances with 3 seeds each (all 30 were run with it)" in _typed("best", path)
    with pytest.raises(ScenarioDiffers, match=r"instances\.seeds"):
        _configure(path, {**section, "seeds": 4}, population=None)


def test_a_fixed_order_is_about_these_instances_too(tmp_path: Path) -> None:
    """Decisions depend on outcomes alone; the claim is the same kind."""
    path = tmp_path / "e.ledger"
    result = _configure(path, range(20), epsilon=0.3, order="fixed", window=4)
    assert result.certificate.population is Population.THESE
    assert result.certificate.epsilon <= 0.3
    assert audit(path).verdict == "confirmed"
    _configure(path, range(30), epsilon=0.3, order="fixed", window=4)
    assert audit(path).verdict == "confirmed"


def test_another_ranking_is_refused_in_fixed_order_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger knows what the procedure may have been told when it made the ranking."""
    honest = FixedSetRace.facts

    def told(race: FixedSetRace) -> dict[str, object] | None:
        facts = honest(race)
        if facts is None:
            return None
        turned = {name: cast("dict[str, Any]", facts[name]) for name in ("set", "drawn")}
        return {**facts, **{name: {**each, "ranking": each["ranking"][::-1]} for name, each in turned.items()}}

    monkeypatch.setattr(FixedSetRace, "facts", told)
    path = tmp_path / "turned.ledger"
    _configure(path, range(40), epsilon=0.3, order="fixed", window=2)
    with pytest.raises(LedgerDamaged, match="it was changed"):
        audit(path)


def test_a_program_that_does_not_repeat_itself_is_refused_for_a_set_with_the_remedy(tmp_path: Path) -> None:
    """A claim about exactly these instances was asked for; before any ledger is made, the remedy is named."""
    settings = {name: {"folder": str(tmp_path), "name": name} for name in ("one", "two")}
    wishes: dict[str, Any] = {"utility": "log-laplace(60, 1)", "jobs": 1, "progress": False, "epsilon": 0.4}
    path = tmp_path / "f.ledger"
    with pytest.raises(ScenarioError, match=r"instances\.population = 'drawn'"):
        captime.configure(restless, range(8), settings, ledger=path, population="these", **wishes)
    assert not path.exists()


@pytest.mark.parametrize("epsilon", [0.4, 0.0])
def test_a_program_that_does_not_repeat_itself_has_a_claim_about_draws_where_none_is_named(
    tmp_path: Path, epsilon: float
) -> None:
    """With short captimes and with none: the ledger is about draws, and the same call resumes it."""
    settings = {name: {"folder": str(tmp_path), "name": name} for name in ("one", "two")}
    wishes: dict[str, Any] = {"utility": "log-laplace(60, 1)", "jobs": 1, "progress": False, "epsilon": epsilon}
    path = tmp_path / "f.ledger"
    for _ in range(2):
        result = captime.configure(restless, range(8), settings, ledger=path, **wishes)
        assert result.certificate.population is Population.DRAWN
        assert result.certificate.other is None
    assert audit(path).verdict == "confirmed"


@pytest.mark.parametrize(("solve", "population"), [(unseeded, Population.THESE), (unseeded_restless, Population.DRAWN)])
def test_trial_runs_tell_what_the_claim_about_a_program_without_a_seed_is_about(
    tmp_path: Path, solve: Callable[..., bool], population: Population
) -> None:
    """The ledger keeps what the trial found, and resumes with it; a program that differs makes every run once."""
    settings = {name: {"folder": str(tmp_path), "name": name} for name in ("one", "two")}
    wishes: dict[str, Any] = {"utility": "log-laplace(60, 1)", "jobs": 1, "progress": False}
    path = tmp_path / "f.ledger"
    for epsilon in (0.4, 0.3):
        result = captime.configure(solve, range(20), settings, ledger=path, epsilon=epsilon, **wishes)
        assert result.certificate.population is population
        assert result.question.program.repeatable is (population is Population.THESE)
        with LedgerReader(path) as reader:
            target = cast("dict[str, object]", reader.scenario["target"])
            assert target["repeatable"] is (population is Population.THESE)
    assert audit(path).verdict == "confirmed"


def test_the_claim_about_draws_of_a_program_that_does_not_repeat_itself_is_explained(tmp_path: Path) -> None:
    """The user named no population, and learns why the claim is not about exactly these instances."""
    document = {
        "utility": "log-laplace(60, 1)",
        "jobs": 1,
        "target": {"function": "unused:unused"},
        "configurations": {name: {"folder": str(tmp_path), "name": name} for name in ("one", "two")},
        "instances": {"values": list(range(8))},
        "stop": {"epsilon": 0.4},
    }
    spec = scenario_of(document, tmp_path, function=restless).build()
    result = run_campaign(spec.question, tmp_path / "f.ledger", spec.settings)
    assert any(
        line.startswith("Trial runs did not show that the program takes the same time again")
        for line in assumptions(result)
    )


@pytest.mark.parametrize("epsilon", [0.4, 0.0])
def test_a_program_that_repeats_itself_has_a_claim_about_these_where_none_is_named(
    tmp_path: Path, epsilon: float
) -> None:
    """The default of lists of instances and of configurations."""
    settings = {name: {"folder": str(tmp_path), "name": name} for name in ("one", "two")}
    wishes: dict[str, Any] = {"utility": "log-laplace(60, 1)", "jobs": 1, "progress": False, "epsilon": epsilon}
    result = captime.configure(steady, range(8), settings, ledger=tmp_path / "f.ledger", **wishes)
    assert result.certificate.population is Population.THESE
    assert result.certificate.epsilon <= epsilon


def test_commands_that_take_every_instance_as_one_draw_refuse_several_seeds(tmp_path: Path) -> None:
    """And make their claims about draws whatever the scenario says."""
    document = {
        "utility": "uniform(60)",
        "target": {"function": "math:isqrt", "repeatable": True},
        "configurations": {"one": {}, "two": {}},
        "instances": {"values": [1, 2, 3], "population": "these"},
    }
    asked = scenario_of(document, tmp_path, function=solve_if_it_works)
    assert asked.about_draws().population is Population.DRAWN
    document["instances"] = {"values": [1, 2, 3], "seeds": 2}
    with pytest.raises(ScenarioError, match="every instance counts as one draw"):
        scenario_of(document, tmp_path, function=solve_if_it_works).about_draws()


def test_a_space_is_configured_for_exactly_these_resumed_and_confirmed(tmp_path: Path) -> None:
    """Without a word it is about these; favourites and instances are added later; every command says both claims."""
    path = tmp_path / "space.ledger"
    section = {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2}}
    wishes: dict[str, Any] = {"utility": "uniform(60)", "jobs": 2, "seed": 5, "progress": False, "ledger": path}
    first = captime.configure(solve_space, range(12), space=section, epsilon=0.2, gamma=0.5, **wishes)
    assert first.certificate.population is Population.THESE
    assert (first.certificate.instances, first.outcome.stopped) == (12, "epsilon")
    more = {**section, "favourites": [{"x": 0.95}]}
    second = captime.configure(solve_space, range(16), space=more, epsilon=0.0, gamma=0.5, **wishes)
    assert second.certificate.instances == 16
    assert second.certificate.epsilon == 0.0
    assert audit(path).verdict == "confirmed"
    for words in (_typed("status", path), _typed("best", path), _typed("verify", path)):
        assert "on exactly these 16 instances with these seeds (" in words
        assert "If they are a fair sample of what is to come: " in words
    told = json.loads(_typed("status", path, "--json"))["certificate"]
    assert (told["population"], told["other"]["gamma"]) == ("these", told["gamma"])
    page = path.with_suffix(".html")
    _typed("report", path, "-o", page)
    assert "bound set-duels" in page.read_text(encoding="utf-8")


def test_simulate_on_a_space_takes_the_population(tmp_path: Path) -> None:
    """Rows as draws and proposals, and a surrogate that meets every instance once; made-up instances have no end."""
    space = tmp_path / "space.toml"
    space.write_text('[space.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\ndefault = 0.5\n', encoding="utf-8")
    rows = [f"--x={row / 40},{','.join(str(1 + (row * 7 + each * 3) % 50) for each in range(20))}" for row in range(40)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["configuration," + ",".join(f"i{each}" for each in range(20)), *rows]) + "\n", "utf-8")
    words = ("--utility", "uniform(1min)", "--population", "these", "--option", "gamma=0.4", "--timeout", "100s")
    told = json.loads(_typed("simulate", table, "--space", space, *words, "--json"))
    assert (told["certificate"]["population"], told["certificate"]["instances"]) == ("these", 20)
    assert told["cpu_seconds"] <= told["matrix_cpu_seconds"]
    assert "on exactly these 20 instances (" in _typed("simulate", space, "--surrogate", table, *words)
    with pytest.raises(ScenarioError, match="instances without end"):
        CliRunner().invoke(app, ["simulate", str(space), "--surrogate", "made-up", *words[:-2]], catch_exceptions=False)
