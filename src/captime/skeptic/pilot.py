"""The warm start, as far as the proof cares: who took part, where the race begins, and which prior it begins with.

Needed (docs/engine.md, step 7): the start J and the ranking were written down before the first run on a
position from J on; before J every configuration ran the first positions, without gaps, and skips the rest for ever;
whether it runs a position was decided before any run was started there, or follows from scores on earlier positions.
A race that begins with its first run (J is 0) has no warm start: all configurations weigh the same as leaders.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from captime.arrays import FloatArray
from captime.errors import LedgerDamaged
from captime.skeptic.books import Books

Scores: TypeAlias = Callable[[int], FloatArray]
# Sums of doubles are rounded; nearer means are equal.
_TIE = 1e-9


@dataclass(slots=True)
class Pilot:
    """What was fixed before the race.

    Attributes:
        start: J, the first position of the race; None if it has not begun.
        rank: Rank of every configuration, 0 for the best; empty where ranks do not matter.
        n_configs: How many configurations.
        account: What was found, one line each.
        ordered: Whether it is on record who was ordered to take part, and when.
    """

    start: int | None
    rank: dict[int, int]
    n_configs: int
    account: list[str] = field(default_factory=list)
    ordered: bool = True

    def weight(self, config: int) -> Fraction:
        """π of a leader; over all configurations these sum to at most 1."""
        if not self.rank:
            return Fraction(1, self.n_configs)
        if self.start == 0:
            # No run came before the race, so nothing is known that could rank anything. The rest is for latecomers.
            return Fraction(1, self.n_configs + 1)
        rank = self.rank[config]
        return Fraction(1, (rank + 1) * (rank + 2))


def read_pilot(books: Books, mode: str, scores: Scores, middles: Sequence[Scores]) -> Pilot:
    """Start and prior of the race, after making sure that they may be used.

    Args:
        books: What the rows say.
        mode: What delta covers; ranks matter for `selection` only.
        scores: A configuration's scores, by position; cut ones at the middle of what they may be worth.
        middles: Its scores as they may have been known when the race began, open ones at the middle; the ranking has to
            follow from one of these.
    """
    facts = [(note.sequence, note.facts) for note in books.notes if note.kind == "facts" and "start" in note.facts]
    starts = {first for orders in books.ordered for _, _, first in orders if first > 0}
    if not facts:
        if starts:
            raise LedgerDamaged("the race has begun, but its start and its ranking were not written down")
        _check_no_gaps(books, None)
        return Pilot(None, {}, books.n_configs, ["the race has not begun"])
    sequence, told = facts[0]
    start, ranking = _checked(told, books.n_configs)
    for later, again in facts[1:]:
        if (again.get("start"), again.get("ranking")) != (told["start"], told["ranking"]):
            raise LedgerDamaged(f"row {later} says another start or ranking than row {sequence}: a prior never changes")
    if starts - {start}:
        raise LedgerDamaged(f"the race starts at position {start}, but orders start at {sorted(starts)}")
    _check_before(books, sequence, start)
    _check_no_gaps(books, start)
    _check_orders(books, sequence, start)
    rank = {config: place for place, config in enumerate(ranking)} if mode == "selection" else {}
    pilot = Pilot(start, rank, books.n_configs)
    pilot.account.append(f"start (position {start}) and ranking were written down before the first run they govern")
    if books.n_configs == 1:
        return pilot
    if start == 0:
        pilot.ordered = any(books.ordered)
        if ranking != sorted(ranking):
            raise LedgerDamaged("the race began with its first run, but its ranking is not the list: it was changed")
        return pilot
    if not books.at_first_race_order:
        pilot.ordered = False
        return pilot
    pilot.account.append(_check_members(books, start, scores))
    pilot.account.append(_check_rankings(books, ranking, middles))
    return pilot


def _checked(told: Any, n_configs: int) -> tuple[int, list[int]]:
    start, ranking = int(told["start"]), [int(config) for config in told.get("ranking", ())]
    if sorted(ranking) != list(range(n_configs)):
        raise LedgerDamaged(f"the ranking names {len(ranking)} configurations, but each of {n_configs} has one rank")
    return start, ranking


def _check_before(books: Books, sequence: int, start: int) -> None:
    """Check that no run was started on a position of the race before its terms were fixed."""
    for config, runs in enumerate(books.runs):
        for position, run in runs.items():
            if position >= start and run.began < sequence:
                raise LedgerDamaged(
                    f"row {run.began} starts configuration {config} on position {position}, before row {sequence} "
                    f"fixed the prior for positions from {start} on"
                )


def _check_no_gaps(books: Books, start: int | None) -> None:
    """Check that each configuration runs a prefix of the stream, and then the race's positions without a gap."""
    for config, runs in enumerate(books.runs):
        places = np.array(sorted(runs), dtype=np.int64)
        pilot = places if start is None else places[places < start]
        race = places[:0] if start is None else places[places >= start] - start
        for part, offset in ((pilot, 0), (race, start or 0)):
            missing = np.flatnonzero(part != np.arange(len(part)))
            if len(missing):
                raise LedgerDamaged(
                    f"configuration {config} has runs on position {offset + part[missing[0]]} and none on position "
                    f"{offset + missing[0]}: a position was stepped over"
                )


def _check_orders(books: Books, sequence: int, start: int) -> None:
    """Once the race has begun, what the warm start skipped stays skipped."""
    for config, orders in enumerate(books.ordered):
        for row, _, first in orders:
            if row > sequence and first < start:
                raise LedgerDamaged(
                    f"row {row} orders configuration {config} to run positions of the warm start after the race has "
                    "begun: what was skipped has to stay skipped"
                )


def _check_members(books: Books, start: int, scores: Scores) -> str:
    """Check that members of a rung were decided before any run was started there, or by scores on earlier positions."""
    depth, scouts = _depths(books), _scouts(books)
    for rung in sorted(set(depth))[:-1]:
        first = min((run.began for runs in books.runs for where, run in runs.items() if where >= rung), default=0)
        late = {
            config
            for config, orders in enumerate(books.ordered)
            if min(depth[config], start) > rung
            and not any(n > rung and row < first for row, n, skip in orders if not skip)
        }
        out = {config for config in range(books.n_configs) if depth[config] == rung}
        _check_by_scores(rung, late - scouts, out - scouts, scores)
    return "warm-start membership was fixed before any run was started there, or follows from earlier scores alone"


def _check_by_scores(rung: int, late: set[int], out: set[int], scores: Scores) -> None:
    """Check that configurations let in late had the better scores before that position."""
    means = {config: float(np.mean(scores(config)[:rung])) for config in late | out} if late else {}
    for config in sorted(late):
        for other in sorted(out):
            if means[config] < means[other] - _TIE:
                raise LedgerDamaged(
                    f"configuration {config} was let into the warm start from position {rung} on after others had been "
                    f"started there, and {other} was not, although its scores were better"
                )


def _check_rankings(books: Books, ranking: list[int], middles: Sequence[Scores]) -> str:
    """The ranking agrees with one of the things that may have been known."""
    for middle in middles[:-1]:
        try:
            return _check_ranking(books, ranking, middle)
        except LedgerDamaged:
            continue
    return _check_ranking(books, ranking, middles[-1])


def _check_ranking(books: Books, ranking: list[int], middle: Scores) -> str:
    """Those who came furthest stand first, the best of them at the very front."""
    depth, scouts = _depths(books), _scouts(books)
    told = [config for config in ranking if config not in scouts]
    for better, worse in pairwise(told):
        if depth[better] < depth[worse]:
            raise LedgerDamaged(
                f"the ranking has configuration {better}, which ran {depth[better]} positions of the warm start, "
                f"before {worse}, which ran {depth[worse]}: it was changed"
            )
    furthest = max(depth[config] for config in told)
    last = [config for config in told if depth[config] == furthest]
    means = [float(np.mean(middle(config)[:furthest])) if furthest else 0.0 for config in last]
    for place, (this, following) in enumerate(pairwise(means)):
        if this < following - _TIE:
            raise LedgerDamaged(
                f"the ranking has configuration {last[place]} before {last[place + 1]}, whose scores in the warm start "
                "were better: it was changed"
            )
    return f"the ranking agrees with the warm start ({len(last)} came to its end)"


def _depths(books: Books) -> list[int]:
    """How many positions of the warm start each was told to run."""
    return [max((n for _, n, first in orders if first == 0), default=0) for orders in books.ordered]


def _scouts(books: Books) -> set[int]:
    """Return the configurations that were told to run before all others were."""
    firsts = [orders[0][0] if orders else 0 for orders in books.ordered]
    return {config for config, row in enumerate(firsts) if row < max(firsts, default=0)}
