"""What is known of every run, whatever attempts it took: one row per configuration and stream position, as columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture
from captime.campaign.identity import population_on_record
from captime.certificate import Population
from captime.errors import CaptimeError
from captime.ledger.reading import VERDICTS, Columns, which_mean
from captime.plans import RandomCaptimes, Schedule
from captime.procedures import PROCEDURES, REGISTERS, Problem
from captime.procedures.problem import build_procedure
from captime.runs import RunRequest
from captime.utilities import parse_utility
from captime.utilities.formula import Utility

KINDS = ("answered", "cut at its captime", "failed", "stopped early", "open")
"""What the numbers in the column `kind` stand for."""
ANSWERED, CUT, FAILED, STOPPED, OPEN = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """Runs as columns, by configuration and then by position.

    Attributes:
        config: Whose.
        position: Where in the stream.
        kind: A number into `KINDS`.
        seconds: Answered: until the answer. Otherwise: how long it was seen unfinished.
        captime: Of the newest attempt; infinite for none.
        verdict: A number into `VERDICTS` of the ledger's reader; -1 for none.
        cost: CPU seconds of all attempts, those included that do not count.
        attempts: How many there were.
        spent: CPU seconds of the whole campaign when its newest outcome came.
    """

    config: IntArray
    position: IntArray
    kind: IntArray
    seconds: FloatArray
    captime: FloatArray
    verdict: IntArray
    cost: FloatArray
    attempts: IntArray
    spent: FloatArray

    def __len__(self) -> int:
        return len(self.config)

    def where(self, chosen: IntArray | slice) -> "KnownRuns":
        """Only these rows."""
        return KnownRuns(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def bounds(self, n_configs: int) -> IntArray:
        """Where the rows of each configuration begin; one more for the end."""
        return np.searchsorted(self.config, np.arange(n_configs + 1))

    def of(self, config: int) -> "KnownRuns":
        """The runs of one configuration."""
        first, last = np.searchsorted(self.config, [config, config + 1])
        return self.where(slice(int(first), int(last)))


def known_runs(columns: Columns, in_flight: Sequence[RunRequest] = ()) -> KnownRuns:
    """What the outcomes of a ledger say, and what is still under way.

    Args:
        columns: As `LedgerReader.outcomes` gives them.
        in_flight: Attempts that have not come back.
    """
    spent = np.cumsum(columns["cost"])
    counts = ~columns["orphan"]
    stride = int(columns["position"].max(initial=0)) + 1
    key = columns["config"] * stride + columns["position"]
    order = np.flatnonzero(counts)
    order = order[np.argsort(key[order], kind="stable")]
    if len(order) == 0:
        return _with_open(_nothing(), in_flight)
    ordered = key[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    newest = order[np.append(first[1:], len(order)) - 1]
    seen = np.maximum.reduceat(columns["runtime"][order], first)
    place = np.minimum(np.searchsorted(ordered[first], key), len(first) - 1)
    cost = sums(place, columns["cost"] * (ordered[first][place] == key), len(first))
    status, captime = columns["status"][newest], columns["captime"][newest]
    runs = KnownRuns(
        config=columns["config"][newest],
        position=columns["position"][newest],
        kind=_kinds(status, seen, captime),
        seconds=seen,
        captime=captime,
        verdict=columns["verdict"][newest].astype(np.int64),
        cost=cost,
        attempts=columns["attempt"][newest] + 1,
        spent=spent[newest],
    )
    return _with_open(runs, in_flight)


def _kinds(status: IntArray, seen: FloatArray, captime: FloatArray) -> IntArray:
    kind = np.full(len(status), OPEN)
    completed = which_mean(status, lambda each: each.answered)
    stopped = which_mean(status, lambda each: each.counts and each.unfinished and not each.final) | completed
    kind[stopped] = np.where(seen[stopped] >= captime[stopped], CUT, STOPPED)
    # Completed means strictly before the captime.
    kind[completed & (seen < captime)] = ANSWERED
    kind[which_mean(status, lambda each: each.never)] = FAILED
    kind[which_mean(status, lambda each: each.unfinished and each.final)] = STOPPED
    return kind


def _nothing() -> KnownRuns:
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return KnownRuns(none, none, none, nothing, nothing, none, nothing, none, nothing)


def _with_open(runs: KnownRuns, in_flight: Sequence[RunRequest]) -> KnownRuns:
    """Attempts under way, as open runs; a run that is tried again keeps what was seen of it before."""
    fresh = []
    for request in in_flight:
        first, last = np.searchsorted(runs.config, [request.config, request.config + 1]).tolist()
        place = first + int(np.searchsorted(runs.position[first:last], request.instance))
        if place < last and runs.position[place] == request.instance:
            runs.kind[place] = OPEN
        else:
            fresh.append(request)
    if not fresh:
        return runs
    end = float(runs.spent.max(initial=0.0))
    new = KnownRuns(
        config=np.array([request.config for request in fresh]),
        position=np.array([request.instance for request in fresh]),
        kind=np.full(len(fresh), OPEN),
        seconds=np.zeros(len(fresh)),
        captime=np.array([request.captime for request in fresh]),
        verdict=np.full(len(fresh), -1),
        cost=np.zeros(len(fresh)),
        attempts=np.array([request.attempt + 1 for request in fresh]),
        spent=np.full(len(fresh), end),
    )
    joined = KnownRuns(
        *(np.concatenate((getattr(runs, field.name), getattr(new, field.name))) for field in fields(KnownRuns))
    )
    return joined.where(np.lexsort((joined.position, joined.config)))


def sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """The sum of the values of each group."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


def verdict_words(code: int) -> str:
    """The word of a verdict; empty for none."""
    return VERDICTS[code].value if 0 <= code < len(VERDICTS) else ""


# What every run is worth, as an interval that holds whatever happens later; and what follows for each configuration.
#
# The report does not repeat a procedure's decisions. It takes the rows as they are, and bounds every configuration's
# expected utility with mixture betting: valid at all times, for all configurations at once, whatever the procedure
# did, as long as it chose positions without looking at their runs.

# A captime is the drawn one up to a few roundings.
_ROUNDED = 1e-9
# Bins of the scores; rounding them loses at most half of a percent on each side.
_BINS = 201
_MEANS = np.linspace(0.0, 1.0, 501)[1:-1]
# The bins of this many configurations are judged in one stroke.
_STROKE = 64


@dataclass(frozen=True, slots=True)
class CaptimeDraws:
    """How captimes were drawn, where chance drew them.

    Attributes:
        plan: Draws and boost; the longest captime is left open, because the rows say what each run was given.
    """

    plan: RandomCaptimes

    def ends(self, runs: KnownRuns, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Low and high ends of the scores.

        Args:
            runs: The runs.
            worth: u(seconds) of each.
        """
        level = np.zeros(len(runs), dtype=np.int64)
        _, answer_low, answer_high = self.plan.settled(runs.seconds, worth, level, runs.position)
        low = np.where(runs.kind == ANSWERED, answer_low, 0.0)
        high = np.where(runs.kind == ANSWERED, answer_high, self.plan.alive(runs.seconds, level, runs.position))
        # Stopped at the captime that was drawn, not at a shorter one: it has come to nothing.
        drawn = self.plan.captime(level, runs.position)
        reached = (runs.kind == CUT) & (runs.captime >= drawn * (1.0 - _ROUNDED))
        high[reached | (runs.kind == FAILED)] = 0.0
        return low, high

    def kept(self, runs: KnownRuns) -> bool:
        """Whether no run was given more time than the draw of its position allows."""
        drawn = self.plan.captime(np.zeros(len(runs), dtype=np.int64), runs.position)
        return bool((runs.captime <= drawn * (1.0 + _ROUNDED)).all())


def lottery_of(scenario: Mapping[str, Any], utility: Utility, n_configs: int) -> CaptimeDraws | None:
    """How captimes were drawn in a campaign; None if they were not, or if its scenario does not say."""
    name = scenario.get("procedure")
    if name not in PROCEDURES or population_on_record(scenario) is not Population.DRAWN:
        # On a fixed set utilities themselves are bet on.
        return None
    target = scenario.get("target")
    ceiling = target.get("ceiling") if isinstance(target, Mapping) else None
    try:
        problem = Problem(
            n_configs=n_configs,
            utility=utility,
            delta=float(scenario.get("delta", 0.1)),
            epsilon=float(scenario.get("goal", 0.0)),
            captime_first=float(scenario.get("captime_first", 1.0)),
            captime_limit=math.inf if ceiling is None else float(ceiling),
            seed=int(scenario.get("seed", 0)),
        )
        plan = build_procedure(name, REGISTERS, problem, dict(scenario.get("options", {}))).plan
    except (CaptimeError, TypeError, ValueError):
        # A scenario of another version: its runs are still good for what does not depend on draws.
        return None
    if not isinstance(plan, RandomCaptimes):
        return None
    return CaptimeDraws(RandomCaptimes(utility, plan.seed, plan.boost, Schedule(math.inf)))


def utility_of(scenario: Mapping[str, Any]) -> Utility | None:
    """The utility of a campaign; None if its scenario does not say, or if reading it would execute code."""
    text = str(scenario.get("utility", ""))
    if not text or text.startswith("python"):
        return None
    try:
        return parse_utility(text)
    except CaptimeError:
        return None


def score_ends(runs: KnownRuns, utility: Utility, lottery: CaptimeDraws | None) -> tuple[FloatArray, FloatArray]:
    """Between which two numbers the score of each run lies; the mean score is the expected utility."""
    worth = utility(runs.seconds)
    if lottery is not None:
        return lottery.ends(runs, worth)
    low = np.where(runs.kind == ANSWERED, worth, 0.0)
    high = np.where(runs.kind == FAILED, 0.0, worth)
    return low, high


@dataclass(frozen=True, slots=True)
class ScoreIntervals:
    """What is known of every configuration's expected utility.

    Attributes:
        low: Low ends of the scores, run by run.
        high: High ends.
        n: Runs per configuration, open ones included.
        lower: Lower bound per configuration.
        upper: Upper bound.
        estimate: Mean of the scores, the middle of their two ends; not a number without runs.
        delta: All intervals hold at once, at all times, with probability at least 1 - delta.
    """

    low: FloatArray
    high: FloatArray
    n: IntArray
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray
    delta: float

    def ranking(self) -> IntArray:
        """Configurations by what is certain of them, then by estimate: a few lucky runs do not lead to the top."""
        return np.lexsort((-np.nan_to_num(self.estimate, nan=-1.0), -self.lower))


def scores_of(
    runs: KnownRuns, n_configs: int, utility: Utility, lottery: CaptimeDraws | None, delta: float
) -> ScoreIntervals:
    """Scores of all runs, and an interval for every configuration."""
    low, high = score_ends(runs, utility, lottery)
    n = np.bincount(runs.config, minlength=n_configs)
    with np.errstate(invalid="ignore"):
        estimate = sums(runs.config, low + high, n_configs) / (2.0 * n)
    lower, upper = intervals(runs.config, low, high, n_configs, delta)
    return ScoreIntervals(low, high, n, lower, upper, estimate, delta)


def intervals(
    config: IntArray, low: FloatArray, high: FloatArray, n_configs: int, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the means of all configurations at once: half of delta for each side, shared out equally."""
    bound = _bound()
    log_inverse = np.array([math.log(2.0 * n_configs / delta)])
    lower, upper = np.zeros(n_configs), np.ones(n_configs)
    down = _counts(config, bound.bin_down(np.clip(low, 0.0, 1.0)), n_configs)
    up = _counts(config, bound.bin_up(np.clip(high, 0.0, 1.0)), n_configs)
    for first in range(0, n_configs, _STROKE):
        some = slice(first, first + _STROKE)
        lower[some] = bound.lower(down[some], log_inverse)
        upper[some] = bound.upper(up[some], log_inverse)
    return lower, np.maximum(lower, upper)


@lru_cache(maxsize=1)
def _bound() -> BinnedMixture:
    """Its tables are large and always the same."""
    return BinnedMixture(np.linspace(0.0, 1.0, _BINS), _MEANS)


def _counts(config: IntArray, bins: IntArray, n_configs: int) -> IntArray:
    return np.bincount(config * _BINS + bins, minlength=n_configs * _BINS).reshape(n_configs, _BINS)
