"""The table of configurations: one value for the terminal, `--json`, `status`, the report and Python."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from os import PathLike

import numpy as np

from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED, KnownRuns
from captime.report.numbers.censored_times import Median, Ratio, answered_share, time_ratio
from captime.report.story import Story, read_story
from captime.utilities.protocol import Utility


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
        utility: Estimated mean utility (`report.numbers.censored_times` says how); not a number without runs.
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
