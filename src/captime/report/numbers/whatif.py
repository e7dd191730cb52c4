"""And if my utility were another one? Ranking and regret over families of utilities, from the runs that were made.

E[u(T)] is the integral of P(T < s) over the fall of u. So one distribution function answers for every utility, and a
band around it answers with certainty for all of them at once: no utility has to be chosen before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.report.numbers.distributions import Distributions, distributions
from captime.report.story import Story
from captime.utilities.durations import duration_text
from captime.utilities.log_laplace import LogLaplace
from captime.utilities.parc import Parc
from captime.utilities.protocol import Utility
from captime.utilities.step import Step

POINTS = 97
"""Members of a family that are looked at."""
FIRST, LAST = 1.0, 3600.0
"""Deadlines that people have, in seconds: looked at whatever was measured."""
ENOUGH = 32
"""Configurations with fewer runs have no estimate here, only bounds."""
# An estimate that could be wrong by more than this, because captimes hide the rest, is not given.
_HIDDEN = 0.02


@dataclass(frozen=True, slots=True)
class Family:
    """Utilities that differ in one number.

    Attributes:
        name: `deadline`, `log-laplace`, `par10` or `parc`.
        fixed: Whether the numbers reach from `FIRST` to `LAST`, and not over what was measured.
        words: What the number is.
        parameter: The numbers.
        estimate: Estimated expected utility, by configuration and number; not a number where nothing is known.
        lower: Certified lower end.
        upper: Certified upper end.
        example: What one of them is called, `{}` standing for the number.
    """

    name: str
    fixed: bool
    words: str
    parameter: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    example: str

    def best(self, favourite: int) -> IntArray:
        """The configuration with the best estimate, for each number; the favourite among equals.

        -1 where nothing is known of the favourite: whoever is left then does not win by that.
        """
        known = np.nan_to_num(self.estimate, nan=-1.0)
        most, own = known.max(axis=0), known[favourite]
        return np.where(own < 0.0, -1, np.where(own >= most - 1e-9, favourite, known.argmax(axis=0)))

    def regret(self, favourite: int) -> FloatArray:
        """By how much the best estimate is better than each one's; nothing where nothing is known of the favourite."""
        known = np.where(np.isnan(self.estimate), -np.inf, self.estimate)
        found: FloatArray = known.max(axis=0) - self.estimate
        found[:, np.isnan(self.estimate[favourite])] = np.nan
        return found

    def certified_regret(self, config: int) -> FloatArray:
        """By how much any configuration may be better than this one, for certain, for each number."""
        others = np.delete(self.upper, config, axis=0)
        best = others.max(axis=0) if len(others) else np.zeros(self.upper.shape[1])
        found: FloatArray = np.maximum(best - self.lower[config], 0.0)
        return found

    def possible(self) -> BoolArray:
        """Who cannot be excluded from being the best, by configuration and number."""
        found: BoolArray = self.upper >= self.lower.max(axis=0)
        return found


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Answers for several families.

    Attributes:
        families: Each with its numbers; first those of times that people have, then those of times that were measured.
        distributions: What they were computed from, all configurations.
        first: From here on somebody answers.
        last: The longest time that a run was given.
    """

    families: Sequence[Family]
    distributions: Distributions
    first: float
    last: float


@lru_cache(maxsize=1)
def what_if(story: Story) -> WhatIf | None:
    """The families, over times that people have and over times that the runs know something about; None without runs.

    Beyond the longest captime nothing was seen: there the certified ends are as far apart as that means.
    """
    base = distributions(story)
    if base is None or story.runs is None:
        return None
    first, last = _window(base)
    fixed, measured = np.geomspace(FIRST, LAST, POINTS), np.geomspace(first, last, POINTS)
    known = distributions(story, extra=[*fixed.tolist(), *measured.tolist()])
    if known is None:
        return None
    # A handful of runs makes a wild estimate, and the wildest of many wins every comparison.
    n = np.bincount(story.runs.config, minlength=len(story.names))
    known.estimate[n < min(ENOUGH, int(n.max()))] = np.nan
    weighed = _Weighed(known)
    families = [family for times in (fixed, measured) for family in _of_times(weighed, times, fixed=times is fixed)]
    penalties = np.geomspace(1.0, 100.0, POINTS)
    words = f"limits of {duration_text(last)} that an unsolved instance costs"
    kind = ("parc", words, f"parc({last:.4g}, {{}})")
    families.insert(2, _family(weighed, ("par10", "limit", "parc({}, 10)"), fixed, lambda limit: Parc(limit, 10.0)))
    families.append(_family(weighed, kind, penalties, lambda penalty: Parc(last, penalty), fixed=False))
    return WhatIf(families, known, first, last)


def _of_times(weighed: "_Weighed", times: FloatArray, *, fixed: bool) -> list[Family]:
    half = "time after which half the worth is gone"
    return [
        _family(weighed, ("deadline", "deadline", "step({})"), times, Step, fixed=fixed),
        _family(
            weighed,
            ("log-laplace", half, "log-laplace({}, 1)"),
            times,
            lambda scale: LogLaplace(scale, 1.0),
            fixed=fixed,
        ),
    ]


def _window(known: Distributions) -> tuple[float, float]:
    """From where a few answers are in to the longest captime: outside, the runs have nothing to say."""
    first = np.nanmax(np.nan_to_num(known.estimate), axis=0) > 0.01
    start = float(known.moments[int(first.argmax())])
    last = float(known.moments[-1])
    return min(start, last / 10.0), last


def _family(
    weighed: "_Weighed",
    kind: tuple[str, str, str],
    parameter: FloatArray,
    make: Callable[[float], Utility],
    *,
    fixed: bool = True,
) -> Family:
    estimate, lower, upper = weighed.expected([make(float(each)) for each in parameter])
    name, words, example = kind
    return Family(name, fixed, words, parameter, estimate, lower, upper, example)


class _Weighed:
    """Distributions, ready to be weighed with many utilities."""

    def __init__(self, known: Distributions) -> None:
        self._known = known
        self._seen = np.isfinite(known.estimate)
        self._share = np.where(self._seen, known.estimate, 0.0)

    def expected(self, utilities: Sequence[Utility]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `expected`: by configuration and utility."""
        known = self._known
        worth = np.stack([utility(known.moments) for utility in utilities], axis=1)
        fall = -np.diff(worth, prepend=1.0, axis=0)
        end = worth[-1]
        lower = known.lower[:, :-1] @ fall[1:]
        upper = known.upper @ fall + end
        # How much of the fall of u happens where nobody was watched any more, and who had answered by then.
        blind = ~self._seen @ fall + end
        answered = self._share.max(axis=1, keepdims=True)
        estimate = self._share @ fall + answered * blind
        estimate[(blind * (1.0 - answered) > _HIDDEN) | ~self._seen.any(axis=1, keepdims=True)] = np.nan
        return estimate, np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def expected(known: Distributions, utility: Utility) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate and certified ends of the expected utility, by configuration.

    P(T < s) is known at some moments s only. Between two of them the lower end takes the value of the earlier and the
    upper end that of the later one, because P(T < s) never falls: rounded outward, so still certain. Behind the last
    moment nothing is certain; the estimate takes it that nobody else answers there, and there is none where that could
    matter.
    """
    estimate, lower, upper = _Weighed(known).expected([utility])
    return estimate[:, 0], lower[:, 0], upper[:, 0]


@dataclass(frozen=True, slots=True)
class Dominance:
    """How much the choice between two configurations can matter, over all utilities there are.

    The largest loss from taking i instead of k, over every non-increasing utility, is the largest amount by which
    P(T_k < s) exceeds P(T_i < s). If that is 0, i is at least as good as k for everybody.

    Attributes:
        config: Who is compared.
        loss: Estimated largest loss from taking the row instead of the column.
        certified: The same, certified from the band: it is not more than this.
    """

    config: IntArray
    loss: FloatArray
    certified: FloatArray

    def dominates(self, tolerance: float = 1e-12) -> BoolArray:
        """Whether the row is at least as good as the column for every utility, by the estimates."""
        found: BoolArray = self.loss <= tolerance
        return found


def dominance(known: Distributions, config: Sequence[int]) -> Dominance:
    """All pairs of these configurations."""
    rows = np.asarray(config, dtype=np.int64)
    estimate = known.estimate[rows]
    lower, upper = known.lower[rows], known.upper[rows]
    # Compared as far as both were watched; P(T_k < s) at the later moment against P(T_i < s) at the earlier one.
    gap = estimate[None, :, :] - estimate[:, None, :]
    loss = np.nanmax(np.concatenate((gap, np.zeros((*gap.shape[:2], 1))), axis=2), axis=2)
    lagged = np.concatenate((np.zeros((len(rows), 1)), lower), axis=1)
    ahead = np.concatenate((upper, np.ones((len(rows), 1))), axis=1)
    certified = np.stack([np.maximum(ahead - lagged[row], 0.0).max(axis=1) for row in range(len(rows))])
    np.fill_diagonal(certified, 0.0)
    return Dominance(rows, np.maximum(loss, 0.0), np.minimum(certified, 1.0))
