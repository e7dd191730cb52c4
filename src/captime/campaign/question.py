"""What a campaign is asked: a program, instances, configurations, and what an answer is worth."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

import numpy as np

from captime.campaign.goals import GOAL_OPTIONS, Goal, goal_of
from captime.certificate import Population
from captime.errors import ScenarioError
from captime.ledger.rows import ConfigRow
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.procedures.options import build_procedure
from captime.procedures.problem import SCHEDULE
from captime.programs.answers import TOLERANCE
from captime.programs.protocol import GrowingProgram
from captime.scenario.identity import plain
from captime.scenario.space_section import pool_terms_of
from captime.spaces import Proposer
from captime.streams.protocol import InstanceStream
from captime.utilities import Utility


class Names(Sequence[str]):
    """The names of configurations, read off a list that may grow.

    Args:
        configs: The list.
    """

    def __init__(self, configs: Sequence[ConfigRow]) -> None:
        self._configs = configs

    def __len__(self) -> int:
        return len(self._configs)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [config.name for config in self._configs[index]]
        return self._configs[index].name

    def __iter__(self) -> Iterator[str]:
        return (config.name for config in self._configs)


@dataclass(frozen=True, slots=True)
class Question:
    """Which configuration of this program is worth most on these instances?

    Attributes:
        program: How a run is made and judged.
        stream: The instances, in an order that was fixed beforehand.
        configs: The configurations, by index, as they were when the campaign began; the list grows.
        newcomers: Those that were added to the list since, in its order.
        utility: What an answer is worth.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal; 0 for as long as one likes.
        procedure: Name of the procedure.
        options: Its options.
        seed: Key of what is drawn at random.
        captime_first: The first captime of all configurations, where captimes rise.
        ceiling: No run gets more seconds than this.
        clock: The clock of captimes and costs: `cpu` or `wall`.
        time: Whose time counts: `measured` by that clock, or `reported` by the program itself.
        tolerance: By which share two numbers may differ and be the same answer.
        proposer: Makes the configurations of a space, by index; None if they are all listed.
        maker: Makes the procedure, where it is not a registered one; `procedure` is then only its name.
        source: The scenario file, if there is one; for users who resume from the ledger.
        identity: Everything the answer depends on, in words that JSON knows; a ledger belongs to one identity.
        duel_step: See `Problem`; of a ledger that was begun when there was one step for all goals.
        short_captimes: See `Problem`; as it was when the ledger was begun. None: whatever the program allows.
        schedule: See `Problem`; as it was when the ledger was begun.
        population: The instances that the claim is about.
        population_said: Whether the user has said so. If not, a program that was seen not to repeat itself gets a claim
            about draws.
    """

    program: GrowingProgram
    stream: InstanceStream
    configs: list[ConfigRow]
    utility: Utility
    delta: float = 0.1
    epsilon: float = 0.1
    procedure: str = "race"
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    captime_first: float = 1.0
    ceiling: float = np.inf
    clock: str = "cpu"
    time: str = "measured"
    tolerance: float = TOLERANCE
    proposer: Proposer | None = None
    maker: Callable[[Problem], Procedure] | None = None
    source: str = ""
    identity: Mapping[str, object] = field(default_factory=dict)
    newcomers: tuple[ConfigRow, ...] = ()
    duel_step: float | None = None
    short_captimes: bool | None = None
    schedule: int = SCHEDULE
    population: Population = Population.DRAWN
    population_said: bool = True

    @property
    def names(self) -> Sequence[str]:
        """Names of the configurations, by index; those added later are in it too."""
        return Names(self.configs)

    def with_goal(self, epsilon: float | None, gamma: float | None = None) -> "Question":
        """Return the same question, asked more or less precisely.

        Args:
            epsilon: Within this of the best; None for what was said before.
            gamma: On a space, the share of luckiest configurations that may be missed; likewise.
        """
        asked = self if epsilon is None else replace(self, epsilon=epsilon)
        if gamma is None:
            return asked
        if self.procedure not in GOAL_OPTIONS:
            raise ScenarioError(
                f"gamma is {gamma!r}, but {self.procedure} knows no gamma: it speaks about a list. Leave it out, or "
                "describe a [space]"
            )
        options = {**asked.options, "gamma": gamma}
        # A new ledger begins with this goal, and bets on it; for one that is resumed, goals do not count.
        identity = {**self.identity, "options": plain(options)} if "options" in self.identity else self.identity
        return replace(asked, options=options, identity=identity)

    def about_draws(self) -> "Question":
        """Return the same question with a claim about the distribution, not about exactly these instances."""
        instances = self.identity.get("instances")
        kept = dict(instances) if isinstance(instances, Mapping) else {}
        kept.pop("population", None)
        return replace(self, population=Population.DRAWN, identity={**self.identity, "instances": kept})

    @property
    def goal(self) -> Goal:
        """When it is good enough."""
        return goal_of(self.procedure, self.options, self.epsilon)

    def begun_towards(self, goal: Goal) -> "Question":
        """Return the same question with the goal that a campaign was begun with."""
        names = GOAL_OPTIONS.get(self.procedure, ())
        begun = {name: getattr(goal, name) for name in names}
        return replace(self, epsilon=goal.epsilon, options={**self.options, **begun})

    def problem(self, length: int | None = None) -> Problem:
        """Return the question as procedures see it: indices and options.

        Args:
            length: Of the stream, if it was shorter when the campaign began.
        """
        return Problem(
            n_configs=len(self.configs),
            utility=self.utility,
            delta=self.delta,
            epsilon=self.epsilon,
            captime_first=self.captime_first,
            captime_limit=self.ceiling,
            n_instances=self.stream.length if length is None else length,
            seed=self.seed,
            pool=None if self.proposer is None else pool_terms_of(self.proposer),
            duel_step=self.duel_step,
            short_captimes=self.program.repeatable if self.short_captimes is None else self.short_captimes,
            schedule=self.schedule,
            population=self.population,
        )

    def build(self, length: int | None = None) -> Procedure:
        """Make the procedure, with nothing known yet; `length` as for `problem`."""
        if self.maker is not None:
            return self.maker(self.problem(length))
        return build_procedure(self.procedure, PROCEDURES, self.problem(length), self.options)
