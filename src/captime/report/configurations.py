"""The table of configurations: one value for the terminal, `--json`, `status`, the report and Python.

Means and medians are estimated from times of which some are only known to be longer than a captime.

The share of instances answered by a time is the product limit of `captime.procedures.estimates`, which has its
assumptions. The certificate does not rest on these estimates.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from os import PathLike

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.procedures.estimates import AnswerSteps, product_limit
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED, KnownRuns
from captime.report.story import Story, read_story
from captime.utilities.protocol import Utility

# Shares are sums of products: this is how far rounding may carry them.
_ROUNDING = 1e-9
# A ratio from fewer pairs is one from chance; more are asked for if there are more.
_ENOUGH_PAIRS = 8
# Shares of the pairs with the shortest captimes that may be left out.
_LEFT_OUT = (0.0, 0.25, 0.5, 0.75)


class MedianKind(Enum):
    """What is known of a median."""

    EXACT = "exact"
    """The median is the number given."""
    AT_LEAST = "at-least"
    """Capped runs hide the median; it is the number given or more."""
    NEVER = "never"
    """At least half of the runs never answer, because they fail."""
    UNKNOWN = "unknown"
    """No run has said anything yet."""


@dataclass(frozen=True, slots=True)
class Median:
    """The time by which half of the instances are answered.

    Attributes:
        kind: What is known of it.
        seconds: The number; not a number where there is none.
    """

    kind: MedianKind
    seconds: float = math.nan


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median, over common instances, of one configuration's time divided by another's.

    Attributes:
        low: It is at least this.
        high: It is at most this; equal to `low` if capped runs hide nothing.
        common: On how many instances both were run.
    """

    low: float
    high: float
    common: int

    @property
    def known(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class AnsweredShare(AnswerSteps):
    """F(t), the estimated share of instances answered by t, as steps."""

    def median(self) -> Median:
        """Return the time by which half of the instances are answered.

        Where F equals one half on a whole stretch, the middle of the stretch is taken, as for complete samples.
        """
        share = np.cumsum(self.steps)
        reached = int(np.searchsorted(share, 0.5 - _ROUNDING))
        if reached < len(share):
            flat = share[reached] <= 0.5 + _ROUNDING and reached + 1 < len(share)
            last = self.times[reached + 1] if flat else self.times[reached]
            return Median(MedianKind.EXACT, float(self.times[reached] + last) / 2.0)
        answered = float(share[-1]) if len(share) else 0.0
        if answered + self.left < 0.5 - _ROUNDING or (self.left <= _ROUNDING and self.watched_until > 0.0):
            return Median(MedianKind.NEVER)
        if self.watched_until <= 0.0:
            return Median(MedianKind.UNKNOWN)
        return Median(MedianKind.AT_LEAST, self.watched_until)


def answered_share(runs: KnownRuns) -> AnsweredShare:
    """Estimate, from the runs of one configuration, which share of instances it answers by when."""
    found = product_limit(runs.seconds, runs.kind == ANSWERED, runs.kind == FAILED)
    return AnsweredShare(found.times, found.steps, found.left, found.watched_until)


def time_ratio(first: KnownRuns, second: KnownRuns) -> Ratio:
    """Compare the times of two configurations on the instances that both were run on.

    Every common instance gives two ends for the ratio of the first's time to the second's. A capped run took at least
    the time that was seen of it; a failed run takes for ever. The median of all lower ends and the median of all upper
    ends enclose the median ratio. Instances with short captimes say little, so they are left out, at most three
    quarters of them, if the two medians agree without them: captimes do not depend on the times, so what is kept is
    as fair a sample as all of it.
    """
    position, here, there = np.intersect1d(first.position, second.position, assume_unique=True, return_indices=True)
    ours, theirs = first.where(here), second.where(there)
    # Two runs that never answer are neither faster nor slower than each other.
    say = ~((ours.kind == FAILED) & (theirs.kind == FAILED))
    low_ours, high_ours = _time_ends(ours)
    low_theirs, high_theirs = _time_ends(theirs)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.nan_to_num(low_ours / high_theirs, nan=0.0, posinf=math.inf)
        high = np.nan_to_num(high_ours / low_theirs, nan=math.inf, posinf=math.inf)
    captime = np.minimum(ours.captime, theirs.captime)[say]
    return _median_ratio(low[say], high[say], captime, len(position))


def _time_ends(runs: KnownRuns) -> tuple[FloatArray, FloatArray]:
    answered: BoolArray = runs.kind == ANSWERED
    failed: BoolArray = runs.kind == FAILED
    low = np.where(failed, math.inf, runs.seconds)
    return low, np.where(answered, runs.seconds, math.inf)


def _median_ratio(low: FloatArray, high: FloatArray, captime: FloatArray, common: int) -> Ratio:
    by_captime: IntArray = np.argsort(captime, kind="stable")
    best = Ratio(0.0, math.inf, common)
    for share in _LEFT_OUT:
        kept = by_captime[int(share * len(by_captime)) :]
        if len(kept) == 0 or (share > 0.0 and len(kept) < _ENOUGH_PAIRS):
            break
        found = Ratio(_middle(low[kept]), _middle(high[kept]), common)
        if found.known and math.isfinite(found.low):
            return found
        if share == 0.0:
            best = found
    return best


def _middle(values: FloatArray) -> float:
    """Return the median; of an even number the middle of the inner two, unless one of them is infinite."""
    ordered = np.sort(values)
    inner = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(inner[0] + inner[1]) / 2.0 if math.isfinite(inner[1]) else float(inner[1])


class Candidacy(Enum):
    """Where a configuration stands in the campaign."""

    LEADER = "recommended"
    """The certificate recommends it."""
    IN = "in"
    """It may still be the best, or has not been cleared at the epsilon asked for."""
    OUT = "out"
    """It has been cleared: it cannot be better than the leader by more than epsilon."""


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """One configuration: what became of its runs, and what they say about it.

    Attributes:
        config: Its index.
        name: Its name.
        settings: Its parameters.
        candidacy: Whether it is recommended, in or out.
        runs: How many runs it has, each counted once however often it was tried; those under way included.
        answered: Runs that answered before their captime.
        capped: Runs that were stopped at their captime.
        failed: Runs that ended without a right answer.
        unfinished: Runs that were cancelled or lost, or are under way.
        median: The time by which half of the instances are answered.
        utility: Estimated mean utility (the top of this file says how); not a number without runs.
        lower: Certified lower end of its expected utility.
        upper: Certified upper end.
        ratio: Its time divided by the leader's, on common instances: 2 is twice as slow. None for the leader.
        cpu_seconds: What its runs cost, all attempts together.
    """

    config: int
    name: str
    settings: Mapping[str, object]
    candidacy: Candidacy
    runs: int
    answered: int
    capped: int
    failed: int
    unfinished: int
    median: Median
    utility: float
    lower: float
    upper: float
    ratio: Ratio | None
    cpu_seconds: float

    def as_json(self) -> dict[str, object]:
        """Return plain values; what is not a finite number is null."""
        ratio = Ratio(1.0, 1.0, self.runs) if self.ratio is None else self.ratio
        return {
            "config": self.config,
            "name": self.name,
            "settings": dict(self.settings),
            "candidacy": self.candidacy.value,
            "runs": self.runs,
            "answered": self.answered,
            "capped": self.capped,
            "failed": self.failed,
            "unfinished": self.unfinished,
            "median": self.median.kind.value,
            "median_seconds": _finite(self.median.seconds),
            "utility": _finite(self.utility),
            "utility_low": self.lower,
            "utility_high": self.upper,
            "time_ratio_low": _finite(ratio.low),
            "time_ratio_high": _finite(ratio.high),
            "common_instances": ratio.common,
            "cpu_seconds": self.cpu_seconds,
        }


@dataclass(frozen=True, slots=True)
class ConfigurationTable:
    """All configurations: the recommended one first, the others by what is certain of them.

    Attributes:
        rows: The configurations.
        delta: The intervals of all rows hold at once with probability at least 1 - delta.
        clock: On which clock times were measured: `cpu` or `wall`.
        on_set: Whether the claim is about exactly these instances; the intervals are about more like them.
    """

    rows: tuple[ConfigurationRow, ...]
    delta: float
    clock: str
    on_set: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ConfigurationRow]:
        return iter(self.rows)

    def as_json(self) -> list[dict[str, object]]:
        """Return one object for each configuration."""
        return [row.as_json() for row in self.rows]

    def columns(self) -> dict[str, list[object]]:
        """Return the same values as columns: `pandas.DataFrame(table.columns())` makes a frame of them."""
        objects = self.as_json()
        return {name: [each[name] for each in objects] for name in (objects[0] if objects else {})}


def configuration_table(story: Story) -> ConfigurationTable | None:
    """Return the table of a campaign; None if its file has no runs in it (a trace)."""
    if story.runs is None:
        return None
    leading = story.runs.of(story.leader)
    rows = tuple(_row(story, config, leading) for config in story.ranking().tolist())
    return ConfigurationTable(rows, story.delta, story.clock, story.on_set)


def table_of_ledger(path: str | PathLike[str], utility: Utility | None = None) -> ConfigurationTable:
    """Return the table of a ledger; a campaign may be writing to it.

    Args:
        path: The ledger.
        utility: What an answer is worth, where the ledger names code that must not be executed to find out.
    """
    table = configuration_table(read_story(path, utility))
    assert table is not None  # noqa: S101 (a ledger has runs, if only none yet)
    return table


def _row(story: Story, config: int, leading: KnownRuns) -> ConfigurationRow:
    assert story.runs is not None  # noqa: S101 (the caller has looked)
    runs, scores = story.runs.of(config), story.scores
    kinds = np.bincount(runs.kind, minlength=len(KINDS))
    lower, upper = (0.0, 1.0) if scores is None else (float(scores.lower[config]), float(scores.upper[config]))
    share = answered_share(runs)
    utility = math.nan if story.utility is None else share.mean_utility(story.utility)
    return ConfigurationRow(
        config=config,
        name=story.names[config],
        settings=story.settings[config] if story.settings else {},
        candidacy=_candidacy(story, config),
        runs=len(runs),
        answered=int(kinds[ANSWERED]),
        capped=int(kinds[CUT]),
        failed=int(kinds[FAILED]),
        unfinished=int(kinds[STOPPED] + kinds[OPEN]),
        median=share.median(),
        # Two statements about one number: where they disagree, the one with a guarantee is right.
        utility=utility if math.isnan(utility) else min(max(utility, lower), upper),
        lower=lower,
        upper=upper,
        ratio=None if config == story.leader else time_ratio(runs, leading),
        cpu_seconds=float(runs.cost.sum()),
    )


def _candidacy(story: Story, config: int) -> Candidacy:
    if config == story.leader:
        return Candidacy.LEADER
    return Candidacy.IN if config in story.in_race else Candidacy.OUT


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
