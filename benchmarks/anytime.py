"""How fast epsilon falls without a goal, by the moment at which the race is stopped: as it is, and by upper bounds.

"By upper bounds" is the schedule that suits a goal just as well: the most hopeful challenger first, and no scout for a
goal out of sight. Goal 0, one worker, sampling with replacement. Usage: python benchmarks/anytime.py --seeds 3
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from captime import RuntimeTable, parse_utility, read_table
from captime.arrays import FloatArray
from captime.drive import drive
from captime.procedures import Problem
from captime.procedures.race import Race
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of

UTILITY = parse_utility("log-laplace(60, 1)")
DELTA = 0.1
DAY = 86_400.0


class ByUpperBounds(Race):
    """The most hopeful challenger first."""

    def _urgency(self, epsilon: FloatArray) -> FloatArray:  # noqa: ARG002 (that is the difference)
        return self.upper


SCHEDULES: dict[str, Callable[[Problem], Race]] = {
    "by upper bounds": lambda problem: ByUpperBounds(problem, scout=False),
    "by epsilon": Race,
}


def tables(aslib: Path) -> dict[str, Callable[[], RuntimeTable]]:
    """Two real ones if they are there, and a made-up one with many configurations."""
    made: dict[str, Callable[[], RuntimeTable]] = {
        name: lambda name=name: read_table(aslib / name)  # type: ignore[misc]
        for name in ("SAT12-INDU", "QBF-2014")
        if (aslib / name).exists()
    }
    made["300 made-up"] = lambda: synthetic_table(5, 300, 20_000, limit=900.0, first_log_speed=2.0, spread=0.01)
    return made


def main() -> None:
    """Race to the largest budget with either schedule, and read epsilon off the story."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--aslib", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "aslib")
    wishes = arguments.parse_args()
    budgets = DAY * np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
    shown = Table(title="certified epsilon by CPU days spent, goal 0, medians over seeds", title_justify="left")
    for heading in ("table", "schedule", *(f"{budget / DAY:g}" for budget in budgets)):
        shown.add_column(heading, justify="right")
    for name, make in tables(wishes.aslib).items():
        table = make()
        for schedule, build in SCHEDULES.items():
            found = [epsilons(table, build, seed, budgets) for seed in range(wishes.seeds)]
            shown.add_row(name, schedule, *(f"{epsilon:.3f}" for epsilon in np.median(found, axis=0)))
    Console(highlight=False, width=120).print(shown)


def epsilons(table: RuntimeTable, build: Callable[[Problem], Race], seed: int, budgets: FloatArray) -> FloatArray:
    """What was certified when each budget was spent."""
    race = build(Problem(table.n_configs, UTILITY, DELTA, 0.0, captime_limit=table.limit, seed=seed))
    replay = Replay(table, stream_of("replace", table.groups, seed), race.plan, UTILITY)
    made = drive(race, replay, budget=float(budgets[-1])).trace.decisions()
    reached = np.searchsorted(made.seconds, budgets, side="right")
    return np.concatenate(([1.0], made.epsilon))[reached]


if __name__ == "__main__":
    main()
