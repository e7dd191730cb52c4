"""What a race on a fixed set of instances may claim: duels, certain bounds, and the certificate that follows.

Everything here is about truth and nothing about schedules. docs/fixed-sets.md has the proofs. Two claims come from the
same runs, each with the failure probability delta: one about exactly these instances, and one about the distribution
from which they were drawn, if they are a fair sample.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import PairedBets, mixture_lower, mixture_lower_finite, mixture_upper, mixture_upper_finite
from captime.certificate import Certificate, Population
from captime.tally import Tally

PAIRED, LATE, LOWER, SHOWN = 0.9, 0.04, 0.03, 0.03
"""Shares of delta: duels, duels with configurations that were added later, and the two ends of the interval shown."""
SHARES = (("paired", PAIRED), ("late", LATE), ("lower", LOWER), ("shown", SHOWN))
NODES = 12
"""Number of shares of the wealth that are bet in duels."""


class ShareTable(Protocol):
    """From which positions a claim may bet, and at which levels; levels are ln(1 / failure probability)."""

    def starts(self, n_configs: int) -> IntArray:
        """Return the first position that counts, by configuration."""
        ...

    def log_inverse(self, leader: int, challengers: IntArray, delta: float) -> FloatArray:
        """Return the levels of the duels of a leader; infinite where nothing can be shown by bets."""
        ...

    def log_ends(self, leader: int, delta: float) -> tuple[float, float]:
        """Return the levels of the two ends of the leader's interval; infinite where bets do not count for them."""
        ...


@dataclass(slots=True)
class Standing:
    """The table of shares of a list: a ranking that is made once, and a reserve for configurations that are added.

    It is fixed before a run on the positions that count starts.

    Attributes:
        start: The first position that counts for configurations of the ranking.
        ranking: Configurations, best first, by what earlier positions showed.
        joined: Configurations that were added since, each with the first position that counts for it.
    """

    start: int
    ranking: IntArray
    joined: list[tuple[int, int]]

    def starts(self, n_configs: int) -> IntArray:
        """Return the first position that counts, by configuration."""
        starts = np.full(n_configs, self.start, dtype=np.int64)
        for config, position in self.joined:
            starts[config] = position
        return starts

    def log_weight(self, config: int) -> float:
        """Return ln(1 / weight) of a leader.

        The weight is 3/5 for the first of the ranking, 2 / (5 r(r + 1)) for rank r counted from 0, and 1 / (k(k + 1))
        for the k-th that was added.
        """
        late = self._late(config)
        if late:
            return math.log(late * (late + 1.0))
        rank = int(np.flatnonzero(self.ranking == config)[0])
        return math.log(2.5 * rank * (rank + 1.0)) if rank else math.log(5.0 / 3.0)

    def _late(self, config: int) -> int:
        """Return k for the k-th configuration that was added, 0 for the others."""
        return next((number for number, (each, _) in enumerate(self.joined, start=1) if each == config), 0)

    def log_inverse(self, leader: int, challengers: IntArray, delta: float) -> FloatArray:
        """Return ln(1 / failure probability) of the duels of a leader."""
        lead, lead_late = self.log_weight(leader), self._late(leader) > 0
        levels = np.empty(len(challengers))
        for place, config in enumerate(challengers.tolist()):
            late = self._late(config) if self.joined else 0
            if not late and not lead_late:
                levels[place] = lead - math.log(PAIRED * delta)
            else:
                levels[place] = lead - math.log(LATE / 3.0 * delta) + (math.log(late * (late + 1.0)) if late else 0.0)
        return levels

    def log_ends(self, leader: int, delta: float) -> tuple[float, float]:
        """Return the levels of the two ends of the leader's interval; infinite for configurations added later."""
        if self._late(leader):
            return math.inf, math.inf
        weight = self.log_weight(leader) - math.log(delta)
        return weight - math.log(LOWER), weight - math.log(SHOWN)


class SetClaims:
    """What is known of every configuration on every instance of a set, and what follows from it.

    Args:
        n_configs: Number of configurations.
        population: N, the number of instances.
        delta: Allowed probability that a claim is wrong, for each of the two claims.
        shares: How delta is spent, as certificates name it.

    Attributes:
        low: Low ends of utilities, by configuration and position; 0 where nothing was run.
        high: High ends; 1 where nothing was run.
        lengths: Number of positions of the prefix of each configuration.
        set_standing: Shares of the claim about these instances; None before they are fixed.
        drawn_standing: Shares of the claim about the distribution.
    """

    def __init__(
        self, n_configs: int, population: int, delta: float, shares: tuple[tuple[str, float], ...] = SHARES
    ) -> None:
        self.delta = delta
        self.shares = shares
        self.low: FloatArray = np.zeros((n_configs, population))
        self.high: FloatArray = np.ones((n_configs, population))
        self.set_standing: ShareTable | None = None
        self.drawn_standing: ShareTable | None = None
        self.nodes: FloatArray = sine_nodes(NODES)
        self.lengths: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._read: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._level: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._low_sum: FloatArray = np.zeros(n_configs)
        self._high_sum: FloatArray = np.full(n_configs, float(population))
        # Refuted leads, by leader: those on the set for all leaders so far, those in the distribution likewise.
        self._on_set: dict[int, FloatArray] = {}
        self._on_draws: dict[int, FloatArray] = {}

    @property
    def population(self) -> int:
        """Number of instances of the set."""
        return int(self.low.shape[1])

    @property
    def n_configs(self) -> int:
        """Number of configurations."""
        return int(self.low.shape[0])

    # ------------------------------------------------------------------ what is known

    def read(self, tally: Tally, config: int) -> bool:
        """Take in what is known of a configuration; False if nothing is new."""
        if tally.level[config] > self._level[config]:
            # Longer captimes have changed the intervals of earlier positions.
            self._level[config], self._read[config] = tally.level[config], 0
        first, last = int(self._read[config]), int(tally.n[config])
        if last <= first:
            return False
        low, high = tally.samples(config, first, last)
        same = np.array_equal(low, self.low[config, first:last]) and np.array_equal(high, self.high[config, first:last])
        self._read[config] = min(last, int(tally.settled[config]))
        if same:
            return False
        self.low[config, first:last], self.high[config, first:last] = low, high
        self.lengths[config] = last
        # Correctly rounded, so that equal sums are equal and a smaller sum is never the larger number.
        self._low_sum[config] = math.fsum(self.low[config].tolist())
        self._high_sum[config] = math.fsum(self.high[config].tolist())
        return True

    def exact(self, config: int) -> int:
        """Return on how many instances the utility of a configuration is known exactly."""
        return int(np.count_nonzero(self.low[config] == self.high[config]))

    def certain_leads(self, leader: int) -> FloatArray:
        """Return by how much each configuration can be ahead of the leader on this set, for certain."""
        leads: FloatArray = (self._high_sum - self._low_sum[leader]) / self.population
        return leads

    def middles(self) -> FloatArray:
        """Return the middles of what is known, by configuration and position."""
        return 0.5 * (self.low + self.high)

    # ------------------------------------------------------------------ duels

    def _bets(self, leader: int, challengers: IntArray, standing: ShareTable, population: Population) -> PairedBets:
        length = int(min(self.lengths[leader], self.lengths[challengers].max(initial=0)))
        differences = self.high[challengers, :length] - self.low[leader, :length]
        starts = np.maximum(standing.starts(self.n_configs)[challengers], standing.starts(self.n_configs)[leader])
        place = np.arange(length)
        counts = (place >= starts[:, None]) & (place < self.lengths[challengers][:, None])
        log_inverse = standing.log_inverse(leader, challengers, self.delta)
        if population is Population.THESE:
            return PairedBets.on_set(differences, self.population, counts, log_inverse, self.nodes)
        return PairedBets.on_draws(differences, counts, log_inverse, self.nodes)

    def duel(self, leader: int, challengers: IntArray, goal: float) -> None:
        """Weigh the evidence of a leader against challengers, about these instances."""
        held = self._on_set.setdefault(leader, np.ones(self.n_configs))
        rivals = challengers[challengers != leader]
        if self.set_standing is not None and len(rivals):
            bets = self._bets(leader, rivals, self.set_standing, Population.THESE)
            held[rivals] = bets.margins(held[rivals], goal)

    def duel_on_draws(self, leader: int, goal: float) -> FloatArray:
        """Weigh the evidence about the distribution; return by how much each may be ahead of the leader there."""
        held = self._on_draws.setdefault(leader, np.ones(self.n_configs))
        rivals = np.delete(np.arange(self.n_configs), leader)
        if self.drawn_standing is not None and len(rivals):
            bets = self._bets(leader, rivals, self.drawn_standing, Population.DRAWN)
            held[rivals] = bets.margins(held[rivals], goal)
        held[leader] = 0.0
        return held

    def leads(self, leader: int) -> FloatArray:
        """Return by how much each configuration may be ahead of the leader on these instances.

        What a former leader b has shown counts too, with what b can be ahead of this one for certain: if the best
        configuration is at most e ahead of b, and b at most c ahead of the leader, then the best is at most e + c.
        """
        certain = self.certain_leads(leader)
        best = certain.copy()
        for former, held in self._on_set.items():
            ahead = 0.0 if former == leader else float(certain[former])
            np.minimum(best, held + ahead, out=best)
        best = np.maximum(best, 0.0)
        best[leader] = 0.0
        return best

    # ------------------------------------------------------------------ changes on the way

    def enter(self, count: int) -> None:
        """Make room for more configurations."""
        size = self.population
        self.low = np.concatenate((self.low, np.zeros((count, size))))
        self.high = np.concatenate((self.high, np.ones((count, size))))
        nothing = np.zeros(count, dtype=np.int64)
        self.lengths, self._read = np.append(self.lengths, nothing), np.append(self._read, nothing)
        self._level = np.append(self._level, nothing)
        self._low_sum = np.append(self._low_sum, np.zeros(count))
        self._high_sum = np.append(self._high_sum, np.full(count, float(size)))
        for held in (self._on_set, self._on_draws):
            for leader, shown in held.items():
                held[leader] = np.append(shown, np.ones(count))

    def lengthen(self, population: int) -> None:
        """Speak about a larger set from now on: nothing that was shown of the smaller one counts for it."""
        more = population - self.population
        self.low = np.concatenate((self.low, np.zeros((self.n_configs, more))), axis=1)
        self.high = np.concatenate((self.high, np.ones((self.n_configs, more))), axis=1)
        self._high_sum += more
        self._on_set.clear()
        self.set_standing = None

    # ------------------------------------------------------------------ the statement

    def statement(
        self,
        leader: int,
        epsilon: float,
        challenger: int | None,
        other: Certificate | None,
        *,
        interval: tuple[float, float] | None = None,
    ) -> Certificate:
        """Return the claim about these instances.

        Args:
            leader: The recommended configuration.
            epsilon: By how much another one may be ahead of it.
            challenger: The one that may be.
            other: The claim about the distribution.
            interval: Bounds on the leader's mean utility, if they are known already.
        """
        low, high = self.interval(leader) if interval is None else interval
        return Certificate(
            config=leader,
            epsilon=min(1.0, epsilon),
            delta=self.delta,
            n_configs=self.n_configs,
            utility_low=low,
            utility_high=max(low, high),
            challenger=challenger,
            mode="selection",
            shares=self.shares,
            population=Population.THESE,
            instances=self.population,
            instances_run=self.exact(leader),
            other=other,
        )

    def drawn_statement(self, leader: int, goal: float, count: int | None = None) -> Certificate:
        """Return the claim about the distribution, for the same configuration.

        Args:
            leader: The recommended configuration.
            goal: The epsilon that is wanted.
            count: The claim is about the first `count` configurations; all of them if it is left out.
        """
        shown = self.duel_on_draws(leader, goal)[:count]
        worst = int(shown.argmax())
        low, high = self._drawn_interval(leader)
        return Certificate(
            config=leader,
            epsilon=min(1.0, float(shown[worst])),
            delta=self.delta,
            n_configs=len(shown),
            utility_low=low,
            utility_high=max(low, high),
            challenger=worst if worst != leader else None,
            mode="selection",
            shares=self.shares,
            population=Population.DRAWN,
        )

    def interval(self, leader: int) -> tuple[float, float]:
        """Return bounds on the leader's mean utility over the set: certain ones, and narrower ones by bets."""
        low, high = float(self._low_sum[leader]) / self.population, float(self._high_sum[leader]) / self.population
        first, last, lower, upper = self._ends_of(leader, self.set_standing)
        if last <= first or low >= high:
            return low, high
        place = np.arange(first, last)
        if math.isfinite(lower):
            lows = self.low[leader, :last]
            shown = mixture_lower_finite(
                lows[first:], self.population, lower, _sums_from(lows, first), positions=place, nodes=self.nodes
            )
            low = max(low, shown)
        if math.isfinite(upper):
            highs = self.high[leader, :last]
            shown = mixture_upper_finite(
                highs[first:], self.population, upper, _sums_from(highs, first), positions=place, nodes=self.nodes
            )
            high = min(high, shown)
        return low, high

    def _ends_of(self, leader: int, standing: ShareTable | None) -> tuple[int, int, float, float]:
        """Return between which positions bets on the leader's own utility count, and the levels of the two ends."""
        if standing is None:
            return 0, 0, math.inf, math.inf
        first = int(standing.starts(self.n_configs)[leader])
        return first, int(self.lengths[leader]), *standing.log_ends(leader, self.delta)

    def _drawn_interval(self, leader: int) -> tuple[float, float]:
        first, last, lower, upper = self._ends_of(leader, self.drawn_standing)
        if last <= first:
            return 0.0, 1.0
        return (
            mixture_lower(self.low[leader, first:last], lower, self.nodes) if math.isfinite(lower) else 0.0,
            mixture_upper(self.high[leader, first:last], upper, self.nodes) if math.isfinite(upper) else 1.0,
        )

    def mean_lead(self, config: int, leader: int, length: int) -> tuple[float, float]:
        """Return the mean lead of a configuration on the first positions, and how many standard errors that is."""
        own = self.low[config, :length] + self.high[config, :length]
        ahead = 0.5 * (own - self.low[leader, :length] - self.high[leader, :length])
        size = math.sqrt(float(ahead @ ahead))
        total = float(ahead.sum())
        return total / max(1, length), total / size if size else 0.0

    def lower_sum(self, config: int) -> float:
        """Return the sum of the low ends of a configuration over the set."""
        return float(self._low_sum[config])

    def lower_mean(self, config: int, length: int) -> float:
        """Return the mean of the low ends of a configuration on the first positions."""
        return float(self.low[config, :length].mean()) if length else 0.0


def _sums_from(values: FloatArray, first: int) -> FloatArray:
    """Return the sums of all values before positions first, first + 1, …, and once more of all values."""
    sums: FloatArray = np.concatenate((np.zeros(1), np.cumsum(values)))[first:]
    return sums
