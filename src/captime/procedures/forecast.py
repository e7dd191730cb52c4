"""Forecasts how many instances an epsilon takes, for a claim about exactly these and for one about more like them.

The figures are those of the duel bounds of the two races (`docs/population.md`), computed on made-up differences of
utilities: the leader and one rival that is exactly as good, the hardest case there is. A difference is 0, 1 or -1, with
a given standard deviation, and the values are spread evenly over the positions, so that no random number is involved.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.mixture import mixture_lower, mixture_lower_finite, sine_nodes
from captime.certificate import Population, check_delta
from captime.errors import ScenarioError
from captime.procedures import race_claims, set_claims
from captime.procedures.problem import SCHEDULE
from captime.procedures.set_schedule import pilot_size

EPSILONS = (0.2, 0.1, 0.05, 0.02)
"""The epsilons of tables."""
SPREAD = 0.3
"""The standard deviation of differences where nothing is known about them: the two scores differ by 1 on 9 % of the
instances, and are equal on the others."""
LARGEST_SET = 20_000
"""Of larger sets the whole distribution is a better question: a forecast of them is refused."""
MOST_INSTANCES = 1_000_000
"""Needs beyond this are not looked for."""
# The first of the ranking leads a race on a set with this weight.
_FIRST_WEIGHT = 0.6
# A race on draws bets this many shares of its wealth.
_FRACTIONS = 16
# Its warm start runs this many positions at first, and at most one in eight of a finite stream.
_FIRST, _PILOT_ONE_IN = 4, 8
# An epsilon that says nothing.
_WIDEST = 1.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a number of instances can give.

    Args:
        n_instances: How many there are.
        n_configs: Number of configurations compared.
        delta: Allowed probability of a wrong certificate.
        spread: Standard deviation of the difference of two utilities on one instance.
        population: What the goal is about. Where that is exactly these, the second claim comes from the same race;
            else it is that of the race on draws, whose duels share delta between all configurations.
    """

    n_instances: int
    n_configs: int = 8
    delta: float = 0.1
    spread: float = SPREAD
    population: Population = Population.THESE

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not 1 <= self.n_instances <= LARGEST_SET:
            raise ScenarioError(
                f"the number of instances is {self.n_instances}; expected a whole number from 1 to {LARGEST_SET:,}"
            )
        if self.n_configs < 2:
            raise ScenarioError(
                f"the number of configurations is {self.n_configs}; expected at least 2, because one has no rival"
            )
        if not 0.0 < self.spread <= 1.0:
            raise ScenarioError(
                f"the spread is {self.spread:g}; expected a standard deviation of differences of utility, more than 0 "
                "and at most 1, such as 0.3"
            )

    @property
    def drawn(self) -> float:
        """The epsilon about more instances like these, once all of them were run."""
        return _drawn(self.n_instances, self._level, self.spread, self.population)

    def needed(self, epsilon: float) -> int | None:
        """Return how many instances a claim about more like them needs; None for more than `MOST_INSTANCES`."""
        return _needed(_checked(epsilon), self._level, self.spread, self.population)

    def to_run(self, epsilon: float) -> int:
        """Return how many of exactly these instances have to be run; all of them give epsilon 0."""
        low, high = pilot_size(self.n_instances), self.n_instances
        left = self.n_instances - low
        if left * math.log(2.0 / (1.0 - _checked(epsilon))) <= -math.log(set_claims.PAIRED * self.delta):
            # Even if every bet were won: the race runs everything at once.
            return self.n_instances
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.these(middle) <= epsilon else (middle, high)
        return high

    def these(self, n_run: int) -> float:
        """Return the epsilon about exactly these instances, once that many of them were run."""
        return _these(n_run, self.n_instances, _level_on_set(self.delta), self.spread)

    def sentence(self, epsilon: float, *, wait: str = "") -> str:
        """Return both of `claims` as one sentence."""
        return "; ".join(self.claims(epsilon, wait=wait))

    def claims(self, epsilon: float, *, wait: str = "") -> tuple[str, str]:
        """Return what the set can give, in words: `these 60: within 0.05 after about 4 min`, and `as a sample, …`.

        Args:
            epsilon: The goal.
            wait: How long the runs for the first claim take, as a text such as `4 min`; nothing if it is not known.
        """
        count, most = self.n_instances, self.to_run(epsilon)
        after = f" after {wait} ({most:,} of them run)" if wait else f" once about {most:,} of them were run"
        needed = self.needed(epsilon)
        enough = f"about {needed:,}" if needed is not None else f"more than {MOST_INSTANCES:,}"
        sample = f"as a sample of more like them within {self.drawn:.2g} at best"
        if self.drawn <= epsilon:
            sample = f"as a sample of more like them within {epsilon:g} with {enough} of them"
        elif self.drawn >= _WIDEST:
            sample = f"as a sample of more like them nothing; within {epsilon:g} takes {enough}"
        else:
            sample += f", and within {epsilon:g} takes {enough}"
        return f"exactly these {count:,}: within {epsilon:g}{after}", sample

    def as_json(self, epsilons: tuple[float, ...] = EPSILONS) -> dict[str, Any]:
        """Return the figures for programs."""
        return {
            "instances": self.n_instances,
            "configurations": self.n_configs,
            "delta": self.delta,
            "spread": self.spread,
            "drawn_epsilon": self.drawn,
            "epsilons": [
                {"epsilon": each, "these": self.to_run(each), "drawn": self.needed(each)} for each in epsilons
            ],
        }

    @property
    def _level(self) -> float:
        """ln(1 / failure probability) of a duel about more like them."""
        if self.population is Population.THESE:
            return _level_on_set(self.delta)
        # A race on draws, where all configurations are as likely to lead.
        paired = dict(race_claims.shares_of(self.n_configs, SCHEDULE))["paired"]
        return math.log(self.n_configs / (paired * self.delta))


def _level_on_set(delta: float) -> float:
    """Return ln(1 / failure probability) of the duels of the first of the ranking; there is no union over rivals."""
    return -math.log(_FIRST_WEIGHT * set_claims.PAIRED * delta)


def _checked(epsilon: float) -> float:
    if not 0.0 < epsilon < 1.0:
        raise ScenarioError(f"epsilon is {epsilon:g}; expected a number above 0 and below 1, such as 0.1")
    return epsilon


def _terms(n_instances: int, population: Population) -> tuple[int, int]:
    """Return how many positions come before the duels, and how many shares of the wealth these bet."""
    if population is Population.THESE:
        return pilot_size(n_instances), set_claims.NODES
    return max(1, min(_FIRST, n_instances // _PILOT_ONE_IN)), _FRACTIONS


def _support(n: int, spread: float) -> FloatArray:
    """Return (1 - D) / 2 for differences D of 0, 1 and -1 with this standard deviation, evenly spread over n places."""
    place = np.arange(1, n + 1, dtype=np.int64)
    even = np.zeros(n)
    share = 0.5
    # Van der Corput: the binary digits of the place, read backwards.
    while place.any():
        even += share * (place & 1)
        place, share = place >> 1, share / 2
    tail = spread**2 / 2.0
    difference = np.where(even < tail, 1.0, np.where(even >= 1.0 - tail, -1.0, 0.0))
    return np.asarray((1.0 - difference) / 2.0)


@lru_cache(maxsize=4096)
def _drawn(n: int, level: float, spread: float, population: Population) -> float:
    first, fractions = _terms(n, population)
    values, counts = np.unique(_support(n, spread)[first:], return_counts=True)
    if not len(values):
        return _WIDEST
    return max(0.0, 1.0 - 2.0 * mixture_lower(values, level, sine_nodes(fractions), counts))


@lru_cache(maxsize=4096)
def _these(n_run: int, n: int, level: float, spread: float) -> float:
    if n_run >= n:
        return 0.0
    support, (first, fractions) = _support(n, spread), _terms(n, Population.THESE)
    if n_run <= first:
        return _WIDEST
    known = np.concatenate((np.zeros(1), np.cumsum(support)))
    lower = mixture_lower_finite(
        support[first:n_run],
        n,
        level,
        known[first : n_run + 1],
        positions=np.arange(first, n_run),
        nodes=sine_nodes(fractions),
    )
    return max(0.0, 1.0 - 2.0 * lower)


@lru_cache(maxsize=4096)
def _needed(epsilon: float, level: float, spread: float, population: Population) -> int | None:
    high = 2
    while _drawn(high, level, spread, population) > epsilon:
        high *= 2
        if high > MOST_INSTANCES:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _drawn(middle, level, spread, population) <= epsilon else (middle, high)
    return high
