"""Measuring a table: every configuration on every instance up to a captime, to be simulated on at will."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.bounds import Mixture
from captime.campaign.result import CampaignResult
from captime.campaign.validation import Worth, score_ends
from captime.errors import CaptimeError, ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.reading import Columns, which_mean
from captime.procedures.survey import SURVEY, Survey
from captime.runs import Meaning
from captime.scenario.spec import CampaignQuestion
from captime.sources import RuntimeTable


def check_sampling(question: CampaignQuestion) -> None:
    """Refuse instances that are drawn with replacement: a table has every instance once."""
    if question.stream.describe().get("sampling") == "replace":
        raise ScenarioError(
            'instances.sampling is "replace", which draws the same instance again and again; expected "shuffle" or '
            '"given", because a table has every instance once. Change it for the measuring'
        )


def survey_of(question: CampaignQuestion, captime: float, instances: int | None = None) -> CampaignQuestion:
    """Return the question that a ledger of `measure` belongs to: all runs up to that captime, without a race.

    Args:
        question: Program, instances and configurations.
        captime: For every run, in seconds.
        instances: How many stream positions, all of them if it is left out; needed where the stream has no end.
    """
    if not (np.isfinite(captime) and captime > 0):
        raise ScenarioError(f"the captime for every run is {captime!r} s, expected more than 0; try 10s")
    return replace(
        question,
        procedure=SURVEY,
        options={},
        epsilon=0.0,
        maker=partial(Survey, captime=captime, instances=instances),
        identity={
            **{name: value for name, value in question.identity.items() if name != "rules"},
            "procedure": SURVEY,
            "options": {"captime": captime, "instances": instances},
        },
    )


def table_of(path: Path, name: str, captime: float) -> RuntimeTable:
    """Return what a ledger of a survey has measured, as a table: only positions on which every run is known.

    A run that was cut is known as "at least the captime"; one that failed never finishes. A run that was given up (by
    the wall-clock guard, or lost too often) is known neither way, and a table has no word for that: its instance is
    left out, and a note says how many there are.
    """
    measured, unfinished = measured_runs(path, name, captime)
    given_up = ~np.isnan(unfinished)
    if not given_up.any():
        return measured
    known = np.flatnonzero(~given_up.any(axis=0))
    if len(known) == 0:
        raise ScenarioError(
            f"{path}: on every instance some run was given up by the wall-clock guard or lost too often, so that no "
            'table can be made; if the program waits rather than computes, measure it with clock = "wall"'
        )
    left_out = measured.n_instances - len(known)
    note = (
        f"{left_out} instances are left out because {np.count_nonzero(given_up)} runs on them were given up by the "
        "wall-clock guard or lost; what is simulated on this table is about the others"
    )
    return RuntimeTable.build(
        name,
        measured.configs,
        [measured.instances[position] for position in known.tolist()],
        np.ascontiguousarray(measured.seconds[:, known]),
        recorded_limit=captime,
        notes=[*measured.notes, note],
    )


def measured_runs(path: Path, name: str, captime: float, *, unbroken: bool = False) -> tuple[RuntimeTable, FloatArray]:
    """Return all runs of the survey in this file; see `runs_of_survey`."""
    with LedgerReader(path) as reader:
        return runs_of_survey(reader, name, captime, unbroken=unbroken)


def runs_of_survey(
    reader: LedgerReader, name: str, captime: float, *, unbroken: bool = False
) -> tuple[RuntimeTable, FloatArray]:
    """Return all runs of a survey on the positions where none is missing, those that were given up included.

    Args:
        reader: The ledger.
        name: Of the table.
        captime: For every run, in seconds.
        unbroken: Only positions before the first one with a missing run. In a survey that was stopped, long runs are
            missing more often than short ones, so the other positions behind it are no random choice of instances.

    Returns:
        The table, in which a given-up run stands as cut, and of the same shape the CPU seconds after which given-up
        runs were last seen unfinished; not a number for all other runs.
    """
    configs = [config.name for config in reader.configs]
    samples, columns = reader.sample_rows(), reader.outcomes()
    clock = reader.scenario.get("clock", "cpu")
    seconds, unfinished = _seconds(columns, len(configs), captime)
    broken = np.isnan(seconds).any(axis=0)
    whole = np.flatnonzero(~np.maximum.accumulate(broken) if unbroken else ~broken)
    if len(whole) == 0:
        raise ScenarioError(
            f"{reader.path}: there is no instance yet on which every configuration was run; continue measuring"
        )
    named = {sample.position: sample.instance for sample in samples}
    notes = [f"measured by captime measure; captime {captime:g} s on the {clock} clock"]
    if len(whole) < len(samples):
        notes.append(f"{len(samples) - len(whole)} instances are left out because some of their runs are missing")
    table = RuntimeTable.build(
        name,
        configs,
        [named[position] for position in whole.tolist()],
        np.ascontiguousarray(seconds[:, whole]),
        recorded_limit=captime,
        notes=notes,
    )
    return table, unfinished[:, whole]


def _seconds(columns: Columns, n_configs: int, captime: float) -> tuple[FloatArray, FloatArray]:
    """By configuration and position: runtimes, not a number where nothing is known; when given-up runs were last seen.

    A given-up run has the captime as its runtime: it is unfinished, and when it would have ended is not known.
    """
    status, runtime = columns["status"], columns["runtime"]

    def those(wanted: Callable[[Meaning], bool]) -> BoolArray:
        return which_mean(status, wanted) & ~columns["orphan"]

    answered, given_up = those(lambda each: each.answered), those(lambda each: each.unfinished and each.final)
    value = np.full(len(status), np.nan)
    value[answered] = np.minimum(runtime, captime)[answered]
    # A run that was stopped before its captime was interrupted, and is made again; it says nothing here.
    cut = those(lambda each: each.counts and each.unfinished and not each.final)
    value[cut & (runtime >= captime)] = captime
    value[those(lambda each: each.never)] = np.inf
    value[given_up] = captime
    known = ~np.isnan(value)
    seconds = np.full((n_configs, int(columns["position"].max(initial=-1)) + 1), np.nan)
    seconds[columns["config"][known], columns["position"][known]] = value[known]
    unfinished = np.full(seconds.shape, np.nan)
    given_up &= runtime < captime
    unfinished[columns["config"][given_up], columns["position"][given_up]] = runtime[given_up]
    return seconds, unfinished


# A few configurations on the same instances, one instance after the other, until their differences are known.
#
# All runs have one captime. What is looked at is always a prefix of the stream on which no run is missing, so that
# intervals which hold for all lengths at once may be looked at whenever one likes.

DECIDED = "decided"
"""Why a comparison ended: what was asked is known."""
# Looking at the runs takes at most about this share of the time, and happens no more often than this, in seconds.
_SHARE, _EVERY = 0.1, 0.5

Decided = Callable[[FloatArray, FloatArray], bool]
"""Whether enough is known, from the low and the high ends of the utilities by configuration and position."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison has seen.

    Attributes:
        low: Utilities by configuration and position; a run that was cut counts as worth nothing.
        high: Utilities by configuration and position; a run that was cut counts as if it had answered just then.
        stopped: `decided`, or why the runs ended, by the word that ledgers have for it.
        n_runs: Runs in the ledger, those behind the prefix included.
        cpu_seconds: What they cost.
        trouble: What went wrong at the end, if something did.
    """

    low: FloatArray
    high: FloatArray
    stopped: str
    n_runs: int
    cpu_seconds: float
    trouble: CaptimeError | None = None

    @property
    def n_instances(self) -> int:
        """How many instances all configurations were run on."""
        return int(self.low.shape[1])


def compare_until(
    question: CampaignQuestion,
    path: Path,
    decided: Decided,
    captime: float,
    run: Callable[[Callable[[], bool]], CampaignResult],
) -> Compared:
    """Run the configurations of a question on its instances until enough is known; resume what the ledger holds.

    Args:
        question: Program, instances and configurations; its procedure is not asked.
        path: The ledger of these runs.
        decided: Whether enough is known.
        captime: Of every run, in seconds.
        run: Makes the runs of the survey until the function that it is given returns True.
    """
    watch = _Watch(path, question, captime, decided)
    if path.exists() and watch.look():
        return watch.compared(DECIDED)
    result = run(watch.due)
    if result.trouble is not None and watch.empty():
        raise result.trouble
    known = watch.done or watch.look()
    return watch.compared(DECIDED if known else result.outcome.stopped, result.trouble)


class _Watch:
    """Looks at the runs of a ledger now and then, and remembers whether enough was known."""

    def __init__(self, path: Path, question: CampaignQuestion, captime: float, decided: Decided) -> None:
        self._path = path
        self._question = question
        self._captime = captime
        self._decided = decided
        self._next = time.monotonic() + _EVERY
        self.done = False

    def due(self) -> bool:
        """Tell whether enough is known, looking again if the last look was long enough ago."""
        if not self.done and time.monotonic() >= self._next:
            begun = time.monotonic()
            self.look()
            ended = time.monotonic()
            self._next = ended + max(_EVERY, (ended - begun) / _SHARE)
        return self.done

    def look(self) -> bool:
        """Look at the runs there are."""
        with LedgerReader(self._path) as reader:
            ends = self._ends(reader)
        self.done = ends is not None and self._decided(*ends)
        return self.done

    def empty(self) -> bool:
        """Tell whether there is no instance yet on which all configurations were run."""
        with LedgerReader(self._path) as reader:
            return self._ends(reader) is None

    def compared(self, stopped: str, trouble: CaptimeError | None = None) -> Compared:
        """Return everything there is."""
        with LedgerReader(self._path) as reader:
            ends, counts = self._ends(reader), reader.counts().values()
        if ends is None:
            raise ScenarioError(
                f"{self._path}: there is no instance yet on which every configuration was run, so nothing can be said; "
                "run the same command again with more time"
            )
        runs, seconds = sum(count for count, _ in counts), sum(cost for _, cost in counts)
        return Compared(*ends, stopped, runs, seconds, trouble)

    def _ends(self, reader: LedgerReader) -> tuple[FloatArray, FloatArray] | None:
        try:
            table, unfinished = runs_of_survey(reader, "paired", self._captime, unbroken=True)
        except ScenarioError:
            return None  # no instance yet
        return score_ends(table, self._question.utility, unfinished)


def difference(low: FloatArray, high: FloatArray, first: int, second: int, log_inverse: float) -> Worth:
    """Bound by how much the expected utility of one configuration exceeds that of another, for all lengths at once.

    Args:
        low: Low ends of the utilities, by configuration and position.
        high: High ends.
        first: The one, by row.
        second: The other one.
        log_inverse: ln(1 / failure probability) of each of the two ends.
    """
    less, more = low[first] - high[second], high[first] - low[second]
    # Differences lie between -1 and 1; the bound is about numbers between 0 and 1.
    lower, upper = Mixture()((1.0 + less) / 2.0, (1.0 + more) / 2.0, log_inverse)
    return Worth(float(less.mean()), float(more.mean()), 2.0 * lower - 1.0, 2.0 * upper - 1.0)


def log_inverse_of(delta: float, ends: int) -> float:
    """Return ln(1 / failure probability) of one end if `ends` of them share delta."""
    return math.log(ends / delta)
