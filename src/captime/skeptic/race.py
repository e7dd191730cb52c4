"""The race, proved again: for every challenger one of the two reasons why it cannot be better by more than epsilon.

What the proof (docs/random-captimes.md) needs is checked, not how the engine came to its decisions: draws by position,
intervals by state, prefixes without gaps, who takes part decided in time, one start and one prior written down before
the first run that they govern. Then the claim is shown with the documented bets at the documented levels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from captime.arrays import FloatArray
from captime.errors import LedgerDamaged
from captime.skeptic import late as late_shares
from captime.skeptic.agreement import Trust
from captime.skeptic.books import Books, Run, story_of, told_in_order
from captime.skeptic.check import Check
from captime.skeptic.directed import Bets, above
from captime.skeptic.late import Late, first_of, read_late
from captime.skeptic.lottery import Lottery
from captime.skeptic.pilot import Pilot, read_pilot
from captime.skeptic.scores import Ends, Scores

# Shares of delta, docs/random-captimes.md step 8. They sum to 1.
UPPER, PAIRED, LOWER, SHOWN, SCOUT = (Fraction(share, 100) for share in (41, 41, 10, 4, 4))
_SHARES = {"upper": UPPER, "paired": PAIRED, "lower": LOWER, "shown": SHOWN, "scout": SCOUT}
_MEANS, _LEADS = Bets.documented(24), Bets.documented(16)
_BOOST, _MODE = 1.25, "selection"
# The scout's champion is chosen before any run has been started on this position; its bound uses what comes from here.
_SCOUT_START = 16


@dataclass(slots=True)
class RaceCheck(Check):
    """A check of one certificate of a race."""

    _scores: Scores = field(init=False)
    _late: Late = field(init=False)

    def __post_init__(self) -> None:
        self._scores = Scores(self.books, self._lottery())

    def check(self) -> None:
        """Refuse the certificate if the rows do not support it."""
        self._check_terms()
        begun = first_of(self.books)
        pilot = read_pilot(begun, self._mode, self._middle, self._known_at_ranking())
        if not pilot.ordered:
            self.left_open[Trust.ORDERS] = (
                "its orders are not on record, so the rows do not show who took part in the warm start, nor that start "
                "and ranking of the race follow from it"
            )
        self._late = read_late(self.books, pilot.start)
        self.account += [*pilot.account, *self._late.account, self._scores.check_captimes()]
        if self.held.epsilon >= 1.0 or self.books.n_configs == 1:
            self.account.append("the certificate claims nothing about others yet")
            self._check_interval(self._lower(pilot))
            return
        lower = self._lower(pilot)
        self._check_everyone(pilot, lower)
        self._check_interval(lower)

    # ------------------------------------------------------------------ terms

    @property
    def _mode(self) -> str:
        return str(self.question.options.get("mode", _MODE))

    @property
    def _boost(self) -> float:
        return float(self.question.options.get("boost", _BOOST))

    def _lottery(self) -> Lottery:
        return Lottery(self.question.utility, self.question.seed, self._boost)

    def _check_terms(self) -> None:
        held = self.held
        if held.n_configs != self.books.n_configs:
            raise LedgerDamaged(
                f"the certificate speaks of {held.n_configs} configurations, and {self.books.n_configs} are registered"
            )
        if Fraction(held.delta) != self.question.delta:
            raise LedgerDamaged(f"the certificate's delta is {held.delta}, but {float(self.question.delta)} was asked")
        if held.gamma is not None:
            raise LedgerDamaged(f"the certificate leaves out a share of {held.gamma}, but a race is about a list")
        if held.mode != self._mode:
            raise LedgerDamaged(f"the certificate's mode is {held.mode}, but {self._mode} was asked for")
        if self._mode != "selection" and self.books.n_first < self.books.n_configs:
            raise LedgerDamaged(f"configurations joined later, but mode {self._mode} has no share of delta for them")
        for note in self.books.notes:
            self._check_facts(note.facts if note.kind == "facts" else {})
        told = {name: Fraction(repr(share)) for name, share in held.shares}
        if told != _SHARES:
            raise LedgerDamaged(f"the certificate shares delta out as {dict(held.shares)}, which is not documented")

    def _check_facts(self, facts: Mapping[str, object]) -> None:
        """What the engine said about its own terms is what is documented, or was asked for."""
        mine = {
            "mode": self._mode,
            "boost": self._boost,
            "nodes": len(_MEANS.shares),
            "fractions": len(_LEADS.shares),
        }
        for name, value in mine.items():
            if facts.get(name, value) != value:
                raise LedgerDamaged(f"the race says that its {name} is {facts[name]}; documented or asked is {value}")

    def _level(self, share: Fraction, weight: Fraction = Fraction(1)) -> Fraction:
        """1 / failure probability of a statement."""
        return 1 / (share * self.question.delta * weight)

    def _level_of(self, own: Fraction, part: Fraction, config: int, weight: Fraction = Fraction(1)) -> Fraction:
        """1 / failure probability of a statement about one configuration.

        Args:
            own: Share of delta, if it was there from the start.
            part: Part of the purse, if it joined later.
            config: Which.
            weight: What else divides either of them.
        """
        if config < self._late.n_first:
            return self._level(own, weight)
        return self._level(part * self._late.purse(PAIRED + LOWER), self._late.weight(config))

    def _duel_level(self, config: int, pilot: Pilot) -> Fraction:
        """1 / failure probability of the leader's duel with a challenger."""
        leader, late = self.held.config, self._late
        purse, weight = late.purse(PAIRED + LOWER), late.weight(config)
        if leader < late.n_first:
            share = PAIRED if config < late.n_first else late_shares.PAIRED * purse
            return self._level(share, pilot.weight(leader) * weight)
        share = late_shares.LEADS if config < late.n_first else late_shares.AMONG
        return self._level(share * purse, late.weight(leader) * weight)

    # ------------------------------------------------------------------ the claim

    def _of(self, config: int) -> Ends:
        return self._scores.of(config)

    def _middle(self, config: int) -> FloatArray:
        """Scores by position; a run that was cut counts as the middle of what it may be worth."""
        ends = self._of(config)
        return (ends.low + ends.high) / 2.0

    def _known_at_ranking(self) -> list[Callable[[int], FloatArray]]:
        """Scores by position, as they may have been known when the race began; what was open or cut counts half."""
        recorded, window = self.books.at_first_race_order, self.question.window
        known = [recorded] if window is None else list(told_in_order(recorded, window))
        if not known:
            raise LedgerDamaged(f"when the race began, more runs were open than the window of {window} allows")
        return [partial(self._scores_of, each) for each in known]

    def _scores_of(self, known: Sequence[Mapping[int, Run]], config: int) -> FloatArray:
        story = story_of(known[config])
        low, high = self._lottery().intervals(story)
        ordered = max((n for _, n, first in self.books.ordered[config] if first == 0), default=0)
        missing = np.full(max(0, ordered - len(story)), 0.5)
        return np.concatenate(((low + high) / 2.0, missing))

    def _lower(self, pilot: Pilot) -> float:
        """What is shown of the leader alone, at the level of its rank."""
        if pilot.start is None:
            return 0.0
        leader = self.held.config
        weight = pilot.weight(leader) if leader < self._late.n_first else Fraction(1)
        wanted = self._level_of(LOWER, late_shares.LOWER, leader, weight)
        return _MEANS.lower_bound(self._of(leader).since(pilot.start).low, wanted)

    def _scouted(self) -> float:
        """What is shown of the leader alone, if it was the scout's champion."""
        if _first_started_from(self.books, _SCOUT_START) != self.held.config:
            return 0.0
        ends = self._of(self.held.config)
        place = np.flatnonzero(ends.story.position >= _SCOUT_START)
        unbroken = ends.story.position[place] == _SCOUT_START + np.arange(len(place))
        return _MEANS.lower_bound(ends.low[place[np.logical_and.accumulate(unbroken)]], self._level(SCOUT))

    def _check_everyone(self, pilot: Pilot, lower: float) -> None:
        bound = float(np.nextafter(lower + self.held.epsilon, -1.0))
        union = Fraction(1) if self._mode == "selection" else Fraction(1, self._late.n_first)
        by_bound, by_duel = 0, 0
        for config in range(self.books.n_configs):
            if config == self.held.config:
                continue
            if _MEANS.shows_at_most(
                self._of(config).high, bound, self._level_of(UPPER, late_shares.UPPER, config, union)
            ):
                by_bound += 1
            elif self._wins_duel(config, pilot):
                by_duel += 1
            else:
                scouted = self._scouted()
                if np.nextafter(scouted + self.held.epsilon, -1.0) >= 1.0:
                    self.account.append(
                        "the recommended configuration is within epsilon of the best possible, 1: "
                        f"at least {scouted:.4f}"
                    )
                    return
                raise LedgerDamaged(
                    f"the certificate says that no configuration is better than number {self.held.config} by more than "
                    f"{self.held.epsilon!r}, but the rows do not show it for configuration {config}"
                )
        self.account.append(
            f"number {self.held.config} is within {self.held.epsilon:.6g} of all others: {by_bound:,} shown by bounds, "
            f"{by_duel:,} by duels"
        )

    def _wins_duel(self, config: int, pilot: Pilot) -> bool:
        if pilot.start is None:
            return False
        begin = max(self._late.begin.get(each, pilot.start) for each in (config, self.held.config))
        challenger, leader = self._of(config).since(begin), self._of(self.held.config).since(begin)
        # A position that one of them has not run yet counts from 0 to 1, like every run without an outcome.
        longest = max(len(challenger.high), len(leader.low))
        high = np.concatenate((challenger.high, np.ones(longest - len(challenger.high))))
        low = np.concatenate((leader.low, np.zeros(longest - len(leader.low))))
        differences = np.minimum(above(high - low), 1.0)
        return _LEADS.shows_no_lead(differences, self.held.epsilon, self._duel_level(config, pilot))

    def _check_interval(self, lower: float) -> None:
        held = self.held
        if held.utility_low > max(lower, 0.0) and held.utility_low > self._scouted():
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at least {held.utility_low!r}; the rows show "
                f"{lower!r}"
            )
        wanted = self._level_of(SHOWN, late_shares.SHOWN, held.config, Fraction(1, self._late.n_first))
        if not _MEANS.shows_at_most(self._of(held.config).high, held.utility_high, wanted):
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at most {held.utility_high!r}, which the "
                "rows do not show"
            )
        self.account.append(f"its expected utility is between {held.utility_low:.6g} and {held.utility_high:.6g}")


def _first_started_from(books: Books, position: int) -> int | None:
    """Who was started first on that position or a later one."""
    first: tuple[int, int] | None = None
    for config, began in _starts_from(books, position):
        if first is None or began < first[0]:
            first = (began, config)
    return None if first is None else first[1]


def _starts_from(books: Books, position: int) -> Iterator[tuple[int, int]]:
    for config, runs in enumerate(books.runs):
        for where, run in runs.items():
            if where >= position:
                yield config, run.began
