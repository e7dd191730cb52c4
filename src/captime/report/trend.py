"""Whether runs become longer or shorter along the stream, as they should not if instances come in random order."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from captime.arrays import FloatArray, IntArray
from captime.report.known_runs import ANSWERED, CUT, FAILED, KnownRuns

# Fewer runs than this prove nothing.
_FEWEST = 60
# By chance it is seen in one campaign of ten thousand.
_CHANCE = 1e-4
# Runs with shorter captimes than this share of all runs have are left out, and all others are looked at up to there.
_SHORTEST = 0.25


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs of a configuration become longer, or shorter.

    Attributes:
        rank_correlation: Between the position in the stream and the time; from -1 to 1.
        chance: How likely one so far from 0 is if the order is random.
        runs: How many runs were looked at.
    """

    rank_correlation: float
    chance: float
    runs: int

    @property
    def words(self) -> str:
        """What to do about it."""
        how = "longer" if self.rank_correlation > 0 else "shorter"
        return (
            f"its runs become {how} along the stream of instances (rank correlation {self.rank_correlation:+.2f} over "
            f"{self.runs:,} runs; by chance {self.chance:.0e}). Are instances made, or listed, in an order that means "
            "something? Has the machine changed? Then nothing here is certain"
        )


def trend_of(runs: KnownRuns, among: int = 1) -> Trend | None:
    """The trend in the runs of one configuration; None if there is none to speak of.

    Args:
        runs: Of that configuration.
        among: How many there were to choose from. It may owe its lead to luck on its first instances, and the more
            there are, the luckier is the luckiest.

    How long a run may take says nothing about how long it would take. So runs are chosen by their captimes, and all are
    looked at up to the same moment: what is compared is the shorter of that and the run's own time.
    """
    if len(runs) < _FEWEST:
        return None
    until = float(np.quantile(runs.captime, _SHORTEST))
    answered = (runs.kind == ANSWERED) & (runs.seconds < until)
    unfinished = np.isin(runs.kind, (CUT, FAILED)) | (runs.seconds >= until)
    chosen = (runs.captime >= until) & (answered | unfinished)
    times = np.where(answered, runs.seconds, until)[chosen]
    if len(times) < _FEWEST or np.all(times == times[0]):
        return None
    correlation, chance = rank_correlation(runs.position[chosen], times)
    chance *= among
    return Trend(correlation, chance, len(times)) if chance < _CHANCE else None


def rank_correlation(one: FloatArray | IntArray, other: FloatArray | IntArray) -> tuple[float, float]:
    """Return Spearman's rank correlation, and how likely one at least as far from 0 is if the two are independent.

    The same numbers as `scipy.stats.spearmanr`. Every command loads this module, and loading scipy.stats would take
    a third of the time in which a command starts.
    """
    correlation = float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])
    freedom = len(one) - 2
    # Student's t with n - 2 degrees of freedom, as for Pearson's correlation; a perfect order must not divide by zero.
    rest = max((1.0 - correlation) * (1.0 + correlation), 1e-30)
    distance = abs(correlation) * np.sqrt(freedom / rest)
    return correlation, float(2.0 * stdtr(freedom, -distance))


def _ranks(values: FloatArray | IntArray) -> FloatArray:
    """Return the rank of each value; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: FloatArray = np.cumsum(counts) - (counts - 1) / 2.0
    return means[which]
