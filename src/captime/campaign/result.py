"""The result of a campaign: its outcomes counted, its certificate, and what the ledger can tell of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from captime.arrays import FloatArray
from captime.certificate import Certificate
from captime.errors import CaptimeError
from captime.ledger import LedgerReader
from captime.ledger.file_watch import Rescued
from captime.ledger.reading import FLAT_COLUMNS, which_mean
from captime.live import LiveOutcome
from captime.runs import RunOutcome
from captime.scenario import Scenario
from captime.scenario.spec import CampaignQuestion

# What became of all the runs, counted: by verdict, by warning; and whether the measurements can be trusted.

# More runs than this share are disturbed, by more than chance explains at this level.
_DEGRADED, _BY_CHANCE = 0.01, 0.01
_DISTURBANCES = ("contended", "drifted", "swapping", "throttled")


def disturbing(flags: Mapping[str, int], counted: int) -> list[str]:
    """Return the warnings that too many runs carry: times are doubtful, and the certificate says so.

    A few runs are disturbed on every machine. If 1 % of all runs were, that many or more of `counted` would be flagged
    with a probability of less than 1 %: 1 of 56 (0.43) says nothing, 4 of 56 (0.002) do.
    """
    return [flag for flag in _DISTURBANCES if _too_many(flags.get(flag, 0), counted)]


def _too_many(flagged: int, counted: int) -> bool:
    if flagged <= _DEGRADED * counted:
        return False
    return float(bdtrc(flagged - 1, max(counted, flagged), _DEGRADED)) < _BY_CHANCE


@dataclass(slots=True)
class OutcomeCounts:
    """Counts of outcomes.

    Attributes:
        verdicts: How often each verdict was given, by its word.
        flags: How often each warning was given.
        counted: Runs that count.
        answered: Those of them that answered.
        judged: Those of them of which a program's own end is known; recorded runtimes are no program's.
        hosts: Where they ran.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    answered: int = 0
    judged: int = 0
    hosts: Counter[str] = field(default_factory=Counter)

    def take(self, outcomes: Sequence[RunOutcome]) -> None:
        """Count these too."""
        for outcome in outcomes:
            self.verdicts[outcome.status.value if outcome.verdict is None else outcome.verdict.value] += 1
            if not outcome.status.meaning.counts:
                continue
            self.counted += 1
            self.answered += outcome.status.meaning.answered
            self.judged += outcome.verdict is not None
            if outcome.measured is not None:
                self.flags.update(outcome.measured.flags)
                self.hosts[outcome.measured.host] += 1

    @property
    def disturbed_by(self) -> list[str]:
        """Why times that were measured here are doubtful, if they are: warnings that many runs carry."""
        return disturbing(self.flags, self.counted)


# What a campaign on real programs came to.


@dataclass(frozen=True, slots=True, repr=False)
class CampaignResult:
    """A campaign that has ended, for now: it can always be resumed.

    Attributes:
        question: What was asked.
        outcome: What came out.
        ledger: The file that has every run in it.
        head: Hash of the ledger's last row.
        census: What became of the runs.
        bound: Name of the bound that was used.
        repeats: Whether cut runs were made again with longer captimes.
        isolation: How runs are kept together, so that none of their processes survives.
        jobs: How many runs were under way at once.
        order: `arrival`, or `fixed` if the answer depends on outcomes alone.
        resumed: Whether there were runs on record already.
        place: On which machines time was measured, in words; "" for this one.
        learned: What is to be said about earlier campaigns that taught the model; "" if there are none.
        warnings: What happened to the ledger that the user should know.
        trouble: Why the ledger could not be written, or does not hold what the certificate rests on, or why the machine
            could not be used any longer; None if all is well. The certificate is valid all the same: it rests on runs
            that were written down before.
        means: What each configuration seems to be worth; not a number where nothing was run. No bound: for warnings.
        rescued: The copy of the ledger that was saved when its own file was lost.
        scenario: What was asked for, with the function itself; None unless `captime.configure` was called.
    """

    question: CampaignQuestion
    outcome: LiveOutcome = field(repr=False)
    ledger: Path
    head: str
    census: OutcomeCounts
    bound: str
    repeats: bool
    isolation: str
    jobs: int
    order: str
    resumed: bool
    place: str = ""
    learned: str = ""
    warnings: tuple[str, ...] = ()
    trouble: CaptimeError | None = None
    rescued: Rescued | None = None
    scenario: Scenario | None = field(default=None, repr=False, compare=False)
    means: FloatArray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def __repr__(self) -> str:
        """Return one line: the recommended configuration, what is certified of it, and where the runs are."""
        held = self.certificate
        return (
            f"<{type(self).__name__}: {self.config_name!r}, epsilon {held.epsilon:.4f}, delta {held.delta:g}, "
            f"{int(self.outcome.runs.sum()):,} runs, ledger {str(self.record)!r}>"
        )

    @property
    def record(self) -> Path:
        """The file that has every run in it: the ledger, or the copy that was saved when the ledger was lost."""
        return self.ledger if self.rescued is None else self.rescued.path

    @property
    def certificate(self) -> Certificate:
        """The statement."""
        return self.outcome.certificate

    @property
    def config_name(self) -> str:
        """Name of the recommended configuration."""
        return self.question.configs[self.certificate.config].name

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the recommended configuration: what a function is called with."""
        row = self.question.configs[self.certificate.config]
        originals: Mapping[str, Mapping[str, object]] = {} if self.scenario is None else self.scenario.originals
        return originals.get(row.name, row.parameters)

    @property
    def cpu_seconds(self) -> float:
        """What all runs cost, lost ones included."""
        return float(self.outcome.seconds.sum())

    def runs(self) -> dict[str, NDArray[Any]]:
        """Return every run as columns, with names and words: `pandas.DataFrame(result.runs())` makes a table of it.

        Beside the columns of `captime export` there are `counts` (False for outcomes of attempts that had been given
        up), `cpu_seconds`, `wall_seconds`, and `utility`: u(runtime) of an answer, 0 of a failed run, and not a number
        of a run that was capped, cancelled or lost, because it is not known. What was not measured is None, -1 in
        columns of nanoseconds and bytes, or not a number.
        """
        with LedgerReader(self.record) as reader, reader.snapshot():
            columns, rows = reader.outcomes(), list(reader.flat())
        words = {name: _objects(column) for name, column in zip(FLAT_COLUMNS, zip(*rows, strict=True), strict=False)}
        words = words or {name: np.empty(0, dtype=np.object_) for name in FLAT_COLUMNS}
        status, runtime = columns["status"], columns["runtime"]
        answered = which_mean(status, lambda each: each.answered) & (runtime < columns["captime"])
        utility = np.full(len(runtime), np.nan)
        utility[answered] = self.question.utility(runtime[answered])
        utility[which_mean(status, lambda each: each.never)] = 0.0
        return {
            **columns,
            "config_name": words["config_name"],
            "instance": words["instance"],
            "seed": words["seed"].astype(np.int64),
            # The words of the statuses and verdicts; none is the empty text.
            "status": words["status"],
            "verdict": _objects(word or "" for word in words["verdict"]),
            "counts": ~columns["orphan"],
            "utility": utility,
            "cpu_seconds": _seconds(columns["cpu_ns"]),
            "wall_seconds": _seconds(columns["wall_ns"]),
            "reported": np.array([np.nan if each is None else each for each in words["reported"]], dtype=np.float64),
            **{name: words[name] for name in ("exit_code", "signal", "answer", "host", "flags", "detail")},
            **{name: words[name] for name in ("switches", "leftovers", "output_bytes")},
        }


def _objects(values: Iterable[object]) -> NDArray[Any]:
    listed = list(values)
    column = np.empty(len(listed), dtype=np.object_)
    column[:] = listed
    return column


def _seconds(nanoseconds: NDArray[Any]) -> FloatArray:
    """Return seconds; not a number where nothing was measured."""
    return np.where(nanoseconds < 0, np.nan, nanoseconds / 1e9)
