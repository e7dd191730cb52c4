"""Races of few configurations that begin with their first run, and shares of delta of a race of few."""

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from captime.errors import LedgerDamaged
from captime.procedures import Problem
from captime.procedures.problem import FIFTH_SCHEDULE, SCHEDULE
from captime.procedures.race import Race
from captime.procedures.race_claims import (
    FEW,
    SHARES,
    SHARES_OF_FEW,
    Latecomers,
    ListLevels,
    Mode,
    reserve,
    shares_of,
)
from captime.skeptic import Trust
from captime.skeptic.late import shares_of as documented_shares_of
from captime.skeptic.pilot import Pilot
from captime.utilities import parse_utility
from forgery import PAID, forge
from written_ledgers import audited, runtimes, written

UTILITY = parse_utility("log-laplace(1, 1)")
PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")


def race_of(n_configs: int, epsilon: float, schedule: int = SCHEDULE, mode: Mode = "selection") -> Race:
    """A race of `n_configs` configurations, before its first run."""
    return Race(Problem(n_configs, UTILITY, 0.1, epsilon, n_instances=2000, schedule=schedule), mode=mode)


@pytest.mark.parametrize(
    ("n_configs", "epsilon", "schedule", "at_once"),
    [
        (8, 0.2, SCHEDULE, True),
        (8, 0.2, FIFTH_SCHEDULE, False),
        (8, 0.02, SCHEDULE, False),
        (FEW - 1, 0.2, SCHEDULE, True),
        (FEW, 0.2, SCHEDULE, False),
        (1, 0.2, FIFTH_SCHEDULE, True),
    ],
)
def test_few_configurations_and_a_coarse_goal_need_no_warm_start(
    n_configs: int, epsilon: float, schedule: int, at_once: bool
) -> None:
    """The race begins at position 0, before any run; others have a warm start first."""
    race = race_of(n_configs, epsilon, schedule)
    facts = race.facts()
    assert (facts is not None and facts.get("start") == 0) == at_once


def test_modes_that_cover_all_intervals_keep_their_warm_start() -> None:
    """Equal weights are part of `selection`; the other mode has no weights at all."""
    assert race_of(8, 0.2, mode="simultaneous").facts() is None


def test_all_leaders_weigh_the_same_and_leave_the_share_of_latecomers() -> None:
    """1 / (n + 1) each: with what is kept for configurations that join later, all weights sum to 1."""
    race = race_of(8, 0.2)
    weight = np.exp(-race.levels.log_rank)
    assert weight == pytest.approx(np.full(8, 1.0 / 9.0))
    share = dict(race.levels.named)
    leaders = share["paired"] + share["lower"]
    assert leaders * weight.sum() + reserve(8, leaders) == pytest.approx(leaders)


def test_shares_of_few_sum_to_one_and_stand_on_the_page() -> None:
    """The second column of the table of step 8; the engine, the check and the page say the same."""
    step = PAGE.partition("## Step 8")[2].partition("\n## ")[0]
    told = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|", step, flags=re.MULTILINE)
    assert [(float(many), float(few)) for many, few in told] == [
        (many, few) for (_, many), (_, few) in zip(SHARES, SHARES_OF_FEW, strict=True)
    ]
    assert math.fsum(share for _, share in SHARES_OF_FEW) == pytest.approx(1.0, abs=1e-15)
    for n_configs in (1, FEW - 1, FEW, 1000):
        for schedule in (1, FIFTH_SCHEDULE, SCHEDULE):
            documented = {name: float(share) for name, share in documented_shares_of(n_configs, schedule).items()}
            assert dict(shares_of(n_configs, schedule)) == pytest.approx(documented)
    assert shares_of(FEW - 1, FIFTH_SCHEDULE) == shares_of(FEW, SCHEDULE) == SHARES


def test_statements_are_paid_from_the_shares_of_few() -> None:
    """Upper bounds, lower bounds, duels and the interval shown; and latecomers from what these leave over."""
    levels = ListLevels(8, 0.1, "selection", SHARES_OF_FEW)
    levels.weigh_alike()
    first = np.arange(8)
    share = dict(SHARES_OF_FEW)
    assert np.exp(-levels.upper(first)) == pytest.approx(np.full(8, share["upper"] * 0.1))
    assert np.exp(-levels.lower(first)) == pytest.approx(np.full(8, share["lower"] * 0.1 / 9.0))
    assert np.exp(-levels.duels(0, first)) == pytest.approx(np.full(8, share["paired"] * 0.1 / 9.0))
    assert np.exp(-levels.shown(first)) == pytest.approx(np.full(8, share["shown"] * 0.1 / 8.0))
    late = Latecomers(8, 0.1, share["paired"], share["lower"])
    paid = float(np.exp(-late.level(0.25, np.array([8]), np.zeros(1)))[0])
    assert paid == pytest.approx(0.25 * (share["paired"] + share["lower"]) / 9.0 * 0.1 / 2.0)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of a race that began with its first run."""
    path = tmp_path_factory.mktemp("at_once") / "a.ledger"
    held = written(path, runtimes(1, 6, 1.0), epsilon=0.15, schedule=SCHEDULE)
    assert held.epsilon <= 0.15
    assert held.shares == SHARES_OF_FEW
    return path


@pytest.fixture
def ledger(honest: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    path = tmp_path / "copy.ledger"
    path.write_bytes(honest.read_bytes())
    return path


def test_the_check_confirms_a_race_that_began_with_its_first_run(honest: Path) -> None:
    """Its orders leave nothing open: there is no warm start whose members could have been chosen late."""
    found = audited(honest)
    assert found.verdict == "confirmed"
    assert any("start (position 0)" in line for line in found.account)


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_many_workers_are_confirmed(tmp_path: Path, workers: int) -> None:
    """For any number of runs at a time."""
    path = tmp_path / "a.ledger"
    written(path, runtimes(2, 5, 0.8), epsilon=0.15, schedule=SCHEDULE, workers=workers)
    assert audited(path).verdict == "confirmed"


def test_a_prior_that_was_written_down_after_the_first_run_is_found(ledger: Path) -> None:
    """A start at 0 is a prior only if no run came before it."""
    late = "UPDATE note SET seq = (SELECT max(seq) FROM outcome) + 1000000 WHERE kind = 'facts'"
    last = "UPDATE certificate SET seq = seq + 2000000 WHERE seq = (SELECT max(seq) FROM certificate)"
    forge(ledger, late, last, PAID)
    with pytest.raises(LedgerDamaged, match="before row"):
        audited(ledger, Trust.DATES)


def test_the_check_weighs_all_leaders_alike(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 / (n + 1) each where no run came before the race, by rank otherwise; and the claim depends on it."""
    ranks = {config: config for config in range(6)}
    assert {Pilot(0, ranks, 6).weight(config) for config in range(6)} == {Fraction(1, 7)}
    assert [Pilot(4, ranks, 6).weight(config) for config in (0, 1)] == [Fraction(1, 2), Fraction(1, 6)]
    assert audited(ledger).verdict == "confirmed"
    monkeypatch.setattr(Pilot, "weight", lambda *_: Fraction(1, 5000))
    with pytest.raises(LedgerDamaged, match="do not show it"):
        audited(ledger)


def test_shares_of_many_are_refused_for_few(ledger: Path) -> None:
    """The certificate has to name the shares of its own race."""
    change = "UPDATE certificate SET shares = (SELECT replace(shares, '0.26', '0.41'))"
    forge(ledger, change)
    with pytest.raises(LedgerDamaged, match="shares delta out"):
        audited(ledger)
