"""The check of pools about exactly these instances: honest ledgers are confirmed, resumed, grown; lies are found."""

# ruff: noqa: S608 (the forger writes SQL, without any input in it)
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from captime.campaign import CampaignQuestion
from captime.certificate import Population
from captime.errors import LedgerDamaged
from captime.ledger import LedgerReader
from captime.procedures.pool_terms import ON_SET_SHARES
from captime.skeptic import Trust
from captime.skeptic import set_pool as skeptic
from captime.skeptic.arrivals import ArrivalShares
from captime.streams.finite import FiniteStream, Instance
from forgery import forge, notes_changed
from space_campaigns import on_space, search
from written_ledgers import audited


def certificate(path: Path) -> dict[str, Any]:
    """The newest one, by column."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute("SELECT * FROM certificate ORDER BY seq DESC LIMIT 1").fetchone())


def of_newest(change: str) -> str:
    """SQL that changes the newest certificate."""
    return f"UPDATE certificate SET {change} WHERE seq = (SELECT max(seq) FROM certificate)"


def on_set(favourites: int, *, size: int = 40, known: int = 0, **more: Any) -> CampaignQuestion:
    """A campaign on a space about exactly `size` instances, of which `known` were there before."""
    asked = on_space(favourites, **more)
    listed = [Instance(f"i{number:03}", digest=f"{number:064x}") for number in range(size)]
    first = FiniteStream(listed[:known], "shuffle", 0) if known else None
    names = () if first is None else [first.at(position).instance.name for position in range(known)]
    stream = FiniteStream(listed, "shuffle", 0, known=names)
    identity = {**asked.identity, "instances": {**stream.describe(), "population": "these"}}
    return replace(asked, stream=stream, population=Population.THESE, identity=identity)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with a model, to which favourites were added on the way."""
    path = tmp_path_factory.mktemp("set") / "a.ledger"
    search(on_set(1, options={"gamma": 0.4}, epsilon=0.15), path)
    held = search(on_set(3, options={"gamma": 0.4}, epsilon=0.15), path).certificate
    assert held.population is Population.THESE
    assert held.epsilon <= 0.15
    assert held.gamma
    return path


@pytest.fixture
def ledger(original: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copyfile(original, tmp_path / "copy.ledger"))


def test_an_honest_pool_is_confirmed(original: Path) -> None:
    """With an account of what was checked: draws, pilot, first positions, gamma, both claims."""
    found = audited(original)
    assert (found.verdict, found.why) == ("confirmed", "")
    told = "\n".join(found.account)
    for words in (
        "random draws are those that the space and the seed give",
        "was told before the first run",
        "bets on proposals begin behind everything",
        "miss a share",
        "on exactly these 40 instances",
        "on the distribution of the instances",
    ):
        assert words in told


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_pools_of_other_kinds_are_confirmed(order: str, tmp_path: Path) -> None:
    """Run to the exact end without a model; cut off and resumed with other goals; more instances later."""
    end, cut, grown = (tmp_path / name for name in ("end", "cut", "grown"))
    held = search(on_set(1, model=False, size=12, options={"gamma": 0.5}, epsilon=0.0), end, order).certificate
    assert held.epsilon == 0.0
    left = iter(range(25))
    search(on_set(1, epsilon=0.1), cut, order, interrupted=lambda: next(left, None) is None)
    assert audited(cut).verdict == "confirmed"
    again = search(on_set(1, epsilon=0.2, options={"gamma": 0.45}), cut, order).certificate
    assert again.epsilon <= 0.2
    search(on_set(1, size=20, epsilon=0.2), grown, order)
    larger = search(on_set(1, size=30, known=20, epsilon=0.2), grown, order).certificate
    assert larger.instances == 30
    for path in (end, cut, grown):
        assert audited(path).verdict == "confirmed"


def test_resuming_changes_nothing(original: Path, tmp_path: Path) -> None:
    """The same goals once more: the same certificate, and not a single run."""
    path = Path(shutil.copyfile(original, tmp_path / "again.ledger"))
    with LedgerReader(path) as reader:
        runs = len(reader.outcomes()["config"])
    again = search(on_set(3, options={"gamma": 0.4}, epsilon=0.15), path)
    with LedgerReader(path) as reader:
        assert len(reader.outcomes()["config"]) == runs
    assert again.resumed
    assert again.certificate.epsilon == certificate(original)["epsilon"]


LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a smaller epsilon": (lambda held: of_newest(f"epsilon = {held['epsilon'] / 3}"), "rows do not show it"),
    "a smaller gamma": (lambda held: of_newest(f"gamma = {held['gamma'] / 2}"), "not documented|do not show that"),
    "fewer configurations": (lambda _: of_newest("n_configs = 4"), "not documented|do not show that"),
    "good enough by itself": (lambda _: of_newest("gamma = 0, other = NULL"), "best possible"),
    "a better interval": (lambda held: of_newest(f"utility_low = {held['utility_low'] + 0.2}"), "worth at least"),
    "a lower upper end": (lambda held: of_newest(f"utility_high = {held['utility_low'] + 1e-6}"), "worth at most"),
    "more instances run": (lambda _: of_newest("instances_run = 41"), "known exactly"),
    "another set": (lambda _: of_newest("instances = 39"), "the stream has"),
    "another pilot from some row on": (
        lambda _: notes_changed("facts", lambda told: told["begins"] and told["pilot"].update(positions=1)),
        "once and for all",
    ),
    "bets on a proposal from the front": (
        lambda _: notes_changed("facts", lambda told: told.update(begins=[[each, 3] for each, _ in told["begins"]])),
        "it may have been made for what it is judged on",
    ),
    "first positions that are not told": (
        lambda _: notes_changed("facts", lambda told: told.update(begins=[])),
        "where it begins is not told",
    ),
    "another draw": (
        lambda _: (
            'UPDATE config SET settings = \'{"settings":{"x":0.123}}\' WHERE config = '
            "(SELECT min(config) FROM config WHERE origin = 'random')"
        ),
        "give another one",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(lie: str, ledger: Path) -> None:
    """The hashes are made right again, so that nothing but the content tells."""
    change, words = LIES[lie]
    forge(ledger, change(certificate(ledger)))
    with pytest.raises(LedgerDamaged, match=words):
        audited(ledger)


def test_a_rank_that_the_pilot_does_not_give_shows_less(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the worst ranks at arrival for all draws, what the engine claimed for a draw does not follow."""
    honest = ArrivalShares.leader

    def worst(self: Any, who: Any, rank: int = 0) -> Fraction:
        assert rank < max(1, who.number)
        return honest(self, who, rank) * Fraction(1, 10**12)

    monkeypatch.setattr(ArrivalShares, "leader", worst)
    with pytest.raises(LedgerDamaged):
        audited(original)


def test_shares_are_the_same_by_both_readings() -> None:
    """The engine's and the check's."""
    assert {name: Fraction(repr(share)) for name, share in ON_SET_SHARES} == skeptic._SHARES
    assert sum(skeptic._SHARES.values()) == 1


def test_without_orders_it_is_confirmed_on_trust_only(tmp_path: Path) -> None:
    """Ledgers in fixed order may lack their orders."""
    path = tmp_path / "fixed.ledger"
    search(on_set(1, size=12, model=False, epsilon=0.2), path, "fixed")
    forge(path, "DELETE FROM ask")
    assert audited(path).verdict == "not-verifiable"
    assert audited(path, Trust.ORDERS).verdict == "confirmed"
