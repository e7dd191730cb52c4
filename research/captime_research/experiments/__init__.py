"""The experiments: the paper's figures, its follow-up's, and how soon whose answer is good. This is the register.

A member computes rows for one seed from a `Setting`; pictures are drawn from rows elsewhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from captime_research.experiments.follow_up import doubling, optimism, time_per_configuration
from captime_research.experiments.gap import gap, gap_uniform
from captime_research.experiments.growing import many
from captime_research.experiments.paper import naive_by_captime, uniform_against_naive, up_against_naive
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import Setting


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure.

    Attributes:
        compute: `compute(setting, seed)` gives rows.
        about: What it shows.
        x: What stands on the horizontal axis: `captime`, `epsilon`, `utility`, `phase` or `time`.
        delta: Allowed probability of a wrong certificate, as in the paper that has the figure.
    """

    compute: Callable[[Setting, int], Iterator[Row]]
    about: str
    x: str
    delta: float = 0.1


EXPERIMENTS: dict[str, Experiment] = {
    "figure-1": Experiment(naive_by_captime, "the paper's Figure 1: what Naive costs by captime", "captime"),
    "figure-2": Experiment(up_against_naive, "the paper's Figure 2: UP against Naive, log-Laplace", "epsilon"),
    "figure-3": Experiment(uniform_against_naive, "the paper's Figure 3: UP against Naive, uniform", "epsilon"),
    "follow-up-1": Experiment(optimism, "OUP against UP and Naive, two utilities", "epsilon"),
    "follow-up-2": Experiment(time_per_configuration, "CPU time per configuration", "utility"),
    "follow-up-3": Experiment(many, "COUP against OUP run afresh on every pool", "phase", delta=0.01),
    "follow-up-6": Experiment(doubling, "rules for doubling captimes", "epsilon"),
    "gap": Experiment(gap, "how good whose answer is, and when; all baselines, log-Laplace", "time", delta=0.05),
    "gap-uniform": Experiment(gap_uniform, "the same with the uniform utility", "time", delta=0.05),
}

__all__ = ["EXPERIMENTS", "Experiment", "Row", "Setting"]
