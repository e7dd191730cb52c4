"""Ask and tell, for people who run their targets themselves: on a cluster of their own, by hand, in a laboratory.

`ask` gives runs to make, each with its captime; `tell` takes what became of them, in any order. The certificate is
valid at every moment, whatever is still under way, because a run that was not told yet counts as anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from captime.certificate import Certificate
from captime.errors import ScenarioError
from captime.evidence import Evidence
from captime.live import tell_all
from captime.procedures import PROCEDURES, Problem
from captime.procedures.options import build_procedure
from captime.runs import RunOutcome, RunRequest, Status
from captime.streams import seeds
from captime.streams.seeds import TARGET, Seeds
from captime.utilities import Utility, utility_of

How = Literal["completed", "capped", "failed", "lost"]
_STATUS: Mapping[str, Status] = MappingProxyType(
    {"completed": Status.COMPLETED, "capped": Status.CAPPED, "failed": Status.FAILED, "lost": Status.LOST}
)


@dataclass(frozen=True, slots=True)
class Run:
    """Please make this run.

    Attributes:
        config: Which configuration, by index.
        settings: Its settings, as given.
        position: Which instance: every configuration has to meet the same one at the same position.
        seed: For the program's random choices; the same for every configuration.
        captime: Stop it after so many seconds.
        attempt: 0, or how often it was lost before.
    """

    config: int
    settings: Any
    position: int
    seed: int
    captime: float
    attempt: int


class AskTell:
    """A campaign without slots: somebody else makes the runs.

    Args:
        configurations: The candidates; anything, handed back with each run.
        utility: What an answer is worth.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal; 0 for as long as one likes.
        n_instances: How many instances there are, each of which is used once; None if there is no end of them.
        procedure: Who decides.
        options: Its options.
        seed: Key of everything that is drawn at random; a fresh one is drawn if it is left out. It must not be chosen
            after a look at results.
        repeatable: Whether a run takes the same time when it is made again with its seed. If not, lost runs are not
            asked for again.
        captime_first: The captime everyone starts with, where captimes rise.
        ceiling: No run gets more seconds than this.

    Attributes:
        seed: As given, or as drawn.

    >>> campaign = AskTell(["fast", "slow"], "uniform(10)", epsilon=0.3)
    >>> while campaign.finished is None:
    ...     for run in campaign.ask():
    ...         seconds = 1.0 if run.settings == "fast" else 8.0
    ...         how = "completed" if seconds < run.captime else "capped"
    ...         campaign.tell(run, how, min(seconds, run.captime))
    >>> campaign.best, campaign.certificate.epsilon <= 0.3
    ('fast', True)
    """

    def __init__(
        self,
        configurations: Sequence[Any],
        utility: Utility | str,
        *,
        delta: float = 0.1,
        epsilon: float = 0.1,
        n_instances: int | None = None,
        procedure: str = "race",
        options: Mapping[str, object] | None = None,
        seed: int | None = None,
        repeatable: bool = True,
        captime_first: float = 1.0,
        ceiling: float = np.inf,
    ) -> None:
        if isinstance(configurations, str | bytes):
            raise ScenarioError(
                f"AskTell: configurations is {configurations!r}, one text; expected a list, such as "
                f"[{configurations!r}, 'another']"
            )
        self.seed = seeds.fresh_seed() if seed is None else seed
        worth = utility_of(utility)
        problem = Problem(
            n_configs=len(configurations),
            utility=worth,
            delta=delta,
            epsilon=epsilon,
            captime_first=captime_first,
            captime_limit=ceiling,
            n_instances=n_instances,
            seed=self.seed,
        )
        self._configurations = list(configurations)
        self._seeds = Seeds(TARGET, self.seed)
        self._procedure = build_procedure(procedure, PROCEDURES, problem, options or {})
        self._evidence = Evidence(len(configurations), self._procedure.plan, worth, repeatable=repeatable)

    def ask(self, most: int = 1) -> list[Run]:
        """Runs to make now, at most so many at once besides those that were asked for and not told yet."""
        evidence, procedure = self._evidence, self._procedure
        while procedure.finished() is None and (free := most - evidence.open + evidence.in_flight) > 0:
            targets = procedure.ask(free)
            if len(targets) == 0 or evidence.aim(targets) == 0:
                break
        return [self._run(request) for request in evidence.take(most)]

    def _run(self, request: RunRequest) -> Run:
        return Run(
            request.config,
            self._configurations[request.config],
            request.instance,
            self._seeds.at(request.instance),
            request.captime,
            request.attempt,
        )

    def tell(self, run: Run, how: How, seconds: float, *, cost: float | None = None) -> None:
        """What became of a run.

        Args:
            run: As it was asked for.
            how: `completed` (a right answer, by itself), `capped` (stopped at its captime, or sooner), `failed` (it
                will never answer right) or `lost` (not the program's fault).
            seconds: How long it took, or was seen unfinished.
            cost: What it cost, if that is not the same.
        """
        if how not in _STATUS:
            raise ScenarioError(f"a run cannot end as {how!r}; it can be {', '.join(_STATUS)}")
        request = RunRequest(run.config, run.position, run.captime, run.attempt)
        if request not in self._evidence.under_way():
            raise ScenarioError(f"{run} was not asked for, or was told already; tell every run once")
        outcome = RunOutcome(request, _STATUS[how], seconds, seconds if cost is None else cost)
        tell_all(self._procedure, self._evidence, [outcome], ())

    @property
    def certificate(self) -> Certificate:
        """What is certain now."""
        return self._procedure.certificate()

    @property
    def best(self) -> Any:
        """The recommended configuration, as given."""
        return self._configurations[self.certificate.config]

    @property
    def finished(self) -> str | None:
        """Why nothing more is wanted; None while there is something to run."""
        return self._procedure.finished()
