"""A growing pool on a fixed set of instances, proved again: the claims of `fixed_set`, with shares by arrival.

What the proof (docs/fixed-sets.md, step 11) needs is checked: random draws as the space and the seed give them, a pilot
whose positions and captime were written down before the first run, ranks that follow from it, and for every proposal a
first position behind everything that had been run when it was made.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from captime.certificate import Certificate
from captime.errors import LedgerDamaged
from captime.skeptic.agreement import Trust
from captime.skeptic.arrivals import Arrival, ArrivalShares, Gammas, arrivals
from captime.skeptic.books import frontier
from captime.skeptic.fixed_set import SetCheck, ShareTable
from captime.skeptic.pool import check_draws

# Shares of delta, docs/fixed-sets.md step 11. They sum to 1, for each of the two claims.
DRAWS, PAIRED, LOWER, SHOWN = (Fraction(share, 100) for share in (40, 47, 10, 3))
_SHARES = {"draws": DRAWS, "paired": PAIRED, "lower": LOWER, "shown": SHOWN}
_GAMMA = 0.1
# Sums of doubles are rounded; nearer sums are equal, and a newcomer stands behind its equals.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """The table of a pool: shares by arrival, and where bets begin.

    Attributes:
        who: All configurations, in the order in which they came.
        shares: Their shares of delta.
        pilot_sums: What the pilot showed of each; None where it is not over.
        start: The first position that counts for listed configurations and random draws.
        begins: The first position that counts for each proposal, if that is later.
    """

    who: list[Arrival]
    shares: ArrivalShares
    pilot_sums: list[float | None]
    start: int
    begins: dict[int, int]

    def begin(self, config: int) -> int:
        return max(self.start, self.begins.get(config, 0))

    def duel(self, leader: int, config: int) -> Fraction | None:
        lead = self._leader(leader)
        return None if lead is None else PAIRED * lead * self.shares.best(self.who[config])

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction | None]:
        lead = self._leader(leader)
        return None if lead is None else LOWER * lead, SHOWN * self.shares.shown(self.who[leader])

    def _leader(self, config: int) -> Fraction | None:
        """Return the share of a configuration as a leader; None while its rank at arrival is not known."""
        who = self.who[config]
        if who.kind != "draw":
            return self.shares.leader(who)
        draws = [place for place, each in enumerate(self.who) if each.kind == "draw"][: who.number]
        sums = [total for place in draws if (total := self.pilot_sums[place]) is not None]
        if len(sums) < len(draws):
            return None
        return self.shares.leader(who, sum(earlier >= sums[-1] - _TIE for earlier in sums[:-1]))


@dataclass(slots=True)
class SetPoolCheck(SetCheck):
    """A check of one certificate of a pool about exactly the instances of a set, and of the other claim it carries."""

    _who: list[Arrival] = field(init=False)
    _gammas: Gammas = field(init=False)

    def _tables(self, size: int) -> tuple[ShareTable | None, ShareTable | None]:  # noqa: ARG002 (a list needs it)
        """Return the shares of both claims, after making sure that they were fixed in time."""
        goal = float(self.question.options.get("gamma", _GAMMA))
        self._who = arrivals(self.books, self.question)
        self._gammas = Gammas(float(DRAWS * self.question.delta), goal)
        check_draws(self, self._who)
        if not self.books.asked:
            self.left_open[Trust.ORDERS] = "its orders are not on record, so the rows do not show what came when"
        n_listed = self.books.n_first if self.question.n_listed is None else self.question.n_listed
        shares = ArrivalShares(self.question, self._gammas, goal, n_listed)
        positions, captime = self._read_pilot()
        begins = self._read_begins(positions)
        sums = [self._pilot_sum(config, positions, captime) for config in range(self.books.n_configs)]
        starts = (max(positions, self._size_before()), positions)
        of_set, drawn = (_Arrivals(self._who, shares, sums, start, begins) for start in starts)
        return of_set, drawn

    def _read_pilot(self) -> tuple[int, float]:
        """Return number of positions and captime of the pilot, after making sure that they were fixed in time."""
        told = {
            (int(facts["positions"]), float(facts["captime"])): note.sequence
            for note in reversed(self.books.notes)
            if note.kind == "facts" and isinstance(facts := note.facts.get("pilot"), dict)
        }
        if len(told) != 1:
            raise LedgerDamaged(f"the pilot of a pool has to be told once and for all; it was told as {sorted(told)}")
        ((positions, captime), sequence) = next(iter(told.items()))
        first = min((run.began for runs in self.books.runs for run in runs.values()), default=sequence + 1)
        if first < sequence or positions < 1 or not captime > 0.0:
            raise LedgerDamaged(f"the pilot of {positions} positions and {captime} s was not told before the first run")
        self.account.append(f"the pilot ({positions} positions, {captime:g} s each) was told before the first run")
        return positions, captime

    def _read_begins(self, pilot: int) -> dict[int, int]:
        """Return where bets on proposals begin, after making sure that no result could have been seen there."""
        begins: dict[int, int] = {}
        rows: dict[int, int] = {}
        for note in self.books.notes:
            told: Any = note.facts.get("begins", ()) if note.kind == "facts" else ()
            for config, position in told:
                rows.setdefault(int(config), note.sequence)
                if begins.setdefault(int(config), int(position)) != int(position):
                    raise LedgerDamaged(f"row {note.sequence} lets configuration {config} begin elsewhere than before")
        for config, who in enumerate(self._who):
            if who.kind != "proposal":
                continue
            runs = self.books.runs[config]
            first = min((run.began for run in runs.values()), default=math.inf)
            if config not in begins:
                if runs:
                    raise LedgerDamaged(f"configuration {config} is a proposal with runs; where it begins is not told")
                begins[config] = len(self._low[config])
                continue
            seen = max(pilot, who.known, frontier(self.books, rows[config]))
            if first < rows[config] or begins[config] < seen:
                raise LedgerDamaged(
                    f"configuration {config} was proposed when positions up to {seen} had been run, and its bets begin "
                    f"at {begins[config]}: it may have been made for what it is judged on"
                )
        self.account.append("bets on proposals begin behind everything run before they were made")
        return begins

    def _pilot_sum(self, config: int, positions: int, captime: float) -> float | None:
        """Return the sum of utilities on the pilot's positions of answers before its captime; None if it is not over.

        A run that was continued later counts as if it had not been.
        """
        worth = []
        for position in range(positions):
            run = self.books.runs[config].get(position)
            if run is None:
                return None
            if run.status == "completed" and not run.flying and run.runtime < captime:
                worth.append(float(self.question.utility(np.array(run.runtime))))
            elif run.status not in ("completed", "failed", "abandoned") and run.seen < captime:
                return None
        return math.fsum(worth)

    # ------------------------------------------------------------------ the claims

    def _fits(self, held: Certificate) -> bool:
        told = {name: Fraction(repr(share)) for name, share in held.shares}
        known = held.n_configs <= self.books.n_configs or held.gamma == 0.0 or held.epsilon >= 1.0
        same = held.gamma == self.held.gamma and held.n_configs == self.held.n_configs
        return held.gamma is not None and told == _SHARES and known and same and held.config < self.books.n_configs

    def _check_epsilon(self, held: Certificate, table: ShareTable | None, size: int | None) -> str:
        if held.gamma == 0.0:
            return self._check_anyone(held, table, size)
        gamma = 1.0 if held.gamma is None else held.gamma
        draws = sum(who.kind == "draw" for who in self._who[: held.n_configs])
        if not self._gammas.shown(gamma, draws):
            raise LedgerDamaged(f"the certificate leaves out a share of {gamma!r}, but {draws} draws do not show that")
        self.account.append(f"{draws:,} random draws miss a share of {gamma:.6g} at most")
        super(SetPoolCheck, self)._check_epsilon(held, table, size)
        return f"number {held.config} is within {held.epsilon:.6g} of the first {held.n_configs:,}"

    def _check_anyone(self, held: Certificate, table: ShareTable | None, size: int | None) -> str:
        """Check that the recommended configuration is within epsilon of the best possible, 1."""
        share = None if table is None else table.ends(held.config)[0]
        begin = 0 if table is None else table.begin(held.config)
        if not self._at_least(held.config, 1.0 - held.epsilon, self._low[held.config], share, begin, size):
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is within {held.epsilon!r} of the best possible, 1 "
                f"({held.population}), which the rows do not show"
            )
        return f"number {held.config} is within {held.epsilon:.6g} of the best possible, 1"
