"""The table of configurations: one value for the terminal, `--json`, `status`, the report and Python.

Means and medians are estimated from times of which some are only known to be longer than a captime.

The share of instances answered by a time is the product limit of `captime.procedures.board`, which has its
assumptions. The certificate does not rest on these estimates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from rich.table import Table
from rich.text import Text

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.procedures.board import AnswerSteps, product_limit
from captime.report.charts.chart import Node, element
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED, KnownRuns
from captime.report.ledger_data import LedgerData
from captime.report.words import printable, rounded_down, rounded_up
from captime.utilities.formula import duration_text

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


def configuration_table(story: LedgerData) -> ConfigurationTable | None:
    """Return the table of a campaign; None if its file has no runs in it (a trace)."""
    if story.runs is None:
        return None
    leading = story.runs.of(story.leader)
    rows = tuple(_row(story, config, leading) for config in story.ranking().tolist())
    return ConfigurationTable(rows, story.delta, story.clock, story.on_set)


def table_of_story(story: LedgerData) -> ConfigurationTable:
    """Return the table of a campaign whose story was read from a ledger."""
    table = configuration_table(story)
    assert table is not None  # noqa: S101 (a ledger has runs, if only none yet)
    return table


def _row(story: LedgerData, config: int, leading: KnownRuns) -> ConfigurationRow:
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


def _candidacy(story: LedgerData, config: int) -> Candidacy:
    if config == story.leader:
        return Candidacy.LEADER
    return Candidacy.IN if config in story.in_race else Candidacy.OUT


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# The table of configurations for people: on the terminal, as plain text, as Markdown and as HTML.

ROWS_SHOWN = 12
"""How many configurations are shown unless all are asked for."""
_NOTHING = "–"
_DIGITS = 2
_STYLES = {Candidacy.LEADER: "bold", Candidacy.IN: "", Candidacy.OUT: "dim"}
_SHORT = {Candidacy.LEADER: "best", Candidacy.IN: "in", Candidacy.OUT: "out"}


def headings(table: ConfigurationTable) -> list[str]:
    """Return the titles of the columns of a page; "unfinished" only where there are such runs."""
    unfinished = ["unfinished"] if _has_unfinished(table) else []
    return [
        "configuration",
        "runs",
        *("answered", "capped", "failed", *unfinished),
        "median time",
        "utility",
        "interval",
        "time / best's",
        "",
    ]


def cells(row: ConfigurationRow, *, unfinished: bool) -> list[str]:
    """Return the words of one row, one for each heading."""
    name, runs, _, *rest = _narrow_cells(row, unfinished=unfinished)
    return [name, runs, *(f"{count:,}" for count in _ends(row, unfinished=unfinished)), *rest]


def _narrow_headings(table: ConfigurationTable) -> list[str]:
    """Return titles for a terminal of 80 columns: how runs ended is one column of its own."""
    ends = "answered/\ncapped/\nfailed" + ("/\nunfinished" if _has_unfinished(table) else "")
    return ["configuration", "runs", ends, "median\ntime", "utility", "interval", "time /\nbest's", ""]


def _narrow_cells(row: ConfigurationRow, *, unfinished: bool) -> list[str]:
    return [
        printable(row.name),
        f"{row.runs:,}",
        "/".join(f"{count:,}" for count in _ends(row, unfinished=unfinished)),
        median_words(row.median),
        _NOTHING if math.isnan(row.utility) else f"{row.utility:.{_DIGITS}f}",
        f"{rounded_down(row.lower, _DIGITS)}-{rounded_up(row.upper, _DIGITS)}",
        ratio_words(row.ratio),
        _SHORT[row.candidacy],
    ]


def _ends(row: ConfigurationRow, *, unfinished: bool) -> list[int]:
    return [row.answered, row.capped, row.failed, *([row.unfinished] if unfinished else [])]


def median_words(median: Median) -> str:
    """Return a median time as it is shown: a number, ">= x" if capped runs hide it, or "never"."""
    match median.kind:
        case MedianKind.EXACT:
            return duration_text(median.seconds)
        case MedianKind.AT_LEAST:
            return f">= {duration_text(median.seconds)}"
        case MedianKind.NEVER:
            return "never"
        case MedianKind.UNKNOWN:
            return _NOTHING


def ratio_words(ratio: Ratio | None) -> str:
    """Return how a time compares with the leader's: 2 is twice as slow."""
    if ratio is None:
        return "1"
    low, high = f"{ratio.low:.2f}", f"{ratio.high:.2f}"
    if ratio.low == ratio.high:
        return "never" if math.isinf(ratio.low) else low
    if math.isinf(ratio.high):
        return _NOTHING if ratio.low <= 0.0 else f">= {low}"
    return f"<= {high}" if ratio.low <= 0.0 else low if low == high else f"{low}-{high}"


def caption(table: ConfigurationTable, shown: int) -> str:
    """Return what has to be known to read the table, in one or two sentences."""
    left = len(table) - shown
    more = f"{left:,} more configurations are not shown. " if left > 0 else ""
    about = ", for more instances like these," if table.on_set else ""
    return (
        f"{more}Utilities are estimates, with capped runs accounted for; all intervals hold at once{about} with "
        f"probability at least {100 * (1 - table.delta):g} %."
    )


def for_terminal(table: ConfigurationTable, most: int = ROWS_SHOWN) -> Table:
    """Return the table for a console of Rich; it has no markup in it, and fits into 80 columns."""
    unfinished, heads = _has_unfinished(table), _narrow_headings(table)
    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(heads):
        left = place in (0, len(heads) - 1)
        drawn.add_column(heading, justify="left" if left else "right", no_wrap=place > 0, overflow="fold")
    for row in shown_rows(table, most):
        style = _STYLES[row.candidacy]
        drawn.add_row(*(Text(cell, style=style) for cell in _narrow_cells(row, unfinished=unfinished)))
    return drawn


def as_text(table: ConfigurationTable, most: int = ROWS_SHOWN) -> str:
    """Return the table as lines of text, without any colour; no line is cut, however long a name is."""
    unfinished, heads = _has_unfinished(table), [heading.split("\n") for heading in _narrow_headings(table)]
    height = max(map(len, heads))
    above = [[head[line - height] if height - line <= len(head) else "" for head in heads] for line in range(height)]
    words = [*above, *(_narrow_cells(row, unfinished=unfinished) for row in shown_rows(table, most))]
    widths = [max(map(len, column)) for column in zip(*words, strict=True)]
    left = {0, len(widths) - 1}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in words
    )


def as_markdown(table: ConfigurationTable, most: int = ROWS_SHOWN) -> str:
    """Return the table as GitHub and GitLab show it in a comment."""
    heads, *rows = _words(table, most)
    rule = [":--" if place in (0, len(heads) - 1) else "--:" for place in range(len(heads))]
    lines = [heads, rule, *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_html(table: ConfigurationTable, most: int = ROWS_SHOWN) -> Node:
    """Return the table as an element of a page; names are text in it and never markup."""
    heads, *rows = _words(table, most)
    body = [
        element("tr", *(element("td", cell, class_="number" if 0 < at < len(heads) - 1 else "") for at, cell in line))
        for line in (list(enumerate(row)) for row in rows)
    ]
    head = element("tr", *(element("th", heading) for heading in heads))
    return element("table", element("thead", head), element("tbody", *body), class_="configurations")


def shown_rows(table: ConfigurationTable, most: int) -> Sequence[ConfigurationRow]:
    """Return the first rows; all if there is just one more than asked for, whose line a remark would take."""
    return table.rows if len(table) <= most + 1 else table.rows[:most]


def _words(table: ConfigurationTable, most: int) -> list[list[str]]:
    unfinished = _has_unfinished(table)
    return [headings(table), *(cells(row, unfinished=unfinished) for row in shown_rows(table, most))]


def _has_unfinished(table: ConfigurationTable) -> bool:
    return any(row.unfinished for row in table)


def _escaped(cell: str) -> str:
    r"""Return a cell whose characters mean nothing to Markdown: a vertical bar would begin another cell."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]#~" else each for each in cell)
