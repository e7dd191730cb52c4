"""What a campaign on real programs came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from captime.arrays import FloatArray
from captime.campaign.census import Census
from captime.campaign.question import Question
from captime.certificate import Certificate
from captime.errors import CaptimeError
from captime.ledger import LedgerReader
from captime.ledger.file_watch import Rescued
from captime.ledger.reading import STATUSES, VERDICTS
from captime.live import LiveOutcome
from captime.scenario import Scenario


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """A campaign that has ended, for now: it can always be gone on with.

    Attributes:
        question: What was asked.
        outcome: What came out.
        ledger: The file that has every run in it.
        head: Hash of the ledger's last row.
        census: What became of the runs.
        bound: Name of the bound that was used.
        repeats: Whether cut runs were made again with longer captimes.
        isolation: How runs are kept together, so that none of their processes survives.
        jobs: How many runs went on at once.
        order: `arrival`, or `fixed` if the answer depends on outcomes alone.
        resumed: Whether there were runs on record already.
        place: On which machines time was measured, in words; "" for this one.
        learned: What is to be said about earlier campaigns that taught the model; "" if there are none.
        warnings: What happened to the ledger that somebody should know of.
        trouble: Why the ledger could not be written, or does not hold what the certificate rests on, or why the machine
            could not be used any longer; None if all is well. The certificate is valid all the same: it rests on runs
            that were written down before.
        means: What each configuration seems to be worth; not a number where nothing was run. No bound: for warnings.
        rescued: The copy of the ledger that was saved when its own file was lost.
        scenario: What was asked for, with the function itself; None unless `captime.configure` was called.
    """

    question: Question
    outcome: LiveOutcome = field(repr=False)
    ledger: Path
    head: str
    census: Census
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
        return self.question.configs[self.certificate.config].parameters

    @property
    def cpu_seconds(self) -> float:
        """What all runs cost, lost ones included."""
        return float(self.outcome.seconds.sum())

    def runs(self) -> dict[str, NDArray[Any]]:
        """Every run as columns, with names and words: `pandas.DataFrame(result.runs())` makes a table of it."""
        with LedgerReader(self.record) as reader:
            columns, samples = reader.outcomes(), reader.samples()
            names = np.array([config.name for config in reader.configs], dtype=np.object_)
        instances = np.empty(int(samples["position"].max(initial=-1)) + 1, dtype=np.object_)
        instances[samples["position"]] = samples["instance"]
        # The words of the statuses and verdicts; the last one is for "none".
        statuses = np.array([*(status.value for status in STATUSES), ""], dtype=np.object_)
        verdicts = np.array([*(verdict.value for verdict in VERDICTS), ""], dtype=np.object_)
        return {
            **columns,
            "config_name": names[columns["config"]],
            "instance": instances[columns["position"]],
            "status": statuses[columns["status"]],
            "verdict": verdicts[columns["verdict"]],
        }
