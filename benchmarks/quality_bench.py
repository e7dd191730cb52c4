"""Where methods of configuration spend their CPU time in benchmarks/quality.py: an example's program, run and counted.

Every run of every method goes through captime's own supervised execution, so that captimes are kept and CPU seconds are
counted in the same way for all. What the method's own process computes is charged too: a user who pays for CPU minutes
pays for all of them.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np

from captime.arrays import FloatArray
from captime.campaign import run_campaign
from captime.campaign.changes import settings_of
from captime.evidence import Evidence
from captime.executors import LocalExecutor
from captime.executors.protocol import Executor
from captime.procedures.protocol import Procedure
from captime.programs.protocol import Configuration
from captime.runs import RunOutcome, RunRequest, Status
from captime.scenario import load_scenario
from captime.scenario.spec import CampaignSpec, StopRules
from captime.spaces import Settings, Space
from captime.utilities import Utility

EXAMPLES = Path(__file__).parents[1] / "examples"
# A method may use longer captimes if it likes; these are for those that ask for one. There an answer is worth a tenth.
CAPTIME_AT = 0.1
# Held-out runs get more: up to where an answer is worth this.
_HELD_OUT_AT = 0.04
# Instances of different seeds, and those held out, are far apart in the numbering of the generators.
_APART = 1_000_000
_TRIES = 3
# Instances are made by `python3`: this one, and no wrapper that takes longer to find it than it works.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


class BudgetSpent(Exception):  # noqa: N818 (an end, not an error)
    """The CPU time that the method may spend is spent, or it takes too long."""


def spec_of(example: str, seed: int, effort: str | None = None) -> CampaignSpec:
    """An example with a seed and instances of its own, and without favourites: methods begin with the default alone.

    Args:
        example: Name of its folder.
        seed: 1, 2, …; 0 has the held-out instances.
        effort: Of captime's own campaigns; their order of arrivals goes with it.
    """
    scenario = load_scenario(EXAMPLES / example / "scenario.toml").with_effort(effort)
    wishes = scenario.wishes
    section = {word: value for word, value in (wishes.space or {}).items() if word != "favourites"}
    instances = wishes.instances.model_copy(update={"first": seed * _APART})
    changed = wishes.model_copy(update={"seed": seed, "space": section, "instances": instances})
    return replace(scenario, wishes=changed).build()


@dataclass(frozen=True, slots=True)
class Step:
    """From here on this is the incumbent.

    Attributes:
        spent: CPU seconds until then.
        settings: The incumbent's.
    """

    spent: float
    settings: Settings


@dataclass
class Bench:
    """Runs of one method on one example, and the story of its incumbents.

    Attributes:
        example: Name of the example.
        seed: Of its instances.
        budget: CPU seconds, of runs and of the method's own process together.
        patience: Wall-clock seconds, its own computing included.
        on_runs: CPU seconds of all runs so far.
        runs: How many runs there were.
        story: Incumbents.
        short_captimes: Whether captime's own campaign may stop runs early and make them again; None for other methods.
    """

    example: str
    seed: int
    budget: float = np.inf
    patience: float = np.inf
    on_runs: float = 0.0
    runs: int = 0
    story: list[Step] = field(default_factory=list)
    short_captimes: bool | None = None

    def __post_init__(self) -> None:
        self.spec = spec_of(self.example, self.seed)
        self.utility: Utility = self.spec.question.utility
        if self.spec.question.proposer is None:
            raise SystemExit(f"{self.example} has no [space]; there is nothing to search")
        self.space: Space = self.spec.question.proposer.space
        self.captime = float(self.utility.inverse(np.array(CAPTIME_AT)))
        self._indices: dict[bytes, int] = {}
        self._began, self._own = time.monotonic(), time.process_time()
        self._executor: LocalExecutor | None = None
        self._count = len(self.spec.question.configs)

    def __enter__(self) -> Self:
        self._executor = LocalExecutor(self.spec.question.program, 1, tag=f"quality-{uuid4().hex}", pin=False, ahead=1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.close()

    @property
    def spent(self) -> float:
        """CPU seconds so far."""
        return self.on_runs + time.process_time() - self._own

    def utilities(self, settings: Settings, positions: Sequence[int], captime: float | None = None) -> FloatArray:
        """Make runs, pay for them, and say what they were worth; one that was cut counts as if it had ended there.

        Args:
            settings: The configuration.
            positions: Of the stream.
            captime: For every run; the bench's own if left out.
        """
        if self.spent >= self.budget or time.monotonic() - self._began > self.patience:
            raise BudgetSpent
        longest = self.captime if captime is None else captime
        index = self._index(settings)
        outcomes = self._made([RunRequest(index, position, longest) for position in positions])
        self.on_runs += sum(outcome.cost for outcome in outcomes.values())
        self.runs += len(outcomes)
        return np.array([self._worth(outcomes[position], longest) for position in positions])

    def pool(self, epsilon: float, effort: str) -> None:
        """A campaign as `captime run --effort` makes it, until the budget is spent."""
        begun = spec_of(self.example, self.seed, effort).question
        question = replace(begun, epsilon=epsilon, options={"gamma": 0.0, "effort": effort})
        stop = StopRules(cpu=self.budget, wall=self.patience)
        manner = replace(self.spec.settings, jobs=1, pin=False, stop=stop)

        def watch(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:  # noqa: ARG001 (protocol's)
            self.on_runs = float(evidence.tally.seconds.sum())
            self.runs = int(evidence.tally.runs.sum())
            self.recommends(settings_of(question.configs[procedure.certificate().config]))

        with tempfile.TemporaryDirectory() as folder:
            result = run_campaign(question, Path(folder) / "campaign.ledger", manner, observer=watch)
        self.recommends(settings_of(question.configs[result.certificate.config]))
        self.short_captimes = result.question.problem().short_captimes

    def recommends(self, settings: Settings) -> None:
        """The method's incumbent is this one now."""
        if not self.story or self.story[-1].settings != settings:
            self.story.append(Step(self.spent, settings))

    def _index(self, settings: Settings) -> int:
        key = self.space.codes(settings).tobytes()
        if key not in self._indices:
            self._indices[key] = self._count
            self.spec.question.program.extend([Configuration(f"c{self._count}", dict(settings), origin="random")])
            self._count += 1
        return self._indices[key]

    def _made(self, requests: list[RunRequest]) -> dict[int, RunOutcome]:
        executor = self._executor
        if executor is None:
            raise SystemExit("a bench is used inside a with statement")
        found: dict[int, RunOutcome] = {}
        for _ in range(_TRIES):
            waiting = [request for request in requests if request.instance not in found]
            executor.submit(waiting)
            back = 0
            while back < len(waiting):
                for outcome in executor.collect():
                    back += 1
                    if outcome.status is not Status.LOST:
                        found[outcome.request.instance] = outcome
            if len(found) == len(requests):
                return found
        raise SystemExit(f"{self.example}: runs were lost {_TRIES} times; is the program there?")

    def _worth(self, outcome: RunOutcome, longest: float) -> float:
        if outcome.status is Status.COMPLETED:
            return float(self.utility(np.array(outcome.runtime)))
        return float(self.utility(np.array(longest))) if outcome.status is Status.CAPPED else 0.0


def held_out(example: str, configurations: Sequence[Settings], positions: Sequence[int]) -> FloatArray:
    """What configurations are worth on held-out instances: a row for each of them, a column for each instance.

    All of them are run on an instance before the next one comes, in an order that changes from instance to instance: a
    machine that becomes slower meanwhile does so for all of them.
    """
    scores = np.empty((len(configurations), len(positions)))
    with Bench(example, seed=0) as bench:
        captime = float(bench.utility.inverse(np.array(_HELD_OUT_AT)))
        for column, position in enumerate(positions):
            for row in np.random.default_rng(position).permutation(len(configurations)).tolist():
                scores[row, column] = bench.utilities(configurations[row], [position], captime)[0]
    return scores


def default_of(example: str) -> dict[str, Any]:
    """The default configuration of an example."""
    return dict(Bench(example, seed=0).space.default)
