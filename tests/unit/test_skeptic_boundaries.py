"""The skeptic at the edges of what is documented: a step further, and a false certificate would pass.

Levels and positions are written here as numbers, as the documents have them, and not taken from the code.
"""

import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from captime.certificate import Certificate
from captime.errors import LedgerDamaged
from captime.ledger import LedgerReader
from captime.ledger.rows import ConfigRow, Noted, certified_of
from captime.ledger.schema import CERTIFICATE, CONFIG, OUTCOME, SAMPLE, START, Table
from captime.skeptic.arrivals import Arrival, arrivals
from captime.skeptic.books import Books, Run, Story, story_of, told_in_order
from captime.skeptic.directed import Bets
from captime.skeptic.fixed import Cells, _hoeffding
from captime.skeptic.late import read_late, shares_of
from captime.skeptic.pilot import read_pilot
from captime.skeptic.pool import PoolCheck
from captime.skeptic.question import Question, read_question
from captime.skeptic.race import RaceCheck
from captime.utilities import parse_utility
from forgery import forge
from space_campaigns import on_space, search
from written_ledgers import audited, runtimes, written

DELTA = Fraction(1, 10)
MEANS = Bets.documented(24)
UTILITY = parse_utility("uniform(100)")


def question(procedure: str = "race", **more: Any) -> Question:
    """Seed 3, delta 0.1."""
    return Question(UTILITY, DELTA, procedure, {}, 3, **more)


def books_of(runs: Sequence[dict[int, Run]], **more: Any) -> Books:
    """What rows could say: this many configurations with these runs."""
    configs = [(index + 1, ConfigRow(index, f"c{index}")) for index in range(len(runs))]
    ordered = [[(10, max(each, default=-1) + 1, 0)] for each in runs]
    return Books(**{"n_configs": len(runs), "configs": configs, "runs": list(runs), "ordered": ordered, **more})


def answered(began: int, seconds: float = 0.0) -> Run:
    """An answer, at once or not."""
    return Run(began, 1e9, flying=False, status="completed", runtime=seconds)


def claim(config: int = 0, n_configs: int = 2, **more: Any) -> Certificate:
    """A certificate of a race, with the documented shares."""
    shares = (("upper", 0.41), ("paired", 0.41), ("lower", 0.1), ("shown", 0.04), ("scout", 0.04))
    terms = {"epsilon": 0.3, "utility_low": 0.0, "utility_high": 1.0, "shares": shares, "mode": "selection", **more}
    return Certificate(config=config, delta=0.1, n_configs=n_configs, **terms)


# ---------------------------------------------------------------------- the scout


def test_the_scouts_bound_begins_at_position_16_and_has_4_percent_of_delta() -> None:
    """Not the 10 of lower bounds, and nothing that was run before the champion was chosen."""
    champion = {position: answered(100 + position, 5.0 if 8 <= position < 16 else 1.0) for position in range(60)}
    other = {position: answered(20 + position, 50.0) for position in range(16)}
    check = RaceCheck(books_of([champion, other]), question(), claim())
    low = check._of(0).low
    expected = MEANS.lower_bound(low[16:], 1 / (Fraction(4, 100) * DELTA))
    assert check._scouted() == expected
    assert MEANS.lower_bound(low[16:], 1 / (Fraction(10, 100) * DELTA)) > expected > 0.5
    assert MEANS.lower_bound(low[8:], 1 / (Fraction(4, 100) * DELTA)) > expected
    # Where another one was started first from there on, the leader is not the champion, whichever came first before.
    other[16] = answered(50, 50.0)
    assert RaceCheck(books_of([champion, other]), question(), claim())._scouted() == 0.0


def test_an_epsilon_that_only_a_larger_share_shows_is_refused(tmp_path: Path) -> None:
    """The ledger of a scout that reaches 1 - epsilon, with as much claimed as 10 % of delta would show."""
    path = tmp_path / "a.ledger"
    written(path, 0.001 * runtimes(5, 100, 0.1), epsilon=0.2, workers=1, short=False)
    books, asked, held = newest(path)
    low = RaceCheck(books, asked, held)._of(held.config)
    low_ends = low.low[np.flatnonzero(low.story.position >= 16)]
    shown, more = (MEANS.lower_bound(low_ends, 1 / (Fraction(share, 100) * DELTA)) for share in (4, 10))
    assert more > shown + 0.01
    for bound, passes in ((shown, True), (more, False)):
        forge(path, certificate(epsilon=1.0 - bound + 1e-6, utility_low=0.0))
        if passes:
            assert audited(path).verdict == "confirmed"
        else:
            with pytest.raises(LedgerDamaged, match="rows do not show it"):
                audited(path)


def newest(path: Path) -> tuple[Books, Question, Certificate]:
    """What the rows before the newest certificate say, what was asked, and that certificate."""
    books = Books()
    with LedgerReader(path) as reader:
        last, asked = reader.last_certificate_row(), read_question(reader.scenario)
        for table, row in reader.walk():
            if table is CERTIFICATE and row[0] == last:
                assert isinstance(asked, Question)
                return books, asked, certified_of(row).certificate
            books.take(table, row)
    raise AssertionError(path)


def certificate(**columns: float) -> str:
    """SQL that changes the newest certificate."""
    told = ", ".join(f"{name} = {value!r}" for name, value in columns.items())
    return f"UPDATE certificate SET {told} WHERE seq = (SELECT max(seq) FROM certificate)"  # noqa: S608 (ours)


# ---------------------------------------------------------------------- the interval that is shown


def test_the_upper_end_that_is_shown_is_paid_by_every_configuration(tmp_path: Path) -> None:
    """4 % of delta, divided by all who were there from the start; the leader alone must not have all of it."""
    path = tmp_path / "a.ledger"
    written(path, runtimes(1, 4, 1.0), epsilon=0.15)
    books, asked, held = newest(path)
    losses = 1.0 - RaceCheck(books, asked, held)._of(held.config).high
    shown, full = (1.0 - MEANS.lower_bound(losses, 1 / (Fraction(4, 100) * DELTA / n)) for n in (4, 1))
    assert full < shown - 0.005
    for end, passes in ((shown + 1e-6, True), ((shown + full) / 2, False)):
        forge(path, certificate(utility_high=end))
        if passes:
            assert audited(path).verdict == "confirmed"
        else:
            with pytest.raises(LedgerDamaged, match="is worth at most"):
                audited(path)


def test_the_upper_end_that_a_pool_shows_is_paid_by_every_arrival(tmp_path: Path) -> None:
    """5 % of delta, divided among all who come."""
    path = tmp_path / "a.ledger"
    search(on_space(1, options={"gamma": 0.5}), path)
    books, asked, held = newest(path)
    check = PoolCheck(books, asked, held)
    losses = 1.0 - check._of(held.config).high
    part = check._shares.shown(check._who[held.config])
    shown, full = (1.0 - MEANS.lower_bound(losses, 1 / (Fraction(5, 100) * DELTA * share)) for share in (part, 1))
    assert full < shown - 0.005
    forge(path, certificate(utility_high=(shown + full) / 2))
    with pytest.raises(LedgerDamaged, match="is worth at most"):
        audited(path)


# ---------------------------------------------------------------------- who joins later


SHARES = shares_of(2, 5)


def joined(position: int, first: int = 0) -> Books:
    """A race from position 4 on that two have run up to 19, and a third that joined then and begins at `position`."""
    early = [{where: answered(100 + where) for where in range(20)} for _ in range(2)]
    late = {where: answered(300 + where) for where in range(first or position, 40)}
    notes = [
        Noted(50, "facts", {"start": 4, "ranking": [0, 1]}),
        Noted(200, "configurations", {"list": [{"name": "late"}], "earliest": 20}),
        Noted(250, "facts", {"start": 4, "ranking": [0, 1], "joined": [[2, position]]}),
    ]
    books = books_of([*early, late], notes=notes)
    books.configs[2] = (220, books.configs[2][1])
    return books


def test_a_latecomer_begins_behind_everything_that_was_started_before_it_was_added() -> None:
    """Position 20, not 19: that one may have been seen when it was added. And not before where it says it begins."""
    assert read_late(joined(20), 4, SHARES).begin == {2: 20}
    assert read_late(joined(23), 4, SHARES).begin == {2: 23}
    for position in (19, 12, 4):
        with pytest.raises(LedgerDamaged, match="may have seen what it is judged on"):
            read_late(joined(position), 4, SHARES)
    with pytest.raises(LedgerDamaged, match="may have seen what it is judged on"):
        read_late(joined(20), 21, SHARES)
    for first in (19, 21):
        with pytest.raises(LedgerDamaged, match="has to run all positions from 20 on"):
            read_late(joined(20, first), 4, SHARES)


# ---------------------------------------------------------------------- pools


def proposed(begin: int, known: int) -> Any:
    """A check of a draw that ran from the start, and of a proposal made when positions before `known` were started."""
    draw, proposal = ({where: answered(9) for where in range(first, 30)} for first in (0, begin))
    return SimpleNamespace(
        _pilot=4,
        _who=[Arrival("draw", 1), Arrival("proposal", 1, known)],
        books=SimpleNamespace(runs=[draw, proposal]),
        _begin=[],
        account=[],
    )


def test_a_proposal_begins_behind_everything_that_had_been_started() -> None:
    """Where it was made for, it may have been made to win; and never within the pilot."""
    for begin, known in ((10, 10), (13, 10), (4, 2)):
        PoolCheck._check_positions(proposed(begin, known))
    for begin, known in ((9, 10), (4, 10), (3, 2)):
        with pytest.raises(LedgerDamaged, match="may have been made for what it is judged on"):
            PoolCheck._check_positions(proposed(begin, known))


def test_what_a_proposal_may_know_ends_behind_the_last_position_that_was_started() -> None:
    """Runs that were started before its row, answered or not; later ones do not matter."""
    runs: list[dict[int, Run]] = [{0: Run(4, 1.0), 7: Run(5, 1.0), 8: Run(30, 1.0)}, {}]
    books = books_of(runs)
    books.configs = [(1, ConfigRow(0, "a", {}, "random")), (20, ConfigRow(1, "b", {}, "model"))]
    found = arrivals(books, question("pool", space={"model": True}, n_listed=0))
    assert [(each.kind, each.known) for each in found] == [("draw", 0), ("proposal", 8)]


def test_a_draw_stands_behind_its_equals() -> None:
    """A tie of pilots counts against the one that came later, or ranks could be chosen after a look."""

    def share(*sums: float) -> Fraction:
        check = SimpleNamespace(
            held=SimpleNamespace(config=len(sums) - 1),
            _who=[Arrival("draw", number + 1) for number in range(len(sums))],
            _pilot_sum=lambda config: sums[config],
            _shares=SimpleNamespace(leader=lambda _, rank=0: Fraction(rank)),
        )
        return PoolCheck._leader_share(check)  # type: ignore[arg-type]  # all that it looks at

    assert share(2.0, 2.0) == 1
    assert share(3.0, 2.0, 1.0, 2.0 + 1e-12, 2.0) == 3
    assert share(2.0, 2.001) == 0


# ---------------------------------------------------------------------- attempts


@pytest.mark.parametrize("status", ["completed", "failed", "abandoned", "lost", "capped"])
def test_only_what_is_lost_or_was_cut_may_be_tried_again(status: str) -> None:
    """A second try for runs that failed would be a second chance for bad luck."""
    books = Books()
    books.take(CONFIG, row_of(CONFIG, seq=1, config=0, name=b"a", settings="{}", origin="listed"))
    books.take(SAMPLE, row_of(SAMPLE, seq=2, position=0))
    run = {"config": 0, "position": 0}
    books.take(START, row_of(START, seq=3, **run, attempt=0, captime=5.0))
    ended = {"status": status, "runtime": 1.0, "cost": 1.0, "orphan": 0}
    books.take(OUTCOME, row_of(OUTCOME, seq=4, **run, attempt=0, **ended))
    again = row_of(START, seq=5, **run, attempt=1, captime=5.0)
    if status in ("lost", "capped"):
        books.take(START, again)
        assert books.runs[0][0].attempt == 1
    else:
        with pytest.raises(LedgerDamaged, match=f"tries a run again that was {status} before"):
            books.take(START, again)


def row_of(table: Table, **values: object) -> sqlite3.Row:
    """A row as SQLite gives it; columns that are not named are NULL."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    names = ("seq", *table.names, "hash")
    asked = ", ".join(f"? AS {name}" for name in names)
    row: sqlite3.Row = connection.execute(f"SELECT {asked}", [values.get(name) for name in names]).fetchone()
    connection.close()
    return row


# ---------------------------------------------------------------------- the warm start


def warm(late_row: int, means: Sequence[float]) -> Books:
    """Three were ordered to run 4 positions, the first to run 8; the second was let in by order `late_row`.

    The first was started on position 4 in row 60.
    """
    n = [8, 8, 4]
    runs = [
        {where: Run(20 + where if where < 4 else 60 + 30 * config, 1.0) for where in range(length)}
        for config, length in enumerate(n)
    ]
    ordered = [[(10, 4, 0), (50, 8, 0)], [(10, 4, 0), (late_row, 8, 0)], [(10, 4, 0)]]
    ranking = sorted(range(3), key=lambda config: (-n[config], -means[config]))
    notes = [Noted(500, "facts", {"start": 8, "ranking": ranking})]
    books = books_of(runs, ordered=ordered, notes=notes)
    books.at_first_race_order = runs
    return books


def test_who_is_let_into_a_rung_late_has_the_better_scores() -> None:
    """Decided before any run was started there, or by scores on earlier positions alone."""

    def read(late_row: int, means: Sequence[float]) -> None:
        def scores(config: int) -> Any:
            return np.full(8, means[config])

        read_pilot(warm(late_row, means), "selection", scores, [scores])

    read(70, (0.9, 0.8, 0.5))
    read(55, (0.9, 0.5, 0.8))
    with pytest.raises(LedgerDamaged, match="configuration 1 was let into the warm start from position 4 on after"):
        read(70, (0.9, 0.5, 0.8))


def test_in_fixed_order_the_first_runs_are_known_and_the_others_are_not() -> None:
    """All numbers that leave at most a window open, as far as runs had come back in their order."""
    runs = [{0: answered(1), 1: answered(3), 2: Run(5, 1e9)}, {0: answered(2), 1: answered(4), 2: answered(6)}]
    known = [
        [[not run.flying for run in of_config.values()] for of_config in each] for each in told_in_order(runs, window=3)
    ]
    assert known == [[[True, True, False], [True, True, False]], [[True, True, False], [True, False, False]]]
    assert not list(told_in_order(runs, window=1))
    assert all(run.began for each in told_in_order(runs, window=6) for of_config in each for run in of_config.values())


# ---------------------------------------------------------------------- naive


def test_naive_looks_at_one_number_of_samples_only() -> None:
    """Its union bound pays for one; the best of all numbers would be a lie."""
    first, rest = [3.0] * 30 + [float("nan")] * 20, [0.0] * 150
    seconds = np.array(first + rest)
    n = len(seconds)
    story = Story(
        position=np.arange(n),
        began=np.arange(n),
        captime=np.full(n, 10.0),
        seen=np.where(np.isnan(seconds), 10.0, 0.0),
        runtime=seconds,
        failed=np.zeros(n, dtype=np.bool_),
        cut=np.isnan(seconds),
        settled=np.ones(n, dtype=np.bool_),
    )
    price = 3.0
    asked = question("naive")
    only = _hoeffding(asked, story, Cells(lambda each, _: np.full(len(each), price), np.array([10.0]), 50))
    radius = np.sqrt(price / (2 * 50))
    assert only[0] == pytest.approx(0.97 * 30 / 50 - radius, abs=1e-6)
    assert only[1] == pytest.approx((0.97 * 30 + 0.9 * 20) / 50 + 0.1 * radius, abs=1e-6)
    anywhere = _hoeffding(asked, story, Cells(lambda each, _: np.full(len(each), price), np.array([10.0])))
    assert anywhere[0] > only[0] + 0.1


def test_stories_are_in_the_order_of_the_stream() -> None:
    """Whatever the order of starting."""
    assert story_of({3: answered(1), 1: answered(2)}).position.tolist() == [1, 3]
