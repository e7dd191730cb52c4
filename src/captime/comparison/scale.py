"""A time scale where the user names none: from a few trial runs that do not count."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from captime.campaign.assembly import question_of
from captime.campaign.measurement import survey_of
from captime.campaign.run import run_campaign
from captime.ledger import LedgerReader
from captime.report.known_runs import ANSWERED, FAILED, known_runs
from captime.scenario import Scenario
from captime.utilities.durations import duration_text
from captime.utilities.suggest import half_after

# Captimes that are tried, and on how many instances: many short runs first, few long ones only if they are needed.
_TRIALS = ((1.0, 12), (8.0, 8), (64.0, 4))
_LEAST = 0.001
# At most this share of the budget is spent before the runs that count.
_SHARE_OF_BUDGET = 0.2
# Trial runs are made on at most one in this many of the instances there are, and on at least two instances.
_ONE_IN, _FEWEST = 4, 2


@dataclass(frozen=True, slots=True)
class Proposal:
    """A utility that follows from trial runs.

    Attributes:
        utility: Its text.
        words: What was seen and what follows, in a sentence.
    """

    utility: str
    words: str


def proposed_utility(
    scenario: Scenario, budget: float = math.inf, interrupted: Callable[[], bool] = lambda: False
) -> Proposal:
    """Return a utility of which half is gone at the usual time of these commands on these instances.

    A few instances are drawn with a seed that the comparison never uses, so that the scale does not depend on what the
    comparison will draw. The runs are made in a ledger that is thrown away.

    Args:
        scenario: What is to be compared, with any utility.
        budget: Wall-clock seconds of the whole comparison.
        interrupted: Whether the user wants an end.
    """
    times: list[float] = []
    captime = longest = math.inf
    there_are = scenario.stream.n_instances
    for usual_captime, usual_instances in _TRIALS:
        most = usual_instances if there_are is None else max(_FEWEST, there_are // _ONE_IN)
        instances = min(usual_instances, most)
        longest = _SHARE_OF_BUDGET * budget * scenario.jobs / (instances * len(scenario.configurations))
        captime = min(usual_captime, longest)
        times = _trial(scenario, captime, instances, interrupted)
        if sum(map(math.isfinite, times)) > len(times) / 2 or captime >= longest or interrupted():
            break
    answered = [seconds for seconds in times if math.isfinite(seconds)]
    usual = float(np.median(times)) if times else math.inf
    if math.isfinite(usual):
        seen = f"half of {len(times)} trial runs answered within {duration_text(usual)}"
    else:
        usual = 4.0 * captime
        seen = f"only {len(answered)} of {len(times)} trial runs answered within {duration_text(captime)}"
    scale = rounded_scale(usual)
    words = (
        f"no utility is given, and {seen}; so an answer is assumed to be worth half as much after "
        f"{duration_text(scale)}. The trial runs do not count. Use --half-after or --deadline to choose another"
    )
    return Proposal(str(half_after(scale)), words)


def rounded_scale(seconds: float) -> float:
    """Return a number of seconds that people would choose: 1, 2 or 5 times a power of ten, at least a millisecond.

    >>> [rounded_scale(seconds) for seconds in (0.0, 0.013, 0.4, 6.9, 33.0)]
    [0.001, 0.01, 0.5, 5.0, 50.0]
    """
    if seconds <= _LEAST:
        return _LEAST
    power = 10.0 ** math.floor(math.log10(seconds))
    nice = min((1.0, 2.0, 5.0, 10.0), key=lambda each: abs(math.log(each * power / seconds)))
    return float(f"{nice * power:.6g}")


def _trial(scenario: Scenario, captime: float, instances: int, interrupted: Callable[[], bool]) -> list[float]:
    """Return the times of the trial runs; infinite for those that were capped, failures left out."""
    parts = replace(scenario, wishes=scenario.wishes.model_copy(update={"seed": None})).build()
    asked = survey_of(question_of(parts), captime, instances)
    with TemporaryDirectory(prefix="captime-") as folder:
        path = Path(folder) / "trial.ledger"
        manner = replace(parts.settings, conflicts=False, check_repeatability=False)
        run_campaign(asked, path, manner, interrupted=interrupted)
        with LedgerReader(path) as reader:
            runs = known_runs(reader.outcomes())
    runs = runs.where(np.flatnonzero(runs.kind != FAILED))
    return [float(each) for each in np.where(runs.kind == ANSWERED, runs.seconds, math.inf)]
