"""Campaigns on a space without its program: a target answers for every configuration, by a law that is known."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import ScenarioError, TableError
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_terms import DRAWS
from captime.procedures.protocol import Procedure
from captime.simulation import (
    Learnt,
    MadeUp,
    Pooled,
    RowProposer,
    Rows,
    Simulation,
    Target,
    settings_of_rows,
    simulate_on_space,
)
from captime.sources import RuntimeTable
from captime.sources.formats.npz import write_npz
from captime.sources.replay import Replay
from captime.spaces import Proposer, Space, write_space
from captime.spaces.formats.section import read_section
from captime.utilities import parse_utility

UTILITY = "log-laplace(1, 1)"
WISHES = ["--utility", UTILITY, "--epsilon", "0.3", "--option", "gamma=0.25"]


def space() -> Space:
    """A switch, a number under it, a number that always counts."""
    section: dict[str, object] = {
        "on": {"type": "bool", "default": False},
        "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
        "n": {"type": "int", "low": 1, "high": 1000, "log": True, "default": 30},
        "conditions": ["n | on == true"],
    }
    return read_section(section, "test")


def recorded(n_configs: int = 40, n_instances: int = 30) -> RuntimeTable:
    """Runtimes of random configurations: faster the larger x is, and twice as fast when it is on."""
    here = space()
    rng = np.random.default_rng(4)
    draws = [here.draw(9, number) for number in range(n_configs)]
    speed = np.array([2.0 - 3.0 * float(each["x"]) - 0.7 * bool(each["on"]) for each in draws])
    seconds = np.exp(speed[:, None] + rng.standard_normal(n_instances) + 0.2 * rng.standard_normal((n_configs, 1)))
    names = [json.dumps(each) for each in draws]
    return RuntimeTable.build("recorded", names, [f"i{j}" for j in range(n_instances)], seconds, timeout=20.0)


def run(target: Target, **wishes: object) -> Simulation:
    """A short campaign."""
    options = {"gamma": 0.25}
    return simulate_on_space(Proposer(space(), 1), target, utility=UTILITY, epsilon=0.3, options=options, **wishes)  # type: ignore[arg-type] # few words, many types


def learnt(seed: int = 0) -> Learnt:
    """A target learnt from the table."""
    table = recorded()
    return Learnt(space(), table, settings_of_rows(space(), table), seed=seed)


def command(*words: str) -> Result:
    """The command line."""
    return CliRunner().invoke(app, ["simulate", *words])


@pytest.mark.parametrize("make", [learnt, lambda seed=0: MadeUp(space(), 1.0, seed=seed)])
def test_the_same_seed_gives_the_same_campaign(make: Callable[..., Target]) -> None:
    """And another seed another one."""
    results = [run(make(seed=seed)) for seed in (1, 1, 2)]
    first, again, other = [(each.certificate, each.cpu_seconds) for each in results]
    assert first == again
    assert first != other


@pytest.mark.parametrize("make", [learnt, lambda: MadeUp(space(), 1.0), lambda: MadeUp(space(), 1.0, cliffs=0.5)])
def test_what_a_target_says_it_is_worth_is_what_its_runs_are_worth(make: Callable[..., Target]) -> None:
    """The law that simulations are judged by is the law of the runs."""
    target, utility = make(), parse_utility(UTILITY)
    settings = [space().draw(5, number) for number in range(3)]
    truth = target.worths(settings, utility)
    for config, each in enumerate(settings):
        target.add(each)
        seconds = target.seconds(config, 0, 20_000)
        worth = np.where(seconds < target.limit, utility(seconds), 0.0)
        assert abs(worth.mean() - truth[config]) < 5.0 * worth.std() / np.sqrt(len(worth))


def test_beyond_a_cliff_nothing_is_worth_much_and_the_best_stand_near_it() -> None:
    """As many fall as were asked for, the fast ones above all, and no other changes."""
    here, utility = space(), parse_utility(UTILITY)
    drawn = [here.draw(7, number) for number in range(1000)]
    fallen = []
    for seed in range(5):
        plain = MadeUp(here, 1.0, seed=seed).worths(drawn, utility)
        steep = MadeUp(here, 1.0, seed=seed, cliffs=0.4).worths(drawn, utility)
        down = steep < plain
        assert (steep[~down] == plain[~down]).all()
        assert steep[down].max() < 0.6 * plain[down].min() + 0.1
        assert plain[down].mean() > plain[~down].mean()
        fallen.append(down.mean())
    assert abs(np.mean(fallen) - 0.4) < 0.05


def test_runs_do_not_depend_on_who_was_asked_before_or_how_many_at_a_time() -> None:
    """One configuration, one position, one runtime."""
    one, other, here = learnt(), learnt(), space()
    one.add(here.draw(0, 0))
    one.add(here.draw(0, 1))
    other.add(here.draw(0, 1))
    at_once = one.seconds(1, 0, 3000)
    in_pieces = np.concatenate([other.seconds(0, first, first + 500) for first in range(0, 3000, 500)])
    np.testing.assert_array_equal(at_once, in_pieces)


def test_a_recorded_configuration_behaves_as_it_did() -> None:
    """Its runs on an instance are the recorded ones, cut where they were cut."""
    table, target = recorded(), learnt()
    settings = settings_of_rows(space(), table)
    target.add(settings[7])
    assert set(target.seconds(0, 0, 500).tolist()) <= set(table.seconds[7].tolist())
    assert target.resemblance([settings[7]])[0, 7] == 1.0


def test_a_learnt_target_knows_what_matters() -> None:
    """Configurations that were not recorded are judged by those like them."""
    target, utility = learnt(), parse_utility(UTILITY)
    fast, slow = target.worths([{"on": True, "x": 0.97, "n": 400}, {"on": False, "x": 0.03}], utility)
    assert fast > slow + 0.2


def test_campaigns_on_a_space_find_something_good_and_say_what_it_is_worth() -> None:
    """The recommended configuration is within the promise, and better than the default."""
    result = run(learnt())
    pooled = result.table
    assert isinstance(pooled, Pooled)
    assert result.outcome.stopped == "epsilon"
    assert pooled.n_configs == len(pooled.settings) >= 8
    assert 0 < pooled.proposals < pooled.n_configs
    assert pooled.found.worth <= pooled.found.best
    assert pooled.found.above <= 0.25
    assert pooled.found.default is not None
    assert pooled.found.worth > pooled.found.default


def test_the_certificate_is_about_whoever_leads() -> None:
    """Not about one of which more was proved before a better bet was found."""
    leaders = []

    def watch(procedure: Procedure, _: Replay) -> None:
        pool = procedure._procedure  # type: ignore[attr-defined]
        assert pool.certificate().config == pool.leader or pool.finished() is not None
        leaders.append(pool.leader)

    run(MadeUp(space(), 1.0, seed=2), observer=watch)
    assert len(set(leaders)) > 1


def test_certificates_on_spaces_of_known_law_are_true() -> None:
    """Twenty campaigns at delta 0.1: at most a binomial limit of them may say what is false."""
    wrong = 0
    for seed in range(20):
        target = MadeUp(space(), 1.0, seed=seed)
        result = simulate_on_space(
            Proposer(space(), seed), target, utility=UTILITY, epsilon=0.4, options={"gamma": 0.5}, seed=seed
        )
        assert isinstance(result.table, Pooled)
        wrong += result.table.found.above > 1.1 * (result.certificate.gamma or 0.0)
        wrong += result.table.found.best > result.table.found.worth + result.certificate.epsilon
    assert wrong <= 6


def test_rows_are_drawn_or_proposed_but_never_both() -> None:
    """With a model every second row waits to be proposed; draws keep the order of the table."""
    table, here = recorded(), space()
    settings = settings_of_rows(here, table)
    proposer = RowProposer(here, settings, seed=0, draws_first=2)
    made = [proposer.propose(index) for index in range(proposer.limit)]
    drawn = [each for index, each in enumerate(made) if proposer.origin(index) == "random"]
    proposed = [each for index, each in enumerate(made) if proposer.origin(index) == "model"]
    assert drawn == settings[::2][: len(drawn)]
    assert proposed
    assert all(each in settings[1::2] for each in proposed)
    assert RowProposer(here, settings, seed=0, model=False).limit == table.n_configs
    target = Rows(here, table, settings, sampling="replace")
    target.add(made[0])
    assert set(target.seconds(0, 0, 100).tolist()) <= set(table.seconds[0].tolist())


def with_default(table: RuntimeTable, place: int = 0) -> RuntimeTable:
    """The same table with a row for the default, as `captime measure --draws` writes it."""
    names, seconds = list(table.configs), np.insert(table.seconds, place, 2.0, axis=0)
    names.insert(place, json.dumps(space().default))
    instances = [f"i{j}" for j in range(table.n_instances)]
    return RuntimeTable.build("with default", names, instances, seconds, timeout=20.0)


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("model", [True, False])
def test_the_default_among_the_rows_is_listed_and_no_draw(place: int, model: bool) -> None:
    """It comes first, and the rows around it are drawn and proposed as if it were not there."""
    table, here = recorded(), space()
    without = settings_of_rows(here, table)
    settings = settings_of_rows(here, with_default(table, place))
    alone = RowProposer(here, without, seed=0, model=model)
    beside = RowProposer(here, settings, seed=0, model=model)
    assert (alone.n_listed, beside.n_listed) == (0, 1)
    assert beside.limit == alone.limit + 1
    assert (beside.origin(0), beside.propose(0)) == ("default", here.default)
    for index in range(alone.limit):
        assert beside.origin(index + 1) == alone.origin(index)
        assert beside.propose(index + 1) == alone.propose(index)


def test_a_draw_that_equals_the_default_stays_a_draw() -> None:
    """The first such row was put there, a later one was drawn."""
    here = space()
    settings = [here.default, here.draw(9, 0), here.default, here.draw(9, 1)]
    proposer = RowProposer(here, settings, seed=0, model=False)
    assert [proposer.origin(index) for index in range(proposer.limit)] == ["default", "random", "random", "random"]
    assert [proposer.propose(index) for index in range(1, 4)] == settings[1:]


def test_the_default_does_not_count_for_gamma() -> None:
    """One draw fewer than gamma takes, and the default: the goal is missed, and none is compared with the default."""
    gammas = GammaBets(DRAWS * 0.1, 0.25)
    draws = gammas.draws_for(0.25) - 1
    table, here = with_default(recorded(draws)), space()
    settings = settings_of_rows(here, table)
    maker, target = RowProposer(here, settings, seed=0, model=False), Rows(here, table, settings, sampling="replace")
    result = simulate_on_space(maker, target, utility=UTILITY, epsilon=0.9, options={"gamma": 0.25})
    assert result.outcome.stopped == "configurations"
    assert gammas.after(draws + 1) <= 0.25 < gammas.after(draws)
    assert isinstance(result.table, Pooled)
    assert (result.table.n_configs, result.table.found.drawn) == (draws + 1, draws)
    assert result.table.configs[0] == "default"
    assert result.table.found.default is not None


@pytest.mark.parametrize("seed", [0, 2])
def test_the_certificate_counts_nobody_who_was_never_made(seed: int) -> None:
    """The pool has a place for the next one before it exists."""
    options = {"gamma": 0.25}
    result = simulate_on_space(
        Proposer(space(), seed), MadeUp(space(), 1.0, seed=seed), utility=UTILITY, epsilon=0.7, options=options
    )
    assert result.certificate.n_configs <= result.table.n_configs


def test_names_of_rows_are_settings() -> None:
    """As JSON, or as words; who is not mentioned has its default, and nonsense is named."""
    here = space()

    def table(name: str) -> RuntimeTable:
        return RuntimeTable.build("named", [name], ["i"], np.ones((1, 1)), timeout=2.0)

    assert settings_of_rows(here, table('{"on": true, "x": 0.25, "n": 3}')) == [{"on": True, "x": 0.25, "n": 3}]
    assert settings_of_rows(here, table("--on=true -x 0.25")) == [{"on": True, "x": 0.25, "n": 30}]
    for name, said in (
        ("c17", "row 1: .*only called so.*--draws"),
        ("{nonsense", "is none"),
        ("-x 7", "expected a number"),
    ):
        with pytest.raises(TableError, match=said):
            settings_of_rows(here, table(name))


def test_only_procedures_that_let_a_pool_grow_work_on_a_space() -> None:
    """The others say what to do instead."""
    with pytest.raises(ScenarioError, match="use pool"):
        run(MadeUp(space(), 1.0), procedure="up")


def test_the_command_line_searches_a_space(tmp_path: Path) -> None:
    """With a table to learn from, with none, and with the rows alone; JSON has what only simulations know."""
    pcs, table = tmp_path / "space.pcs", tmp_path / "table.npz"
    pcs.write_text(write_space(space(), "pcs"), encoding="utf-8")
    write_npz(recorded(), table)
    for words in (
        [str(pcs), "--surrogate", str(table)],
        [str(pcs), "--surrogate", "made-up", "--no-model"],
        [str(table), "--space", str(pcs), "--sampling", "replace"],
    ):
        result = command(*words, *WISHES, "--json")
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        assert told["procedure"] == "pool"
        assert 0.0 <= told["space"]["worth"] <= told["space"]["worth_of_best"] <= 1.0
        assert bool(told["space"]["proposals"]) == ("--no-model" not in words)
        assert json.loads(command(*words, *WISHES, "--json").stdout) == told
    shown = command(str(pcs), "--surrogate", "made-up", *WISHES)
    assert shown.exit_code == 0
    assert "really worth" in shown.stdout


def test_wrong_words_about_spaces_are_explained(tmp_path: Path) -> None:
    """Exit code 2 and what to write instead."""
    pcs, table = tmp_path / "space.pcs", tmp_path / "table.npz"
    pcs.write_text(write_space(space(), "pcs"), encoding="utf-8")
    write_npz(recorded(), table)
    wrong = {
        "do not go together": [str(pcs), "--surrogate", str(table), "--space", str(pcs)],
        "--sampling given": [str(pcs), "--surrogate", "made-up", "--sampling", "given"],
        "use pool": [str(pcs), "--surrogate", "made-up", "--procedure", "up"],
        "add --surrogate made-up": [str(pcs)],
        f"add --space {pcs}": [str(pcs), "--sampling", "replace"],
    }
    for said, words in wrong.items():
        result = command(*words, *WISHES)
        assert isinstance(result.exception, ScenarioError) or result.exit_code == 2
        assert said in (result.output + str(result.exception)).replace("\n", " ")
