"""Effort: what CPU time is mainly spent on, from the scenario to the pool; best bets, and who is named when."""

from pathlib import Path

import numpy as np
import pytest

from captime.campaign.identity import as_begun
from captime.errors import ScenarioError
from captime.procedures import Problem
from captime.procedures.pool import Pool
from captime.procedures.pool_bets import BestBets
from captime.procedures.pool_growth import SPLITS
from captime.procedures.protocol import Procedure
from captime.scenario import load_scenario
from captime.scenario.configurations import canonical
from captime.simulation import MadeUp, simulate_on_space
from captime.sources.replay import Replay
from captime.spaces import ArrivalOrder, Proposer, read_space_section
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of
from space_campaigns import on_space, search

UTILITY = parse_utility("uniform(60)")
SCENARIO = """
utility = "uniform(60)"
{effort}
[target]
command = ["true", "{{settings}}"]
[instances]
values = [1, 2, 3]
{space}
"""
SPACE = '[space]\nx = { type = "float", low = 0.0, high = 1.0 }'


def scenario_at(folder: Path, effort: str, space: str = SPACE) -> Path:
    """Write a scenario."""
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(effort=effort, space=space), encoding="utf-8")
    return path


def test_the_scenario_says_it_and_the_pool_is_told(tmp_path: Path) -> None:
    """Left out, the options are as they were before there was an effort, so that old ledgers are resumed."""
    assert load_scenario(scenario_at(tmp_path, 'effort = "search"')).options == {"effort": "search"}
    left_out = load_scenario(scenario_at(tmp_path, ""))
    assert left_out.options == {}
    assert left_out.with_effort("certify").options == {"effort": "certify"}
    assert left_out.with_effort(None) is left_out


def test_an_effort_without_a_space_is_refused(tmp_path: Path) -> None:
    """A list has no newcomers: there is nothing to split."""
    listed = "[configurations]\na = {}\nb = {}"
    with pytest.raises(ScenarioError, match=r"effort means nothing without a \[space\]"):
        _ = load_scenario(scenario_at(tmp_path, 'effort = "search"', listed)).options
    with pytest.raises(ScenarioError, match="effort"):
        load_scenario(scenario_at(tmp_path, 'effort = "fast"'))


def test_a_pool_refuses_words_it_does_not_know() -> None:
    """With those it knows."""
    with pytest.raises(ScenarioError, match="search, balanced, certify"):
        Pool(Problem(3, UTILITY, 0.1), effort="hasty")  # type: ignore[arg-type] # on purpose


def test_rounds_are_split_as_the_effort_says() -> None:
    """Of eight rounds the contest has seven, four and one."""
    found = {effort: sum(split.contests(each) for each in range(8)) for effort, split in SPLITS.items()}
    assert found == {"search": 7, "balanced": 4, "certify": 1}
    shares = [SPLITS[effort].newcomers for effort in ("search", "balanced", "certify")]
    assert shares == sorted(shares, reverse=True)


def pooled(effort: str, runs: int, seed: int) -> Pool:
    """A pool of 40 rows, of which a few are much better, after this many runs."""
    rng = np.random.default_rng(seed)
    typical = np.where(rng.random(40) < 0.1, 4.0, 45.0)[:, None]
    table = table_of(typical * np.exp(0.6 * rng.standard_normal((40, 400))))
    problem = Problem(40, UTILITY, 0.1, epsilon=0.02, n_instances=400, seed=seed)
    pool = Pool(problem, gamma=0.0, effort=effort)  # type: ignore[arg-type] # one of three words
    replay = Replay(table, in_order(400), pool.plan, UTILITY)
    while pool.finished() is None and int(replay.tally.runs.sum()) < runs:
        pool.tell(replay.tally, replay.answer(pool.ask(1)))
    return pool


def test_a_search_looks_at_more_configurations_than_a_certificate_needs() -> None:
    """For the same number of runs; summed over a few seeds."""
    size = {effort: sum(pooled(effort, 200, seed).size for seed in range(3)) for effort in SPLITS}
    assert size["search"] > size["balanced"] > size["certify"]


def leaders_part(seed: int) -> float:
    """Which part of the runs of a long search the configuration with most of them has."""
    section: dict[str, object] = {
        f"x{each}": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for each in range(4)
    }
    space = read_space_section(section, "here", Path())
    target, order = MadeUp(space, 10.0, seed=seed), ArrivalOrder(draws_first=10, proposals=4)
    part: list[float] = []

    def look(_: Procedure, replay: Replay) -> None:
        part[:] = [float(replay.tally.n.max() / replay.tally.runs.sum())]

    simulate_on_space(
        Proposer(space, seed, draws_first=order.draws_first, proposals=order.proposals),
        target,
        utility=UTILITY,
        epsilon=0.02,
        seed=seed,
        options={"gamma": 0.0, "effort": "search"},
        budget=12_000.0,
        observer=look,
    )
    return part[0]


def test_a_leader_does_not_take_the_time_of_newcomers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows proposals to where they end, and no further; before, it took most runs of a long search."""
    monkeypatch.setattr("captime.procedures.pool.SIXTH_SCHEDULE", 99)
    now = leaders_part(2)
    monkeypatch.setattr("captime.procedures.pool.FIFTH_SCHEDULE", 99)
    before = leaders_part(2)
    assert now < 0.7 * before


def bets_of(worths: list[float], counts: list[int], seed: int = 0) -> BestBets:
    """Scores 0 and 1 of configurations with these worths, each on this many positions of one stream."""
    rng = np.random.default_rng(seed)
    luck = rng.random(max(counts))
    bets = BestBets()
    for config, (worth, count) in enumerate(zip(worths, counts, strict=True)):
        bets.enter("random")
        bets.take_in(config, 0, 0, (luck[:count] < worth).astype(np.float64))
    bets.weigh()
    return bets


def test_a_lucky_run_does_not_lead() -> None:
    """One score of 1 among many of others is drawn towards what is usual."""
    bets = bets_of([0.8, 0.5, 0.5, 0.5, 0.5, 1.0], [60, 60, 60, 60, 60, 1])
    assert bets.best(np.ones(6, dtype=np.bool_), 1) == 0
    assert bets.doubt[5] > 3.0 * bets.doubt[0]
    assert bets.order(np.arange(1, 6), 0)[0] == 5


def test_who_met_hard_positions_only_is_not_blamed() -> None:
    """All alike, but one has run the easy half of the stream only and one the hard half; their means differ by 1."""
    bets = BestBets()
    easy, hard = [1.0] * 20, [0.0] * 20
    for config, (start, scores) in enumerate([(0, easy), (20, hard), *[(0, easy + hard)] * 8]):
        bets.enter("model")
        bets.take_in(config, start, start, np.array(scores))
    for _ in range(10):
        bets.weigh()
    assert abs(bets.mean[0] - bets.mean[1]) < 0.2


def test_who_may_not_lead_is_not_named() -> None:
    """A draw without a rank yet cannot lead, however good it looks."""
    bets = bets_of([0.9, 0.3], [40, 40])
    assert bets.best(np.array([False, True]), 1) == 1
    assert bets.best(np.array([True, True]), 1) == 0


def test_the_effort_on_record_is_kept(tmp_path: Path) -> None:
    """A scenario that names none resumes with the one the ledger was begun with; one that names another keeps that."""
    ledger = tmp_path / "begun.ledger"
    search(on_space(1, options={"gamma": 0.5, "effort": "search"}), ledger)
    unnamed = load_scenario(scenario_at(tmp_path, ""))
    assert as_begun(unnamed, ledger).options == {"effort": "search"}
    assert as_begun(unnamed.with_effort("certify"), ledger).options == {"effort": "certify"}
    assert as_begun(unnamed, tmp_path / "none.ledger").options == {}


def test_the_effort_sets_the_order_of_arrivals_and_the_space_may_set_another(tmp_path: Path) -> None:
    """A search looks at fewer draws before the first proposal, and at more proposals after each draw."""

    def order(effort: str, space: str = SPACE) -> tuple[int, int]:
        proposer = load_scenario(scenario_at(tmp_path, effort, space)).proposer
        assert proposer is not None
        return proposer.draws_first, proposer.proposals

    assert order("") == order('effort = "certify"') == (4, 1)
    assert order('effort = "search"') == (2, 8)
    named = SPACE.replace("[space]", "[space]\ndraws_first = 2\nproposals = 5")
    assert order('effort = "search"', named) == order("", named) == (2, 5)
    with pytest.raises(ScenarioError, match="proposals is 0, expected a whole number of at least 1"):
        order("", SPACE.replace("[space]", "[space]\nproposals = 0"))


def test_the_order_of_arrivals_on_record_is_kept(tmp_path: Path) -> None:
    """Ledgers of searches that were begun when one proposal followed each of the draws are resumed in that order."""
    ledger = tmp_path / "search.ledger"
    asked = load_scenario(scenario_at(tmp_path, 'effort = "search"'))
    assert asked.proposer is not None
    assert (canonical(asked.proposer)["draws_first"], canonical(asked.proposer)["proposals"]) == (2, 8)
    search(on_space(1, options={"gamma": 0.5, "effort": "search"}), ledger)
    resumed = as_begun(asked, ledger).proposer
    assert resumed is not None
    assert (resumed.draws_first, resumed.proposals) == (4, 1)
    assert "proposals" not in canonical(resumed)
