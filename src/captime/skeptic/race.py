"""The race, proved again: for every challenger one of the two reasons why it cannot be better by more than epsilon.

What the proof (docs/engine.md) needs is checked, not how the engine came to its decisions: draws by position,
intervals by state, prefixes without gaps, who takes part decided in time, one start and one prior written down before
the first run that they govern. Then the claim is shown with the documented bets at the documented levels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from captime.arrays import FloatArray
from captime.errors import LedgerDamaged
from captime.skeptic.agreement import Trust
from captime.skeptic.books import Run, story_of, told_in_order
from captime.skeptic.claims import LEADS, MEANS, ClaimCheck
from captime.skeptic.late import ListTable, first_of, read_late, shares_of
from captime.skeptic.pilot import read_pilot

_MODE = "selection"
# The scout's champion is chosen before any run has been started on this position; its bound uses what comes from here.
_SCOUT_START = 16


@dataclass(slots=True)
class RaceCheck(ClaimCheck):
    """A check of one certificate of a race."""

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
        late = read_late(self.books, pilot.start, self._shares)
        self.account += [*pilot.account, *late.account]
        self._check_captimes()
        table = ListTable(pilot, late, self._mode)
        lower = self._lower(table)
        if self.held.epsilon >= 1.0 or self.books.n_configs == 1:
            self.account.append("the certificate claims nothing about others yet")
        else:
            self._check_everyone(table, lower, "all others")
        self._check_interval(table, lower)

    # ------------------------------------------------------------------ terms

    @property
    def _mode(self) -> str:
        return str(self.question.options.get("mode", _MODE))

    @property
    def _shares(self) -> dict[str, Fraction]:
        return shares_of(self.books.n_first, self.question.schedule)

    def _check_terms(self) -> None:
        held = self.held
        if held.n_configs != self.books.n_configs:
            raise LedgerDamaged(
                f"the certificate speaks of {held.n_configs} configurations, and {self.books.n_configs} are registered"
            )
        if held.gamma is not None:
            raise LedgerDamaged(f"the certificate leaves out a share of {held.gamma}, but a race is about a list")
        if held.mode != self._mode:
            raise LedgerDamaged(f"the certificate's mode is {held.mode}, but {self._mode} was asked for")
        if self._mode != "selection" and self.books.n_first < self.books.n_configs:
            raise LedgerDamaged(f"configurations joined later, but mode {self._mode} has no share of delta for them")
        for note in self.books.notes:
            self._check_facts(note.facts if note.kind == "facts" else {})
        self._check_delta(self._shares)

    def _check_facts(self, facts: Mapping[str, object]) -> None:
        """What the engine said about its own terms is what is documented, or was asked for."""
        mine = {
            "mode": self._mode,
            "boost": self._boost,
            "nodes": len(MEANS.shares),
            "fractions": len(LEADS.shares),
        }
        for name, value in mine.items():
            if facts.get(name, value) != value:
                raise LedgerDamaged(f"the race says that its {name} is {facts[name]}; documented or asked is {value}")

    # ------------------------------------------------------------------ what was known, and the scout

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
        low, high = self._lottery.intervals(story)
        ordered = max((n for _, n, first in self.books.ordered[config] if first == 0), default=0)
        missing = np.full(max(0, ordered - len(story)), 0.5)
        return np.concatenate(((low + high) / 2.0, missing))

    def _scouted(self) -> float:
        """What is shown of the leader alone, if it was the scout's champion."""
        started = (
            (run.began, config)
            for config, runs in enumerate(self.books.runs)
            for where, run in runs.items()
            if where >= _SCOUT_START
        )
        if min(started, default=(0, None))[1] != self.held.config:
            return 0.0
        ends = self._of(self.held.config)
        place = np.flatnonzero(ends.story.position >= _SCOUT_START)
        unbroken = ends.story.position[place] == _SCOUT_START + np.arange(len(place))
        return MEANS.lower_bound(
            ends.low[place[np.logical_and.accumulate(unbroken)]], self._level(self._shares["scout"])
        )
