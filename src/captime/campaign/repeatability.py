"""Check that a program takes the same time again with the same seed, before a procedure relies on it."""

import math
from dataclasses import dataclass

from captime.certificate import Population
from captime.errors import ScenarioError
from captime.executors.protocol import Executor
from captime.runs import RunOutcome, RunRequest

# Pairs of runs, and by which factor the two of a pair may differ on a busy machine.
PAIRS = 5
_FACTOR = 2.0
# Below this a difference is start-up and clock, not the program.
_SECONDS = 0.05
# The trial's attempts are numbered from here, far from any that counts.
_TRIAL = 1_000_000


@dataclass(frozen=True, slots=True)
class Repeatability:
    """What the trial found.

    Attributes:
        pairs: Times of the first and the second run, of pairs in which at least one finished.
        differ: How many pairs differ by more than noise explains.
    """

    pairs: tuple[tuple[float, float], ...]
    differ: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return self.differ <= len(self.pairs) // 4


def try_twice(executor: Executor, captime: float, n_pairs: int = PAIRS) -> Repeatability:
    """Make a few runs of the first configuration twice each; nothing of it counts.

    Args:
        executor: Idle slots of the program.
        captime: For each of these runs, in seconds.
        n_pairs: How many runs are made twice.
    """
    requests = [RunRequest(0, position, captime, _TRIAL + again) for position in range(n_pairs) for again in (0, 1)]
    executor.submit(requests)
    found: dict[RunRequest, RunOutcome] = {}
    while len(found) < len(requests) and (outcomes := executor.collect()):
        found |= {outcome.request: outcome for outcome in outcomes}
    pairs = [
        (_time(found[first]), _time(found[second]))
        for first, second in zip(requests[::2], requests[1::2], strict=True)
        if first in found and second in found
    ]
    told = tuple(pair for pair in pairs if min(pair) < math.inf)
    return Repeatability(told, sum(_differ(*pair) for pair in told))


def _time(outcome: RunOutcome) -> float:
    """When it ended; infinite if it was cut."""
    return math.inf if outcome.status.meaning.unfinished else outcome.runtime


def _differ(first: float, second: float) -> bool:
    shorter, longer = sorted((first, second))
    return longer > _FACTOR * shorter + _SECONDS


def refuse_if_not(found: Repeatability, procedure: str, population: Population = Population.DRAWN) -> None:
    """Refuse a procedure that repeats runs if the program was seen not to repeat itself."""
    if not found.holds:
        shown = ", ".join(f"{first:.3g} s and {second:.3g} s" for first, second in found.pairs[:3])
        if population is Population.THESE:
            raise ScenarioError(
                "the claim about exactly these instances needs runs that take the same time again with the same seed, "
                f"but {found.differ} of {len(found.pairs)} pairs differ: {shown}. Say instances.population = 'drawn', "
                "or target.repeatable = true if it does repeat itself"
            )
        raise ScenarioError(
            f"procedure {procedure} repeats cut runs with longer captimes, but the program did not take the same time "
            f"again with the same seed ({found.differ} of {len(found.pairs)} pairs differ: {shown}). Say "
            "target.repeatable = false and use procedure race, which then makes every run once; or say "
            "target.repeatable = true if it does repeat itself"
        )
