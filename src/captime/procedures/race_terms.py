"""The terms of the race: how its delta is shared out, at which epsilons duels are weighed, which options make sense."""

import math
from typing import Literal, get_args

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError

Mode = Literal["selection", "simultaneous"]

# Shares of delta: upper bound of the best configuration, duels, lower bounds, the upper end of the interval shown, and
# the scout's lower bound.
UPPER, PAIRED, LOWER, SHOWN, SCOUT = 0.41, 0.41, 0.1, 0.04, 0.04
SHARES = (("upper", UPPER), ("paired", PAIRED), ("lower", LOWER), ("shown", SHOWN), ("scout", SCOUT))


def check_options(boost: float, mode: str, first_runs: int, growth: float, shares: dict[str, float]) -> None:
    """Refuse options of the race that make no sense, each with what would."""
    if not 1.0 <= boost <= 100.0:
        raise ScenarioError(f"boost is {boost!r}, but it has to be between 1 and 100; 1.25 is a good choice")
    if mode not in get_args(Mode):
        raise ScenarioError(f"race has no mode {mode!r}; there are {', '.join(get_args(Mode))}")
    if first_runs < 1:
        raise ScenarioError(f"first_runs is {first_runs}, but every configuration has to run at least once")
    if not 0.0 < growth <= 10.0:
        raise ScenarioError(f"growth is {growth!r}, but it has to be a positive share, such as 0.1")
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise ScenarioError(f"{name} is {share!r}, but it has to be a share between 0 and 1, such as 0.1")


# Configurations that join a race after its first run: what delta has left for them, and how they share it.
#
# The weights of leaders, 1 / ((r + 1)(r + 2)) by rank, sum to n / (n + 1) over n ranks. The rest, 1 / (n + 1) of what
# lower bounds and duels may cost, was kept from the start and is untouched. All statements about latecomers are paid
# from it, and only positions without a run when they came count for them; docs/random-captimes.md, step 9, has the
# proof.

# Parts of the reserve: upper bounds of latecomers; duels of a leader from the beginning with them; duels of a leader
# who came late, with the best from the beginning and with other latecomers; lower bounds; the upper end shown.
LATE_UPPER, LATE_PAIRED, LATE_LEADS, LATE_AMONG, LATE_LOWER, LATE_SHOWN = 0.25, 0.3, 0.15, 0.15, 0.1, 0.05


def reserve(n_first: int) -> float:
    """Return the share of delta that a race of `n_first` configurations keeps for latecomers."""
    return (PAIRED + LOWER) / (n_first + 1)


class Latecomers:
    """Levels of statements about those who joined later, as ln(1 / failure probability).

    Args:
        n_first: How many configurations the race began with; indices from there on are latecomers.
        delta: Allowed probability of a wrong certificate.

    Attributes:
        n_first: As given.
    """

    def __init__(self, n_first: int, delta: float) -> None:
        self.n_first = n_first
        self._log_reserve = -math.log(reserve(n_first) * delta)

    def price(self, config: IntArray) -> FloatArray:
        """ln(k(k + 1)) of the k-th latecomer, 0 for those who were there from the start.

        >>> np.exp(Latecomers(2, 0.1).price(np.array([0, 1, 2, 3]))).round(6).tolist()
        [1.0, 1.0, 2.0, 6.0]
        """
        number = np.maximum(config - self.n_first + 1, 1).astype(np.float64)
        return np.where(config < self.n_first, 0.0, np.log(number * (number + 1.0)))

    def level(self, part: float, config: IntArray, own: FloatArray) -> FloatArray:
        """Of a statement that takes this part of the reserve; `own` for those who were there from the start."""
        return np.where(config < self.n_first, own, self._log_reserve - math.log(part) + self.price(config))

    def duels(self, leader: int, challengers: IntArray, own: float) -> FloatArray:
        """Of the duels of a leader; `own` where both were there from the start.

        Args:
            leader: The configuration that leads.
            challengers: Its opponents.
            own: ln(1 / failure probability) of the leader's duels with those who were there from the start.
        """
        if leader < self.n_first:
            # By the weight of the leader, as all its duels.
            late = own + math.log(PAIRED) - math.log(LATE_PAIRED * reserve(self.n_first))
            return np.where(challengers < self.n_first, own, late + self.price(challengers))
        lead = self._log_reserve + float(self.price(np.array([leader]))[0])
        first = np.full(len(challengers), lead - math.log(LATE_LEADS))
        return np.where(challengers < self.n_first, first, lead - math.log(LATE_AMONG) + self.price(challengers))


class ListLevels:
    """The table of shares of a list: by rank in the warm start, with a reserve for configurations that join later.

    Args:
        n_configs: How many configurations the race began with.
        delta: Allowed probability of a wrong certificate.
        mode: What delta covers.

    Attributes:
        named: The shares of delta, as certificates name them.
        late: Levels of statements about those who joined later.
        log_rank: ln(1 / weight) of each configuration as a leader; until there is a ranking, all have the same.
    """

    named = SHARES

    def __init__(self, n_configs: int, delta: float, mode: Mode) -> None:
        self.late = Latecomers(n_configs, delta)
        self.log_rank: FloatArray = np.full(n_configs, math.log(n_configs))
        self._delta = delta
        self._mode = mode

    def enter(self, count: int) -> None:
        """Make room for `count` configurations that join later. Their weight as leaders is not one of a rank."""
        self.log_rank = np.append(self.log_rank, np.full(count, np.inf))

    def rank(self, ranking: IntArray) -> None:
        """Fix the weights of leaders by a ranking, best first; it is never made again."""
        if self._mode == "selection":
            # The weight of rank r is 1 / ((r + 1)(r + 2)); over all ranks these would sum to 1.
            rank = np.arange(len(ranking), dtype=np.float64)
            self.log_rank[ranking] = np.log((rank + 1.0) * (rank + 2.0))

    def upper(self, config: IntArray) -> FloatArray:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 0.0 if self._mode == "selection" else math.log(self.late.n_first)
        own = np.full(len(config), union - math.log(UPPER * self._delta))
        return self.late.level(LATE_UPPER, config, own)

    def lower(self, config: IntArray) -> FloatArray:
        """Of lower bounds of leaders."""
        own = self.log_rank[config] - math.log(LOWER * self._delta)
        return self.late.level(LATE_LOWER, config, own)

    def duels(self, leader: int, challengers: IntArray) -> FloatArray:
        """Of the duels of a leader."""
        own = float(self.log_rank[leader]) - math.log(PAIRED * self._delta)
        return self.late.duels(leader, challengers, own)

    def shown(self, config: IntArray) -> FloatArray:
        """Of the upper end shown. The warm start's scores count for it, so this level knows nothing of ranks."""
        own = np.full(len(config), math.log(self.late.n_first) - math.log(SHOWN * self._delta))
        return self.late.level(LATE_SHOWN, config, own)
