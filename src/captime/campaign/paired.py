"""A few configurations on the same instances, one instance after the other, until their differences are known.

All runs have one captime. What is looked at is always a prefix of the stream on which no run is missing, so that
intervals which hold for all lengths at once may be looked at whenever one likes.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from captime.arrays import FloatArray
from captime.bounds import Mixture
from captime.campaign.measurement import measured_runs, survey_of
from captime.campaign.question import Question
from captime.campaign.run import MakeExecutor, run_campaign
from captime.campaign.validation import Worth, score_ends
from captime.errors import CaptimeError, ScenarioError
from captime.ledger import LedgerReader
from captime.live import Observer
from captime.scenario.parts import RunSettings

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


def _never() -> bool:
    return False


def compare_until(
    question: Question,
    path: Path,
    decided: Decided,
    *,
    captime: float,
    instances: int | None = None,
    manner: RunSettings | None = None,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = _never,
    make_executor: MakeExecutor | None = None,
) -> Compared:
    """Run the configurations of a question on its instances until enough is known; resume what the ledger holds.

    Args:
        question: Program, instances and configurations; its procedure is not asked.
        path: The ledger of these runs.
        decided: Whether enough is known.
        captime: Of every run, in seconds.
        instances: The most stream positions; needed where the stream has no end.
        manner: How it is carried out.
        observer: Called after every lap.
        interrupted: Asked before every lap; True stops.
        make_executor: Where runs happen.
    """
    watch = _Watch(path, question, captime, decided)
    if path.exists() and watch.look():
        return watch.compared(DECIDED)
    surveyed = survey_of(question, captime, instances)
    result = run_campaign(
        surveyed,
        path,
        manner,
        observer=observer,
        interrupted=lambda: interrupted() or watch.due(),
        make_executor=make_executor,
    )
    if result.trouble is not None and watch.empty():
        raise result.trouble
    known = watch.done or watch.look()
    return watch.compared(DECIDED if known else result.outcome.stopped, result.trouble)


class _Watch:
    """Looks at the runs of a ledger now and then, and remembers whether enough was known."""

    def __init__(self, path: Path, question: Question, captime: float, decided: Decided) -> None:
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
        ends = self._ends()
        self.done = ends is not None and self._decided(*ends)
        return self.done

    def empty(self) -> bool:
        """Tell whether there is no instance yet on which all configurations were run."""
        return self._ends() is None

    def compared(self, stopped: str, trouble: CaptimeError | None = None) -> Compared:
        """Return everything there is."""
        ends = self._ends()
        if ends is None:
            raise ScenarioError(
                f"{self._path}: there is no instance yet on which every configuration was run, so nothing can be said; "
                "run the same command again with more time"
            )
        with LedgerReader(self._path) as reader:
            counts = reader.counts().values()
        runs, seconds = sum(count for count, _ in counts), sum(cost for _, cost in counts)
        return Compared(*ends, stopped, runs, seconds, trouble)

    def _ends(self) -> tuple[FloatArray, FloatArray] | None:
        try:
            table, unfinished = measured_runs(self._path, "paired", self._captime, unbroken=True)
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
