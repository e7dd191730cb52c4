"""A claim about exactly the instances of a set, proved again from the rows: bets without replacement, certain bounds.

What the proof (docs/fixed-sets.md) needs is checked: an order that the seed gives, prefixes without gaps, a ranking
and a first position that were written down before the first run they govern, and utilities, not scores, in all sums.
Then the claim is shown with the documented bets at the documented levels, every rounding on the safe side.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate, Population
from captime.errors import LedgerDamaged
from captime.skeptic.agreement import Trust
from captime.skeptic.books import Run, Story, story_of, told_in_order
from captime.skeptic.check import Check, check_prefix
from captime.skeptic.directed import Bets, above, below

# Shares of delta, docs/fixed-sets.md step 6. They sum to 1, for each of the two claims.
PAIRED, LATE, LOWER, SHOWN = (Fraction(share, 100) for share in (90, 4, 3, 3))
_SHARES = {"paired": PAIRED, "late": LATE, "lower": LOWER, "shown": SHOWN}
_BETS = Bets.documented(12)
# Differences are rounded up to multiples of this, so that their sums are exact.
_GRAIN = 2.0**40
# The engine rounds to the nearest: what it claims may be stronger than what holds by less than this.
_SLACK = 1e-9
# Means of middles are rounded; nearer ones are equal.
_TIE = 1e-9
# The two claims of a certificate, as notes of the ledger and as the account name them.
_CLAIMS = {"set": "claim about these instances", "drawn": "claim about more like them"}


class ShareTable(Protocol):
    """Where bets of one of the two claims begin, and which share of delta pays for each; None where none does."""

    def begin(self, config: int) -> int:
        """Return the first position that counts for a configuration."""
        ...

    def duel(self, leader: int, config: int) -> Fraction | None:
        """Return the share of delta that pays for a duel."""
        ...

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction | None]:
        """Return the shares of delta that pay for the two ends of the interval."""
        ...


@dataclass(frozen=True, slots=True)
class _Terms:
    """The table of a list: first position and ranking, and where configurations that came later begin."""

    start: int
    ranking: tuple[int, ...]
    joined: tuple[tuple[int, int], ...]

    def begin(self, config: int) -> int:
        return next((position for each, position in self.joined if each == config), self.start)

    def late(self, config: int) -> int:
        """Return k for the k-th configuration that came later, 0 for the others."""
        return next((number for number, (each, _) in enumerate(self.joined, start=1) if each == config), 0)

    def weight(self, config: int) -> Fraction:
        late = self.late(config)
        if late:
            return Fraction(1, late * (late + 1))
        rank = self.ranking.index(config)
        return Fraction(2, 5 * rank * (rank + 1)) if rank else Fraction(3, 5)

    def duel(self, leader: int, config: int) -> Fraction:
        late = self.late(config)
        if not late and not self.late(leader):
            return self.weight(leader) * PAIRED
        return self.weight(leader) * LATE / 3 * (Fraction(1, late * (late + 1)) if late else 1)

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction | None]:
        if self.late(leader):
            return None, None
        return self.weight(leader) * LOWER, self.weight(leader) * SHOWN


@dataclass(slots=True)
class SetCheck(Check):
    """A check of one certificate about exactly the instances of a set, and of the other claim it carries.

    The claims of a race are checked here, with the table of shares of a list. `captime.skeptic.set_pool` has another
    table.
    """

    _low: FloatArray = field(init=False)
    _high: FloatArray = field(init=False)
    _length: list[int] = field(init=False)

    def check(self) -> None:
        """Refuse the certificate if the rows do not support it."""
        size = self._check_size()
        stories = [self.books.story(config) for config in range(self.books.n_configs)]
        self._low, self._high = np.zeros((len(stories), size)), np.ones((len(stories), size))
        self._length = [len(story) for story in stories]
        for config, story in enumerate(stories):
            check_prefix(config, story)
            self._low[config, : len(story)], self._high[config, : len(story)] = self._ends(story)
        self.account.append("every configuration ran the first positions of the random order, none was stepped over")
        of_set, drawn = self._tables(size)
        self._check_claim(self.held, of_set, size)
        if self.held.other is not None:
            self._check_claim(self.held.other, drawn, None)

    # ------------------------------------------------------------------ terms

    def _check_size(self) -> int:
        """Return the number of instances, after making sure that it is the length of the stream."""
        lengths = [int(str(note.facts["length"])) for note in self.books.notes if note.kind == "instances"]
        told = lengths[-1] if lengths else self.question.length
        size = self.held.instances
        if size is None or told is None or size != told:
            raise LedgerDamaged(f"the certificate is about {size} instances, but the stream has {told}")
        if self.question.sampling != "shuffle":
            raise LedgerDamaged(
                f"the certificate is about exactly these instances, but they were taken by sampling "
                f"{self.question.sampling!r}, whose order is not uniformly random"
            )
        return size

    def _ends(self, story: Story) -> tuple[FloatArray, FloatArray]:
        """Return low and high ends of the utilities of all runs."""
        answered = ~np.isnan(story.runtime)
        worth = np.asarray(self.question.utility(np.where(answered, story.runtime, story.seen)), dtype=np.float64)
        return worth * answered, np.where(story.failed, 0.0, worth)

    def _tables(self, size: int) -> tuple[ShareTable | None, ShareTable | None]:
        """Return the terms of both claims, after making sure that they were fixed in time."""
        found: dict[str, _Terms | None] = {"set": None, "drawn": None}
        for name in ("set", "drawn"):
            first: dict[tuple[int, int, tuple[int, ...]], int] = {}
            for note in self.books.notes:
                if note.kind != "facts" or name not in note.facts:
                    continue
                terms = _terms_of(note.facts[name])
                about = int(str(note.facts["instances"])) if name == "set" else 0
                first.setdefault((about, terms.start, terms.ranking), note.sequence)
                if about in (0, size):
                    found[name] = terms
            held = found[name]
            if held is None:
                continue
            abouts = [about for about, _, _ in first]
            if len(set(abouts)) != len(abouts):
                raise LedgerDamaged(f"the ranking of the claim {name!r} was changed on the way: it has to stay")
            sequence = first[size if name == "set" else 0, held.start, held.ranking]
            self._check_in_time(name, held, sequence)
            self._check_ranking(name, held, sequence)
            self._check_joined(held)
        of_set, before = found["set"], self._size_before()
        if of_set is not None and of_set.start < before:
            raise LedgerDamaged(
                f"bets about the larger set begin at position {of_set.start}, among the {before} instances that "
                "were there before: their order is not uniform over the larger set"
            )
        return found["set"], found["drawn"]

    def _size_before(self) -> int:
        """Return how many instances there were before the last ones were added; 0 if none were added."""
        added = [int(str(note.facts["length"])) for note in self.books.notes if note.kind == "instances"]
        return (self.question.length or 0, *added)[-2] if added else 0

    def _check_in_time(self, name: str, terms: _Terms, sequence: int) -> None:
        ranked = sorted([*terms.ranking, *(config for config, _ in terms.joined)])
        if ranked != list(range(self.books.n_configs)):
            raise LedgerDamaged(f"the ranking names {len(ranked)} of {self.books.n_configs} configurations")
        for config, runs in enumerate(self.books.runs):
            for position, run in runs.items():
                if position >= terms.start and run.began < sequence:
                    raise LedgerDamaged(
                        f"row {run.began} starts configuration {config} on position {position}, before row {sequence} "
                        f"fixed the ranking for positions from {terms.start} on"
                    )
        self.account.append(
            f"{_CLAIMS[name]}: start (position {terms.start}) and ranking were written down before the first run there"
        )

    def _check_ranking(self, name: str, terms: _Terms, sequence: int) -> None:
        """Check that a ranking follows from what was known of the first positions when it was written down."""
        if not self.books.asked:
            self.left_open[Trust.ORDERS] = (
                "its orders are not on record, so the rows do not show on which positions the ranking was made"
            )
            return
        known = self.books.at_ranking.get(sequence)
        if known is None:
            raise LedgerDamaged(f"row {sequence} fixes the ranking of the claim {name!r} without that of the set")
        last_start, runs = known
        window = self.question.window
        # With a fixed order of outcomes the ledger may have known more than the procedure had been told.
        told = [runs] if window is None else list(told_in_order(runs, window))
        if not told:
            raise LedgerDamaged(
                f"when row {sequence} was written, more runs were open than the window of {window} allows"
            )
        tried = [(length, each) for length in self._lengths_at(terms, last_start, sequence) for each in told]
        wrong = [self._misplaced(terms, each, length) for length, each in tried]
        if all(wrong):
            raise LedgerDamaged(f"the ranking of the claim {name!r} {wrong[0]}: it was changed")
        used, _ = tried[wrong.index("")]
        self.account.append(f"{_CLAIMS[name]}: the ranking follows from the first {used} positions")

    def _lengths_at(self, terms: _Terms, last_start: int, sequence: int) -> list[int]:
        """Return on how many first positions a ranking may have been made, the largest number first.

        They are those that all configurations had been told to run. A ranking is written down before the next run
        starts, but orders may have followed it by then: each number since the last start is possible.
        """
        orders = [self.books.ordered[config] for config in terms.ranking]
        rows = {row for told in orders for row, _, _ in told if last_start < row < sequence}
        return sorted(
            {
                max(1, min((max((n for row, n, _ in told if row < moment), default=0) for told in orders), default=0))
                for moment in (*rows, sequence)
            },
            reverse=True,
        )

    def _misplaced(self, terms: _Terms, runs: list[dict[int, Run]], length: int) -> str:
        """Return which configuration stands before a better one, by what was known of these positions; empty if none.

        Args:
            terms: They have the ranking.
            runs: What was known.
            length: Number of positions that the ranking was made on.
        """
        means = [self._means_at(runs[config], length) for config in terms.ranking]
        return next(
            (
                f"has configuration {terms.ranking[place]} before {terms.ranking[place + 1]}, which had done better on "
                f"the first {length} positions"
                for place, ((_, most), (least, _)) in enumerate(pairwise(means))
                if most < least - _TIE
            ),
            "",
        )

    def _means_at(self, known: Mapping[int, Run], length: int) -> tuple[float, float]:
        """Return between which ends the mean of the middles on the first positions was, as far as that is known.

        A run that was under way counts with anything from 0 to the middle of 0 and 1.
        """
        least = most = 0.0
        for position in range(length):
            run = known.get(position)
            if run is None or not run.settled:
                most += 0.5
                continue
            low, high = (float(each[0]) for each in self._ends(story_of({position: run})))
            ends = [0.5 * (low + high)]
            if low < high and math.isfinite(run.captime):
                # A run that was stopped counts with its captime, or with the time after which it was stopped.
                ends.append(0.5 * float(self.question.utility(np.array(run.captime))))
            least, most = least + min(ends), most + max(ends)
        return least / length, most / length

    def _check_joined(self, terms: _Terms) -> None:
        registered = {row.index: sequence for sequence, row in self.books.configs}
        for config, position in terms.joined:
            seen = max(
                (
                    where + 1
                    for runs in self.books.runs
                    for where, run in runs.items()
                    if run.began < registered[config]
                ),
                default=0,
            )
            if position < seen or position < terms.start:
                raise LedgerDamaged(
                    f"configuration {config} was added when positions up to {seen} had been run, and its bets begin at "
                    f"{position}: it may have been chosen with a look at what it is judged on"
                )

    # ------------------------------------------------------------------ the claims

    def _fits(self, held: Certificate) -> bool:
        """Return whether a claim is made under documented terms."""
        told = {name: Fraction(repr(share)) for name, share in held.shares}
        return held.n_configs == self.books.n_configs and held.gamma is None and told == _SHARES

    def _check_claim(self, held: Certificate, table: ShareTable | None, size: int | None) -> None:
        """Check one of the two claims; `size` is None for the one about the distribution."""
        about = Population.DRAWN if size is None else Population.THESE
        fits = (
            self._fits(held)
            and Fraction(held.delta) == self.question.delta
            and held.mode == "selection"
            and held.population == about
            and held.config == self.held.config
        )
        if not fits:
            raise LedgerDamaged(f"the claim about the instances {about} has terms that are not documented: {held}")
        if size is not None:
            # With a fixed order of outcomes, the ledger may know more than the procedure had been told.
            known = int(np.count_nonzero(self._low[held.config] == self._high[held.config]))
            if held.instances_run is None or held.instances_run > known:
                raise LedgerDamaged(
                    f"the certificate counts {held.instances_run} instances known exactly; the rows show {known}"
                )
        where = "the distribution of the instances" if size is None else f"exactly these {size:,} instances"
        if held.epsilon < 1.0:
            self.account.append(f"{self._check_epsilon(held, table, size)} on {where} (up to {_SLACK:g} of rounding)")
        else:
            self.account.append(f"nothing is claimed about others on {where} yet")
        self._check_interval(held, table, size)

    def _check_epsilon(self, held: Certificate, table: ShareTable | None, size: int | None) -> str:
        """Check that no configuration of the claim is better by more than epsilon; return what was found."""
        for config in range(held.n_configs):
            if config != held.config and not self._shown(config, held, table, size):
                raise LedgerDamaged(
                    f"the certificate says that no configuration is better than number {held.config} by more than "
                    f"{held.epsilon!r} ({held.population}), but the rows do not show it for configuration {config}"
                )
        return f"number {held.config} is within {held.epsilon:.6g} of every other one"

    def _certain(self, config: int, leader: int) -> float:
        """Return by how much a configuration can be ahead of another one on the set, for certain."""
        return (math.fsum(self._high[config]) - math.fsum(self._low[leader])) / len(self._low[leader])

    def _shown(self, config: int, held: Certificate, table: ShareTable | None, size: int | None) -> bool:
        margin = held.epsilon + _SLACK
        if size is not None and self._certain(config, held.config) <= margin:
            return True
        if table is None:
            return False
        if self._wins(held.config, config, margin, table, size):
            return True
        if size is None:
            return False
        # By what a former leader has shown, if that one is not ahead of the recommended one by too much for certain.
        return any(
            self._wins(former, config, margin - ahead, table, size)
            for former in range(self.books.n_configs)
            if former not in (config, held.config) and (ahead := self._certain(former, held.config)) <= margin
        )

    def _wins(self, leader: int, config: int, margin: float, table: ShareTable, size: int | None) -> bool:
        """Return whether the rows show, at some length of the prefix, a lead of less than `margin`."""
        if not 0.0 <= margin < 1.0 + _SLACK:
            return margin >= 1.0
        # A position that only one of the two was run on counts too: the other's utility there is between 0 and 1.
        length = max(self._length[leader], self._length[config])
        begin, share = max(table.begin(leader), table.begin(config)), table.duel(leader, config)
        if length <= begin or share is None:
            return False
        ahead = np.minimum(above(self._high[config, :length] - self._low[leader, :length]), 1.0)
        return _BETS.ever_worth(_paired_factors(ahead, margin, begin, size), 1 / (self.question.delta * share))

    def _check_interval(self, held: Certificate, table: ShareTable | None, size: int | None) -> None:
        """Check both ends of the interval shown; the upper end is a lower end of what is missing to 1."""
        low, high = self._low[held.config], self._high[held.config]
        shares = (None, None) if table is None else table.ends(held.config)
        for word, bound, values, share in (
            ("least", held.utility_low, low, shares[0]),
            ("most", 1.0 - held.utility_high, 1.0 - high, shares[1]),
        ):
            begin = 0 if table is None else table.begin(held.config)
            if not self._at_least(held.config, bound, values, share, begin, size):
                raise LedgerDamaged(
                    f"the certificate says that number {held.config} is worth at {word} "
                    f"{(held.utility_low if word == 'least' else held.utility_high)!r}, which the rows do not show"
                )

    def _at_least(  # noqa: PLR0917 (one statement)
        self, config: int, bound: float, values: FloatArray, share: Fraction | None, begin: int, size: int | None
    ) -> bool:
        """Return whether values with these low ends show a mean of at least `bound`, for certain or by bets."""
        if bound <= (0.0 if size is None else math.fsum(values) / size) + _SLACK:
            return True
        if share is None:
            return False
        length = self._length[config]
        known = np.maximum(below(values[:length]), 0.0)
        mean = np.full(length, bound - _SLACK)
        if size is not None:
            grains = np.floor(known * _GRAIN)
            before = (grains.cumsum() - grains) / _GRAIN
            mean = np.minimum(above(above(above(size * mean) - before) / (size - np.arange(length))), 1.0)
        return _BETS.ever_worth(_factors(known[begin:], mean[begin:]), 1 / (self.question.delta * share))


def _paired_factors(ahead: FloatArray, margin: float, begin: int, size: int | None) -> FloatArray:
    """Return lower ends of the factors 1 - f + f·y/μ, by position and share.

    Args:
        ahead: High ends of the differences of utilities on all positions of the prefix.
        margin: ε.
        begin: The first position that is bet on.
        size: N; None for draws from a distribution.
    """
    length = len(ahead)
    if size is None:
        mean = np.full(length, above(above(np.array(1.0 - margin)) / 2.0))
    else:
        grains = np.ceil(ahead * _GRAIN)
        before = (grains.cumsum() - grains) / _GRAIN
        left = below(below(below(np.array(size * margin)) - before) / (size - np.arange(length)))
        mean = np.minimum(above(above(1.0 - left) / 2.0), 1.0)
    gain = np.maximum(below(below(1.0 - ahead) / 2.0), 0.0)
    return _factors(gain[begin:], mean[begin:])


def _factors(gain: FloatArray, mean: FloatArray) -> FloatArray:
    """Return lower ends of 1 - b + b·x/q; infinite where q is at most 0, since nothing that is left can be so."""
    possible = mean > 0.0
    won = np.where(possible, np.maximum(below(gain / np.where(possible, mean, 1.0)), 0.0), np.inf)
    kept = below(1.0 - _BETS.shares)
    return np.maximum(below(kept + np.maximum(below(won[:, None] * _BETS.shares), 0.0)), 0.0)


def _terms_of(told: Any) -> _Terms:
    if not isinstance(told, Mapping):
        raise LedgerDamaged(f"the terms of a claim are {told!r}; expected a start, a ranking and who joined")
    joined = tuple((int(config), int(position)) for config, position in told["joined"])
    return _Terms(int(told["start"]), tuple(int(config) for config in told["ranking"]), joined)
