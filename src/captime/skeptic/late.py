"""Shares of delta of a list, and configurations that joined it later: judged only on positions without a run by then.

Shares follow from ranks in the warm start. Needed of configurations that joined (docs/engine.md, step 9):
their choice may rest on every run that had been started by then, so their first position is behind all of those; it was
written down before their first run, and they run on from there without gaps. Their statements are paid from what the
weights of leaders leave over.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from captime.errors import LedgerDamaged
from captime.ledger.rows import Noted
from captime.skeptic.books import Books, frontier
from captime.skeptic.pilot import Pilot

# Shares of delta, docs/engine.md step 8. They sum to 1. From this schedule on, races that began with fewer
# configurations than this have shares of their own.
_NAMES = ("upper", "paired", "lower", "shown", "scout")
_SHARES = dict(zip(_NAMES, (Fraction(share, 100) for share in (41, 41, 10, 4, 4)), strict=True))
_SHARES_OF_FEW = dict(zip(_NAMES, (Fraction(share, 100) for share in (26, 60, 7, 4, 3)), strict=True))
_FEW, _FEW_SINCE = 40, 6
# Parts of the purse of those who joined later, step 9. They sum to 1.
_LATE_UPPER, _LATE_PAIRED, _LEADS, _AMONG, _LATE_LOWER, _LATE_SHOWN = (
    Fraction(share, 100) for share in (25, 30, 15, 15, 10, 5)
)


def shares_of(n_first: int, schedule: int) -> dict[str, Fraction]:
    """Return the documented shares of delta of a race that began with `n_first` configurations."""
    return _SHARES_OF_FEW if n_first < _FEW and schedule >= _FEW_SINCE else _SHARES


@dataclass(slots=True)
class Late:
    """Who joined later.

    Attributes:
        n_first: How many were there from the start.
        shares: The shares of delta.
        begin: First position of each who joined and has one.
        account: What was found, one line each.
    """

    n_first: int
    shares: dict[str, Fraction]
    begin: dict[int, int] = field(default_factory=dict)
    account: list[str] = field(default_factory=list)

    def weight(self, config: int) -> Fraction:
        """The weight of a latecomer, 1 for the others; over all latecomers these sum to at most 1."""
        number = config - self.n_first + 1
        return Fraction(1, number * (number + 1)) if number > 0 else Fraction(1)

    @property
    def purse(self) -> Fraction:
        """The share of delta that was kept for them, of what all statements about leaders may cost."""
        return (self.shares["paired"] + self.shares["lower"]) / (self.n_first + 1)


@dataclass(frozen=True, slots=True)
class ListTable:
    """The table of shares of a list: by rank, with a purse for those who joined later.

    Attributes:
        pilot: Start and ranks.
        late: Those who joined later.
        mode: What delta covers.
    """

    pilot: Pilot
    late: Late
    mode: str

    def begin(self, config: int) -> int:
        """The start of the race, or later for those who joined."""
        return self.late.begin.get(config, self.pilot.start or 0)

    def upper(self, config: int) -> Fraction:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 1 if self.mode == "selection" else self.late.n_first
        return self.late.shares["upper"] / union if config < self.late.n_first else self._of_purse(_LATE_UPPER, config)

    def duel(self, leader: int, config: int) -> Fraction | None:
        """By the weight of the leader, and by that of a challenger who joined."""
        if self.pilot.start is None:
            return None
        late = self.late
        if leader < late.n_first:
            whole = late.shares["paired"] if config < late.n_first else _LATE_PAIRED * late.purse
            return whole * self.pilot.weight(leader) * late.weight(config)
        part = _LEADS if config < late.n_first else _AMONG
        return self._of_purse(part, leader) * late.weight(config)

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction]:
        """The warm start counts for the upper end, so its share is divided by all, whatever their ranks."""
        if leader < self.late.n_first:
            lower = None if self.pilot.start is None else self.late.shares["lower"] * self.pilot.weight(leader)
            return lower, self.late.shares["shown"] / self.late.n_first
        lower = None if self.pilot.start is None else self._of_purse(_LATE_LOWER, leader)
        return lower, self._of_purse(_LATE_SHOWN, leader)

    def _of_purse(self, part: Fraction, config: int) -> Fraction:
        return part * self.late.purse * self.late.weight(config)


def read_late(books: Books, start: int | None, shares: dict[str, Fraction]) -> Late:
    """Who joined later, after making sure that they may be judged as they were.

    Args:
        books: What the rows say.
        start: First position of the race; None if it has not begun.
        shares: The shares of delta.
    """
    late = Late(books.n_first, shares)
    if books.n_first == books.n_configs:
        return late
    told = _told(books)
    seen = _seen(books)
    for config in range(books.n_first, books.n_configs):
        runs = books.runs[config]
        if config not in told:
            if runs:
                raise LedgerDamaged(
                    f"configuration {config} joined later and has runs, but where it begins is not told"
                )
            continue
        row, position = told[config]
        if start is None or position < start or position < seen[config]:
            raise LedgerDamaged(
                f"configuration {config} joined when positions up to {seen[config]} had been run, and begins at "
                f"{position}: the user who added it may have seen what it is judged on"
            )
        first = min((run.began for run in runs.values()), default=row + 1)
        if first < row or sorted(runs) != list(range(position, position + len(runs))):
            raise LedgerDamaged(
                f"configuration {config} joined later and has to run all positions from {position} on, after row {row} "
                "said so; it did not"
            )
        late.begin[config] = position
    late.account.append(
        f"{books.n_configs - books.n_first:,} joined later: judged on positions that had no run by then"
    )
    return late


def _told(books: Books) -> dict[int, tuple[int, int]]:
    """By configuration, in which row its first position was written down, and which it is."""
    told: dict[int, tuple[int, int]] = {}
    for note in books.notes:
        joined: Any = note.facts.get("joined", ()) if note.kind == "facts" else ()
        for config, position in joined:
            if told.setdefault(int(config), (note.sequence, int(position)))[1] != int(position):
                raise LedgerDamaged(f"row {note.sequence} lets configuration {config} begin elsewhere than before")
    return told


def _seen(books: Books) -> dict[int, int]:
    """Return, by configuration that joined, the first position without a started run when it was added."""
    config, seen = books.n_first, {}
    for note in additions(books):
        for _ in listed(note):
            seen[config] = frontier(books, note.sequence)
            config += 1
    if config < books.n_configs:
        joined = books.n_configs - books.n_first
        raise LedgerDamaged(f"{joined} configurations joined later, but only {len(seen)} were added")
    return seen


def additions(books: Books) -> list[Noted]:
    """The notes in which configurations were added."""
    return [note for note in books.notes if note.kind == "configurations"]


def listed(note: Noted) -> list[object]:
    """Who was added."""
    entries = note.facts.get("list")
    return entries if isinstance(entries, list) else []


def first_of(books: Books) -> Books:
    """The same books with those only who were there from the start."""
    n = books.n_first
    return Books(
        n_configs=n,
        runs=books.runs[:n],
        ordered=books.ordered[:n],
        notes=books.notes,
        positions=books.positions,
        at_first_race_order=books.at_first_race_order[:n],
    )
