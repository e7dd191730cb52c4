"""Quality for money on made-up targets: the same methods as in benchmarks/quality.py, in the same spaces, many times.

A search of ten CPU minutes takes ten minutes; a simulated one takes seconds. So each seed has a landscape of its own in
the space of each example (captime.simulation.MadeUp: a few parameters matter, alone and in pairs; instances are easy or
hard for all), and what an incumbent is worth is known exactly. The methods' own computing is charged as there. It
says what searches do on landscapes of this kind, with intervals that a few real searches cannot have; what they do on a
real program, benchmarks/quality.py says. `--cliffs 0.5` makes landscapes in which half of all configurations are good
for nothing, and the best are at the edge, as those of the compressor are.

    .venv-peers/bin/python benchmarks/quality_made_up.py --seeds 20 --jobs 2
"""

import argparse
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from quality_bench import CAPTIME_AT, BudgetSpent, Step, spec_of
from quality_methods import LABELS, METHODS, missing
from quality_report import OURS, Point, incumbent_at, interval, show

from captime.arrays import FloatArray
from captime.procedures.protocol import Procedure
from captime.simulation import MadeUp, simulate_on_space
from captime.sources.replay import Replay
from captime.spaces import Proposer, Settings, order_for

# CPU seconds that the default takes on an instance of middling hardness: where its utility is a half.
TYPICAL = {"kissat": 0.1, "clasp": 0.05, "compressor": 0.03, "highs-auctions": 0.5}
Cell = tuple[str, str, int]


class MadeUpBench:
    """As quality_bench.Bench, without a program.

    Args:
        example: Whose space and utility.
        seed: Of the landscape, the instances and the search.
        budget: CPU seconds.
        patience: Wall-clock seconds, the method's own computing included.
        cliffs: Share of random configurations that are beyond a cliff.
    """

    def __init__(self, example: str, seed: int, budget: float, patience: float, cliffs: float = 0.0) -> None:
        question = spec_of(example, seed).question
        if question.proposer is None:
            raise SystemExit(f"{example} has no [space]; there is nothing to search")
        self.seed, self.budget, self.patience = seed, budget, patience
        self.space, self.utility = question.proposer.space, question.utility
        self.captime = float(self.utility.inverse(np.array(CAPTIME_AT)))
        self.target = MadeUp(self.space, TYPICAL[example], seed=seed, cliffs=cliffs)
        self.on_runs, self.runs = 0.0, 0
        self.story: list[Step] = []
        self._indices: dict[bytes, int] = {}
        self._began, self._own = time.monotonic(), time.process_time()

    @property
    def spent(self) -> float:
        """CPU seconds so far, of runs and of the method."""
        return self.on_runs + time.process_time() - self._own

    def utilities(self, settings: Settings, positions: range) -> FloatArray:
        """Runs, paid for; one that was cut counts as if it had ended there."""
        if self.spent >= self.budget or time.monotonic() - self._began > self.patience:
            raise BudgetSpent
        key = self.space.codes(settings).tobytes()
        if key not in self._indices:
            self._indices[key] = len(self._indices)
            self.target.add(settings)
        seconds = np.minimum(self.target.seconds(self._indices[key], positions.start, positions.stop), self.captime)
        self.on_runs += float(seconds.sum())
        self.runs += len(seconds)
        worth: FloatArray = np.asarray(self.utility(seconds))
        return worth

    def recommends(self, settings: Settings) -> None:
        """The method's incumbent is this one now."""
        if not self.story or self.story[-1].settings != settings:
            self.story.append(Step(self.spent, settings))

    def pool(self, epsilon: float, effort: str) -> None:
        """A campaign, simulated."""
        order = order_for(effort)
        made = _Remembered(
            Proposer(self.space, self.seed, draws_first=order.draws_first, proposals=order.proposals, listed=[])
        )

        def watch(procedure: Procedure, replay: Replay) -> None:
            self.on_runs = float(replay.tally.seconds.sum())
            self.runs = int(replay.tally.runs.sum())
            self.recommends(made.settings[procedure.certificate().config])

        simulate_on_space(
            made,
            self.target,
            utility=self.utility,
            epsilon=epsilon,
            seed=self.seed,
            options={"gamma": 0.0, "effort": effort},
            budget=self.budget,
            observer=watch,
        )


class _Remembered:
    """A proposer whose configurations can be looked up."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self.n_listed, self.model, self.draws_first = proposer.n_listed, proposer.model, proposer.draws_first
        self.proposals = proposer.proposals
        self.settings: list[Settings] = []

    def origin(self, index: int) -> str:
        """Of the proposer."""
        return self._proposer.origin(index)

    def propose(self, index: int, *what: Any) -> Settings:
        """Of the proposer."""
        self.settings.append(self._proposer.propose(index, *what))
        return self.settings[-1]


def search(cell: Cell, minutes: list[float], patience: float, cliffs: float = 0.0) -> dict[str, Any]:
    """One search, and what its incumbents are worth."""
    example, method, seed = cell
    began, own = time.monotonic(), time.process_time()
    bench = MadeUpBench(example, seed, 60.0 * minutes[-1], 60.0 * patience, cliffs)
    bench.recommends(bench.space.default)
    METHODS[method](bench)  # type: ignore[arg-type] # it has all that a method uses
    told = {"story": [[step.spent, step.settings] for step in bench.story]}
    found = [incumbent_at(told, 60.0 * each) for each in minutes]
    return {
        "key": cell,
        "spent": bench.on_runs,
        "runs": bench.runs,
        "wall_seconds": time.monotonic() - began,
        "own_cpu_seconds": time.process_time() - own,
        "worths": bench.target.worths(found, bench.utility).tolist(),
    }


def points_of(cells: Mapping[Cell, Mapping[str, Any]], minutes: list[float]) -> list[Point]:
    """Means over seeds; differences are between searches on the same landscape."""
    points = []
    for example in dict.fromkeys(key[0] for key in cells):
        rows = {method: {key[2]: cell["worths"] for key, cell in cells.items() if key[:2] == (example, method)}
                for method in LABELS}  # fmt: skip
        for place, minute in enumerate(minutes):
            for method, row in rows.items():
                together = sorted(row.keys() & rows[OURS].keys())
                if together:
                    worth, error = _mean([row[seed][place] for seed in sorted(row)])
                    ahead, noise = _mean([rows[OURS][seed][place] - row[seed][place] for seed in together])
                    points.append(Point(example, method, minute, len(row), worth, error, ahead, noise))
    return points


def _mean(values: list[float]) -> tuple[float, float]:
    """What an incumbent is worth is known exactly here: all that is left is the luck of searches and landscapes."""
    rows = [np.array([value]) for value in values]
    return interval(rows, {"": rows})


def main() -> None:
    """Search, and report."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", default="1,2,5,10", help="checkpoints in CPU minutes; the last is the budget")
    arguments.add_argument("--examples", default=",".join(TYPICAL))
    arguments.add_argument("--methods", default="captime,random,optuna")
    arguments.add_argument("--seeds", type=int, default=10, help="how many landscapes")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--patience", type=float, default=30.0, help="wall-clock minutes that a search may take")
    arguments.add_argument(
        "--cliffs", type=float, default=0.0, help="share of configurations that are good for nothing"
    )
    arguments.add_argument("--out", type=Path, default=Path("bench-out/quality-made-up"))
    wishes = arguments.parse_args()
    minutes = sorted(float(each) for each in wishes.minutes.split(","))
    methods = [method for method in wishes.methods.split(",") if missing(method) is None]
    wanted = [(example, method, seed) for seed in range(1, wishes.seeds + 1)
              for example in wishes.examples.split(",") for method in methods]  # fmt: skip
    cells: dict[Cell, dict[str, Any]] = {}
    with ProcessPoolExecutor(wishes.jobs, max_tasks_per_child=1) as pool:
        begun = [pool.submit(search, cell, minutes, wishes.patience, wishes.cliffs) for cell in wanted]
        for done in as_completed(begun):
            found = done.result()
            cells[found.pop("key")] = found
            print(f"{len(cells)} of {len(wanted)}", end="\r", flush=True)
    wishes.out.mkdir(parents=True, exist_ok=True)
    ordered = {key: cells[key] for key in sorted(cells, key=lambda key: (list(TYPICAL).index(key[0]), key[1:]))}
    show(points_of(ordered, minutes), ordered, wishes.out, "made-up targets")


if __name__ == "__main__":
    main()
