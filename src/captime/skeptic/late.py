"""Configurations that joined a race later: judged only on positions without a started run when they were added.

Needed (docs/random-captimes.md, step 9): their choice may rest on every run that had been started by then, so
their first position is behind all of those; it was written down before their first run, and they run on from there
without gaps. Their statements are paid from what the weights of leaders leave over.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from captime.errors import LedgerDamaged
from captime.ledger.rows import Noted
from captime.skeptic.books import Books

# Parts of the purse, docs/random-captimes.md step 9. They sum to 1.
UPPER, PAIRED, LEADS, AMONG, LOWER, SHOWN = (Fraction(share, 100) for share in (25, 30, 15, 15, 10, 5))


@dataclass(slots=True)
class Late:
    """Who joined later.

    Attributes:
        n_first: How many were there from the start.
        begin: First position of each who joined and has one.
        account: What was found, one line each.
    """

    n_first: int
    begin: dict[int, int] = field(default_factory=dict)
    account: list[str] = field(default_factory=list)

    def weight(self, config: int) -> Fraction:
        """The weight of a latecomer, 1 for the others; over all latecomers these sum to at most 1."""
        number = config - self.n_first + 1
        return Fraction(1, number * (number + 1)) if number > 0 else Fraction(1)

    def purse(self, leaders: Fraction) -> Fraction:
        """The share of delta that was kept for them, of what all statements about leaders may cost."""
        return leaders / (self.n_first + 1)


def read_late(books: Books, start: int | None) -> Late:
    """Who joined later, after making sure that they may be judged as they were.

    Args:
        books: What the rows say.
        start: First position of the race; None if it has not begun.
    """
    late = Late(books.n_first)
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
        frontier = max(
            (where + 1 for runs in books.runs for where, run in runs.items() if run.began < note.sequence), default=0
        )
        for _ in listed(note):
            seen[config] = frontier
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
