"""Procedures with captimes on a ladder, proved again: up, oup and naive by Hoeffding's bound, fixed-captimes by bets.

For up and oup the union is over all cells (configuration, n, rung) at once. So every cell that can be read off the rows
may be used, whether the engine looked at it or not; what it certified follows from some of them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from captime.arrays import FloatArray
from captime.errors import LedgerDamaged
from captime.skeptic.books import Story
from captime.skeptic.check import Check, check_prefix
from captime.skeptic.directed import Bets
from captime.skeptic.question import Question

# Scores are rounded to multiples of this, to the safe side, so that their sums are exact integers.
_GRAIN = 2.0**40
# A logarithm and a root err by less than this share.
_ROUNDED = 1.0 + 1e-12
# The engine rounds to the nearest: what it claims may be stronger than what holds by less than this.
SLACK = 1e-9
_RUNGS = 60
_BETS = Bets.documented(24)
# What delta covers, and how it is shared out.
_Covers = tuple[str, tuple[tuple[str, float], ...]]
_COVERS_ALL: _Covers = ("simultaneous", (("intervals", 1.0),))
_COVERS: Mapping[str, _Covers] = {
    "fixed-captimes": ("selection", (("lower bounds", 0.5), ("upper bound of the best", 0.5)))
}


@dataclass(frozen=True, slots=True)
class Cells:
    """How a union bound pays for the cells (n, rung) of one configuration.

    Attributes:
        price: ln(1 / failure probability) by n and level.
        rungs: The captimes, level 0 first.
        only: The one n that may be looked at; None for all.
    """

    price: Callable[[FloatArray, int], FloatArray]
    rungs: FloatArray
    only: int | None = None


def cells_of(question: Question, n_configs: int) -> Cells | str:
    """Return the cells of up, oup or naive, as documented; or why they are not known here."""
    options, delta = question.options, float(question.delta)
    variant = options.get("variant", "paper" if question.procedure == "naive" else "recommended")
    if options.get("bound", "hoeffding") != "hoeffding":
        return f"the bound {options['bound']} has no independent check yet"
    if question.procedure == "naive":
        return _naive_cells(question, n_configs, published=variant == "as-published")
    published = variant == "as-published"
    constant = 4 * 2.705808 if published else 11.0 if int(options.get("events", 4)) == 4 else 2 * 2.7058080843

    def price(n: FloatArray, level: int) -> FloatArray:
        return np.asarray(np.log(constant * n_configs / delta) + 2.0 * np.log(n) + 2.0 * math.log(level + 1))

    top = math.inf if published else min(question.ceiling, question.utility.zero_at)
    doubled = np.ldexp(question.captime_first, np.arange(_RUNGS))
    rungs = doubled if math.isinf(top) else np.concatenate((doubled[doubled < top], np.array([top])))
    return Cells(price, rungs)


def _naive_cells(question: Question, n_configs: int, *, published: bool) -> Cells | str:
    """One captime and one number of samples, both fixed by the goal that was asked for at first."""
    if question.goal is None or question.goal <= 0.0:
        return "its scenario does not say the goal, which fixes how many runs naive makes"
    goal, price = question.goal, math.log(2.0 * n_configs / float(question.delta))
    top = min(question.ceiling, question.utility.zero_at)
    chosen = min(float(question.utility.inverse(np.array(goal / 2.0))), top)
    captime = float(question.options.get("captime", chosen))
    slack = goal - float(question.utility(np.array(captime)))
    if slack <= 0.0:
        return "its captime is too short for its goal"
    exact = 2.0 * price / slack**2
    samples = int(exact) + 1 if published else math.ceil(exact)
    return Cells(lambda n, _: np.full(len(n), price), np.array([captime]), samples)


@dataclass(slots=True)
class FixedCheck(Check):
    """A check of one certificate of a procedure with fixed captimes.

    Attributes:
        why: Why it cannot be checked; empty if it was.
    """

    why: str = ""

    def check(self) -> None:
        """Refuse the certificate if the rows do not support it."""
        held, n_configs = self.held, self.books.n_configs
        if held.n_configs != n_configs or Fraction(held.delta) != self.question.delta:
            raise LedgerDamaged(
                f"the certificate is about {held.n_configs} configurations at delta {held.delta}; the ledger is about "
                f"{n_configs} at {float(self.question.delta)}"
            )
        if held.gamma is not None:
            raise LedgerDamaged(f"the certificate leaves out a share of {held.gamma}, but it is about a list")
        if (held.mode, held.shares) != (documented := _COVERS.get(self.question.procedure, _COVERS_ALL)):
            raise LedgerDamaged(
                f"the certificate's mode is {held.mode}, and it shares delta as {dict(held.shares)}; documented are "
                f"{documented[0]} and {dict(documented[1])}"
            )
        stories = [self.books.story(config) for config in range(n_configs)]
        for config, story in enumerate(stories):
            check_prefix(config, story)
        self.account.append("every configuration ran the first positions of the stream, none stepped over")
        ends = self._by_bets(stories) if self.question.procedure == "fixed-captimes" else self._by_cells(stories)
        if ends is not None:
            self._compare(*ends)

    def _by_cells(self, stories: list[Story]) -> tuple[FloatArray, FloatArray] | None:
        cells = cells_of(self.question, self.books.n_configs)
        if isinstance(cells, str):
            self.why = cells
            return None
        for config, story in enumerate(stories):
            _check_rungs(config, story, cells.rungs)
        self.account.append("every captime is one of the ladder that was fixed beforehand")
        found = [_hoeffding(self.question, story, cells) for story in stories]
        return np.array([low for low, _ in found]), np.array([high for _, high in found])

    def _by_bets(self, stories: list[Story]) -> tuple[FloatArray, FloatArray]:
        n_configs, delta = self.books.n_configs, self.question.delta
        lower, upper = np.zeros(n_configs), np.ones(n_configs)
        for config, story in enumerate(stories):
            answered = ~np.isnan(story.runtime)
            worth = np.asarray(self.question.utility(np.where(answered, story.runtime, story.seen)))
            low, high = worth * answered, np.where(story.failed, 0.0, worth)
            lower[config] = _BETS.lower_bound(low, 2 * n_configs / delta)
            upper[config] = 1.0 - _BETS.lower_bound(np.nextafter(1.0 - high, 0.0), 2 / delta)
        return lower, upper

    def _compare(self, lower: FloatArray, upper: FloatArray) -> None:
        held = self.held
        others = np.delete(upper, held.config)
        gap = float(others.max(initial=0.0)) - float(lower[held.config])
        if held.epsilon < 1.0 and len(others) and gap > held.epsilon + SLACK:
            raise LedgerDamaged(
                f"the certificate says that no configuration is better than number {held.config} by more than "
                f"{held.epsilon!r}, but the rows show {gap!r}"
            )
        low, own = float(lower[held.config]), float(upper[held.config])
        # Where delta pays for the upper bound of the best only, no smaller end than the largest of all is shown.
        shown = float(upper.max()) if self.question.procedure == "fixed-captimes" else own
        if held.utility_low > low + SLACK or held.utility_high < own - SLACK:
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth between {held.utility_low!r} and "
                f"{held.utility_high!r}; the rows show {low!r} to {shown!r}"
            )
        if held.utility_high < shown - SLACK:
            self.why = (
                f"the upper end {held.utility_high:.6g} beside the certificate is the recommended configuration's own "
                f"bound, which delta does not cover: {shown:.6g} is covered. Early ledgers of fixed-captimes show it. "
                f"Epsilon {held.epsilon:.6g} and the lower end {held.utility_low:.6g} follow from the rows"
            )
            return
        self.account.append(
            f"number {held.config} is within {held.epsilon:.6g} of all others, and worth between "
            f"{held.utility_low:.6g} and {held.utility_high:.6g} (up to {SLACK:g} of rounding)"
        )


def _check_rungs(config: int, story: Story, rungs: FloatArray) -> None:
    nearest = rungs[np.minimum(np.searchsorted(rungs, story.captime * (1.0 - SLACK)), len(rungs) - 1)]
    wrong = np.flatnonzero(np.abs(story.captime - nearest) > SLACK * nearest)
    if len(wrong):
        place = wrong[0]
        raise LedgerDamaged(
            f"configuration {config} was given {story.captime[place]!r} s on position {story.position[place]}, which "
            "is not on the ladder of captimes"
        )


def _hoeffding(question: Question, story: Story, cells: Cells) -> tuple[float, float]:
    """The tightest ends of all cells that can be read off a configuration's runs."""
    best_low, best_high = 0.0, 1.0
    answered = ~np.isnan(story.runtime)
    worth = np.asarray(question.utility(np.where(answered, story.runtime, np.inf)))
    for level, captime in enumerate(cells.rungs.tolist()):
        n = np.arange(1, len(story) + 1)
        in_time = answered & (story.runtime < captime)
        floor = float(question.utility(np.array(captime)))
        low = np.where(in_time, worth, 0.0)
        # A run that is not done by its captime, a crash included, counts as an answer just then; one that was seen
        # unfinished and no further (given up, or stopped at an earlier rung) as an answer at that moment.
        late = np.where(answered | story.failed, captime, np.minimum(story.seen, captime))
        high = np.where(in_time, worth, np.asarray(question.utility(late)))
        radius = np.sqrt(cells.price(n.astype(np.float64), level) / (2.0 * n)) * _ROUNDED
        lower = np.floor(low * _GRAIN).astype(np.int64).cumsum() / (_GRAIN * n) - radius
        upper = np.ceil(high * _GRAIN).astype(np.int64).cumsum() / (_GRAIN * n) + (1.0 - floor) * radius
        if cells.only is not None:
            here = n == cells.only
            lower, upper = lower[here], upper[here]
        best_low = max(best_low, float(lower.max(initial=0.0)))
        best_high = min(best_high, float(upper.min(initial=1.0)))
    return best_low, best_high
