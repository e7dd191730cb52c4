"""On other instances: what configurations are worth there, by how much one beats another, and what was only luck.

Every configuration is run on every held-out instance up to one captime. Means, and differences on the same instances,
come with intervals that hold together with the probability asked for.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.bounds import Mixture
from captime.budget import check_delta
from captime.campaign.question import Question
from captime.errors import TargetProgramError
from captime.sources import RuntimeTable
from captime.utilities import Utility

_WORTH_LITTLE = 0.01


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of a mean: what was seen, and what follows from it.

    Attributes:
        seen_low: Mean of the low ends: runs that were cut count as worth nothing.
        seen_high: Mean of the high ends: they count as if they had answered just then.
        low: Lower bound.
        high: Upper bound.
    """

    seen_low: float
    seen_high: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Validation:
    """What came out on the held-out instances.

    Attributes:
        n_instances: How many there were.
        delta: Allowed probability that any of the intervals is wrong.
        worth: Of every configuration, by name.
        better: By how much the first configuration beats each of the others, on the same instances, by name.
    """

    n_instances: int
    delta: float
    worth: Mapping[str, Worth]
    better: Mapping[str, Worth]


def validation_of(
    table: RuntimeTable, utility: Utility, delta: float, unfinished: FloatArray | None = None
) -> Validation:
    """Compare the configurations of a table that was measured on held-out instances; the first one with all others.

    Args:
        table: The runs.
        utility: What answers are worth.
        delta: Allowed probability that any interval is wrong.
        unfinished: Of the shape of the table: seconds after which runs that were given up were last seen unfinished;
            not a number for all other runs. Left out: none was given up.
    """
    check_delta(delta)
    low, high = score_ends(table, utility, unfinished)
    others = table.configs[1:]
    # Two ends for each mean and for each difference, all of them at once.
    log_inverse = math.log(2 * (len(table.configs) + len(others)) / delta)
    worth = {
        name: _worth(low[row], high[row], log_inverse, lambda value: value) for row, name in enumerate(table.configs)
    }
    better = {
        # Differences lie between -1 and 1; the bound is about numbers between 0 and 1.
        name: _worth(
            (1.0 + low[0] - high[row]) / 2.0,
            (1.0 + high[0] - low[row]) / 2.0,
            log_inverse,
            lambda value: 2.0 * value - 1.0,
        )
        for row, name in enumerate(others, start=1)
    }
    return Validation(low.shape[1], delta, worth, better)


def usual_captime(question: Question) -> float:
    """Return where an answer is worth next to nothing; a longer captime tells nothing about a mean."""
    return min(question.ceiling, float(question.utility.inverse(np.array(_WORTH_LITTLE))))


def refuse_if_silent(table: RuntimeTable, question: Question) -> None:
    """Refuse to call it a success if no run has answered: most likely these are no instances of that kind."""
    if (table.seconds < table.limit).any():
        return
    cut = int(np.count_nonzero(np.isfinite(table.seconds)))
    element = question.stream.at(0)
    raise TargetProgramError(
        f"none of the {table.seconds.size:,} runs has answered ({cut:,} were cut or given up, "
        f"{table.seconds.size - cut:,} failed), so nothing is known about the configurations here. Are these "
        "instances of the kind that the campaign was run on? "
        f"{question.program.how_started(0, element.instance, element.seed)}"
    )


def score_ends(
    table: RuntimeTable, utility: Utility, unfinished: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return utilities as intervals: an answer is worth what it is, a failure nothing, a cut run up to u(captime).

    A run that was given up after s seconds is worth anything from 0 to u(s).
    """
    cut = table.seconds >= table.limit
    cut &= np.isfinite(table.seconds)
    worth = utility(table.seconds)
    low = np.where(cut, 0.0, worth)
    high = np.where(cut, utility(np.array(table.limit)), worth)
    if unfinished is not None:
        given_up = ~np.isnan(unfinished)
        low[given_up] = 0.0
        high[given_up] = utility(unfinished[given_up])
    return low, high


def _worth(low: FloatArray, high: FloatArray, log_inverse: float, scale: Callable[[float], float]) -> Worth:
    lower, upper = Mixture()(low, high, log_inverse)
    return Worth(scale(float(low.mean())), scale(float(high.mean())), scale(lower), scale(upper))
