"""The skeptic on pools: honest ledgers are confirmed, each kind of lie is found; and races with latecomers."""

# ruff: noqa: S608 (the forger writes SQL, without any input in it)
import json
import math
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from captime.errors import LedgerDamaged
from captime.ledger import LedgerReader
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_shares import PoolShares
from captime.procedures.pool_terms import PoolTerms
from captime.skeptic import Trust
from captime.skeptic.arrivals import Arrival, ArrivalShares, Gammas
from captime.skeptic.pool import PoolCheck
from captime.skeptic.question import Question, read_question
from captime.spaces.formats import read_space_section
from captime.utilities import parse_utility
from forgery import forge
from space_campaigns import asked, go, on_space, search
from written_ledgers import audited

UTILITY = parse_utility("uniform(60)")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign on a space with a model, to which favourites were added on the way."""
    path = tmp_path_factory.mktemp("pool") / "a.ledger"
    search(on_space(1, options={"gamma": 0.4}), path)
    held = search(on_space(3, options={"gamma": 0.4}), path)
    assert held.certificate.epsilon <= 0.3
    return path


@pytest.fixture
def ledger(original: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copyfile(original, tmp_path / "copy.ledger"))


def test_an_honest_pool_is_confirmed(original: Path) -> None:
    """With an account of what was checked: draws, positions, gamma, all configurations."""
    found = audited(original)
    assert (found.verdict, found.why) == ("confirmed", "")
    told = "\n".join(found.account)
    for words in ("random draws are those that the space and the seed give", "begin behind everything", "miss a share"):
        assert words in told


@pytest.mark.parametrize("order", ["arrival", pytest.param("fixed", marks=pytest.mark.slow)])
def test_pools_of_other_kinds_are_confirmed(order: str, tmp_path: Path) -> None:
    """Without a model, over a list, with a changed gamma, with one goal; and cut off by a budget of laps."""
    space, listed, one = (tmp_path / name for name in ("space", "list", "one"))
    search(on_space(1, model=False), space, order)
    search(on_space(2, model=False, options={"gamma": 0.45}), space, order)
    go(asked(5, 5, procedure="pool", options={"gamma": 0.6}), listed, order)
    go(asked(8, 5, procedure="pool", options={"gamma": 0.6}), listed, order)
    left = iter(range(60))
    search(on_space(1, options={"stop": "gamma"}), one, order, interrupted=lambda: next(left, None) is None)
    for path in (space, one):
        assert audited(path).verdict == "confirmed"
    assert "no row shows that it was drawn at random (--trust draws accepts that)" in audited(listed).why
    assert audited(listed, Trust.DRAWS).verdict == "confirmed"


def test_batches_begin_together_and_are_confirmed(tmp_path: Path) -> None:
    """Proposals of a batch are on record before any of them runs, and begin where no run had been started by then."""
    path = tmp_path / "batches.ledger"
    left = iter(range(600))
    search(on_space(1, epsilon=0.02, options={"gamma": 0.02}), path, interrupted=lambda: next(left, None) is None)
    with LedgerReader(path) as reader:
        proposed = [config.index for config in reader.configs if config.origin == "model"]
        runs = reader.outcomes()
    places = [runs["position"][runs["config"] == config] for config in proposed]
    begin = [int(each.min()) for each in places if len(each)]
    assert len(begin) > 12
    assert begin[:8] == sorted(set(begin[:8]))
    assert begin[8:12] == [begin[8], begin[8], begin[10], begin[10]]
    assert begin[7] < begin[8] < begin[10]
    assert audited(path).verdict == "confirmed"


def test_draws_are_recomputed_in_the_order_of_the_parameters() -> None:
    """JSON objects have no order, and a ledger keeps them sorted by name; random draws depend on it."""
    tables = {name: {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for name in ("z", "a", "m")}
    space = read_space_section(tables, "test", Path())
    base = {"utility": "uniform(60)", "delta": 0.1, "procedure": "pool", "seed": 3}
    for section in (tables, {"parameters": tables}):
        written = json.loads(json.dumps({**base, "space": section, "space_order": ["z", "a", "m"]}, sort_keys=True))
        question = read_question(written)
        assert isinstance(question, Question)
        assert question.space is not None
        assert read_space_section(question.space, "ledger", Path()).draw(3, 0) == space.draw(3, 0)


@pytest.mark.parametrize(("scored", "wins"), [(0.95, True), (0.7, False)])
def test_positions_that_only_the_leader_ran_count_as_far_as_they_can(scored: float, wins: bool) -> None:
    """No score is more than 1: that speaks for a leader that scored nearly as much, and against one that did not."""
    leader, no_ends = np.full(200, scored), np.empty(0)
    ends = {0: leader, 1: no_ends}
    check = SimpleNamespace(
        held=SimpleNamespace(config=0, epsilon=0.2),
        _of=lambda config: SimpleNamespace(since=lambda _: SimpleNamespace(low=ends[config], high=ends[config])),
        _level=lambda _: Fraction(1000),
    )
    table = SimpleNamespace(duel=lambda *_: Fraction(1), begin=lambda _: 4)
    assert PoolCheck._wins_duel(check, table, 1) == wins  # type: ignore[arg-type]  # all that it looks at


def certificate(path: Path) -> dict[str, float]:
    """The newest one, by column."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        row = connection.execute("SELECT * FROM certificate ORDER BY seq DESC LIMIT 1").fetchone()
    return dict(row)


def of_newest(change: str) -> str:
    """SQL that changes the newest certificate."""
    return f"UPDATE certificate SET {change} WHERE seq = (SELECT max(seq) FROM certificate)"


LIES: dict[str, tuple[Callable[[dict[str, float]], str], str]] = {
    "a smaller epsilon": (lambda held: of_newest(f"epsilon = {held['epsilon'] / 2}"), "rows do not show it"),
    "a smaller gamma": (lambda held: of_newest(f"gamma = {held['gamma'] / 2}"), "draws do not show that"),
    "fewer draws": (lambda held: of_newest("n_configs = 4"), "draws do not show that"),
    "good enough by itself": (lambda _: of_newest("gamma = 0"), "within epsilon of the best possible"),
    "a better interval": (lambda held: of_newest(f"utility_low = {held['utility_low'] + 0.2}"), "at least"),
    "a lower upper end": (lambda held: of_newest(f"utility_high = {held['utility_low'] + 1e-6}"), "at most"),
    "worth something from the start": (
        lambda _: of_newest("epsilon = 1, utility_low = 0.999, utility_high = 0.9995"),
        "at least",
    ),
    "all covered": (lambda _: of_newest("mode = 'simultaneous'"), "cover the selection only"),
    "another draw": (
        lambda _: (
            'UPDATE config SET settings = \'{"settings":{"x":0.123}}\' WHERE config = '
            "(SELECT min(config) FROM config WHERE origin = 'random')"
        ),
        "give another one",
    ),
    "a proposal called a draw": (
        lambda _: (
            "UPDATE config SET origin = 'random', name = CAST('random-' || config AS BLOB) WHERE config = "
            "(SELECT max(config) FROM config WHERE origin = 'model')"
        ),
        "give another one|does not run all positions",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(lie: str, ledger: Path) -> None:
    """The hashes are made right again, so that nothing but the content tells."""
    change, words = LIES[lie]
    forge(ledger, change(certificate(ledger)))
    with pytest.raises(LedgerDamaged, match=words):
        audited(ledger)


def test_a_favourite_that_begins_where_it_was_made_for_is_found(ledger: Path) -> None:
    """The note that it was added comes after the runs it could have learnt from: then it begins too early."""
    with LedgerReader(ledger) as reader:
        note = next(note for note in reader.events() if note.kind == "configurations")
        late = [config.index for config in reader.configs if config.origin == "favourite" and config.index > 1]
        first = reader.outcomes()
        begun = int(first["position"][first["config"] == late[0]].min())
    audited(ledger)
    # As if all had run further by the time it was added.
    before = f"(SELECT max(seq) FROM start WHERE seq < {note.sequence})"
    forge(ledger, f"UPDATE start SET position = {begun + 500} WHERE seq = {before}")
    with pytest.raises(LedgerDamaged):
        audited(ledger)


def test_a_race_that_somebody_joined_is_confirmed_and_its_lies_are_found(tmp_path: Path) -> None:
    """In order of arrival and in fixed order; begun elsewhere than behind everything, or claiming more, is found."""
    for order in ("arrival", "fixed"):
        path = tmp_path / order
        go(asked(5, 5), path, order)
        go(asked(8, 5), path, order)
        assert audited(path).verdict == "confirmed"
        assert any("joined later" in line for line in audited(path).account)
    copy = Path(shutil.copyfile(tmp_path / "arrival", tmp_path / "copy"))
    forge(copy, of_newest(f"epsilon = {certificate(copy)['epsilon'] / 3}"))
    with pytest.raises(LedgerDamaged, match="rows do not show it"):
        audited(copy)
    with LedgerReader(tmp_path / "arrival") as reader:
        rows: list[tuple[int, dict[str, Any]]] = [
            (note.sequence, dict(note.facts)) for note in reader.events() if note.kind == "facts"
        ]
    copy = Path(shutil.copyfile(tmp_path / "arrival", tmp_path / "copy"))
    for sequence, facts in rows:
        if "joined" in facts:
            facts["joined"] = [[config, facts["start"]] for config, _ in facts["joined"]]
            forge(copy, f"UPDATE note SET facts = '{json.dumps(facts)}' WHERE seq = {sequence}")
    with pytest.raises(LedgerDamaged, match=r"may have seen what it is judged on|has to run all positions"):
        audited(copy)


# ---------------------------------------------------------------------------- the documents, read twice


@pytest.mark.parametrize("goal", [0.0, 0.3, 0.05])
def test_gamma_is_the_same_by_both_readings(goal: float) -> None:
    """The engine's and the skeptic's, at every number of draws."""
    theirs, ours = GammaBets(0.04, goal), Gammas(0.04, goal)
    for draws in range(1, 200, 7):
        gamma = theirs.after(draws)
        assert gamma == 1.0 or ours.shown(gamma, draws)
        assert gamma == 1.0 or not ours.shown(gamma * 0.9, draws)
    assert goal == 0.0 or ours.draws_for(goal) == theirs.draws_for(goal)


@pytest.mark.parametrize(
    ("terms", "space"),
    [
        (PoolTerms(2, model=True), {"model": True}),
        (PoolTerms(2), {"model": False}),
        (PoolTerms(limit=12), None),
    ],
)
def test_shares_are_the_same_by_both_readings(terms: PoolTerms, space: dict[str, bool] | None) -> None:
    """Listed ones, draws with their ranks, and proposals, of the model or of the user."""
    goal = 0.3
    question = Question(UTILITY, Fraction(1, 10), "pool", {}, 0, space=space, n_listed=terms.limit or terms.n_listed)
    gammas = Gammas(0.04, goal)
    ours = ArrivalShares(question, gammas, goal, question.n_listed or 0)
    expected = min(gammas.draws_for(goal), terms.limit or 10**9)
    theirs = PoolShares(terms, expected)
    counts = {"listed": 0, "random": 0, "model": 0}
    for index in range(40):
        if index in (9, 14) or not theirs.terms.room(index):
            theirs.terms = theirs.terms.joined(index, 1)
        theirs.arrive()
        origin = theirs.origin[index]
        counts[origin] += 1
        kind = {"listed": "listed", "random": "draw", "model": "proposal"}[origin]
        who = Arrival(kind, counts[origin])  # type: ignore[arg-type] # one of three words
        rank = 0
        if origin == "random":
            theirs.rank(index, float(-index))
            rank = counts[origin] - 1
        assert math.exp(-theirs.log_best[index]) == pytest.approx(float(ours.best(who)))
        assert math.exp(-theirs.log_shown[index]) == pytest.approx(float(ours.shown(who)))
        assert math.exp(-theirs.log_leader[index]) == pytest.approx(float(ours.leader(who, rank)))
