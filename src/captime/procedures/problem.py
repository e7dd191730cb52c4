"""What a procedure is built from: the question (indices and wishes, no files, no programs), and its options."""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Population, check_delta
from captime.errors import CaptimeError, ScenarioError
from captime.procedures.pool_terms import PoolTerms
from captime.procedures.protocol import Procedure
from captime.utilities.formula import Utility, parse_duration

SECOND_SCHEDULE = 2
"""From this schedule on, that one of the first ranks leads a race whose certificate seems to cost least, and measured
times decide between near ties: equal means of the warm start, and several configurations with a certificate."""
THIRD_SCHEDULE = 3
"""From this schedule on, all runs of a configuration are read again at once when longer captimes changed them."""
FOURTH_SCHEDULE = 4
"""From this schedule on, a claim about exactly these instances is reached without making a run a second time."""
FIFTH_SCHEDULE = 5
"""From this schedule on, a warm start whose first instances no configuration answers takes more of them before its
captimes become as long as the draws. The leader of a search on a space follows proposals no further than they go."""
SIXTH_SCHEDULE = 6
"""From this schedule on, a race of few configurations to a coarse goal has no warm start, a race of few spends more of
delta on duels, and a search for a leader among many ends as soon as one is close to the largest possible utility. A
search on a space stops first runs of proposals early, and names the leader by measured times."""
SEVENTH_SCHEDULE = 7
"""From this schedule on, a race among many keeps looking for a leader that needs no challengers, its warm start begins
with one position and ends after a first rung whose first positions were too hard, and a race orders smaller parts of
the runs that it needs at a time."""
SCHEDULE = 7
"""The rules by which a new race orders its runs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The question: which of `n_configs` configurations has the largest expected utility, up to epsilon?

    Attributes:
        n_configs: How many configurations.
        utility: What an answer is worth.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal; 0 for "continue as long as it is worth it".
        captime_first: Captime of the first level, in CPU seconds.
        captime_limit: Nothing can be known of runs beyond it (the timeout of a recorded table); infinite for none.
        n_instances: Length of the stream; None if it is endless.
        seed: Key of what a procedure draws at random, captimes for instance; it has nothing to do with the instances.
        known_runtimes: Only for hypothetical procedures that are handed the truth: `known_runtimes(config)` gives all
            runtimes of a configuration, infinite where it never finishes.
        pool: Where configurations come from, if there will be more than the `n_configs` that exist at the start; None
            if these are all, which procedures that grow take as `n_configs` random draws.
        duel_step: Differences of scores in duels are rounded up to multiples of this; None for what the goal needs. A
            campaign that was begun with a step keeps it, because decisions depend on it; validity does not.
        short_captimes: Whether runs may be stopped early and repeated with a longer captime later. It needs a program
            that takes the same time again with the same seed. If not, every run of a race is made once.
        population: The instances that the stop rule and the certificate are about. `these` needs a stream that is a
            uniformly random order of `n_instances` instances, and runs that take the same time again.
        schedule: By which rules a race orders its runs, `SCHEDULE` for new campaigns. A campaign keeps those it was
            begun with, because decisions depend on them; validity does not.
    """

    n_configs: int
    utility: Utility
    delta: float
    epsilon: float = 0.0
    captime_first: float = 1.0
    captime_limit: float = np.inf
    n_instances: int | None = None
    seed: int = 0
    known_runtimes: Callable[[int], FloatArray] | None = None
    pool: PoolTerms | None = None
    duel_step: float | None = None
    short_captimes: bool = True
    schedule: int = SCHEDULE
    population: Population = Population.DRAWN

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.n_configs < 1:
            raise ScenarioError("there is no configuration to choose from; name at least one")
        if not 0.0 <= self.epsilon < 1.0:
            raise ScenarioError(
                f"epsilon is {self.epsilon!r}, but utilities differ by at most 1; say a number from 0 up to 1, such "
                "as 0.1"
            )
        if not (np.isfinite(self.captime_first) and self.captime_first > 0):
            raise ScenarioError(
                f"the first captime is {self.captime_first!r} s, but it has to be a positive number of seconds; try 1"
            )

    @property
    def captime_top(self) -> float:
        """The longest captime that is of use: beyond it the answer is worthless, or nothing is known."""
        return min(self.captime_limit, self.utility.zero_at)


# Another epsilon on the way, for procedures whose bounds do not depend on the goal: they just stop somewhere else.


class Retargetable:
    """A procedure that can be given another goal; everything it knows continues to count.

    Attributes:
        problem: The question, with the goal.
    """

    problem: Problem

    def retarget(self, epsilon: float) -> None:
        """From now on this is the goal."""
        self.problem = replace(self.problem, epsilon=epsilon)


# How the optimists behave where there is a choice.

Rule = Literal["new", "old"]
Variant = Literal["recommended", "as-published"]


@dataclass(frozen=True, slots=True)
class OptimistRules:
    """Where the published code and the recommended form differ, and OUP from COUP.

    Attributes:
        rule: When captimes double. `old` is UP's: what the cap hides is at least twice the radius. `new` splits the
            width exactly: what is lost to the cap is at least what is lost to chance.
        keep_best: Report the smallest epsilon so far, with the configuration that reached it.
        leader_counts: Compare the leader with itself too when computing epsilon.
        ties_by_mean: Among equal lower bounds prefer the larger mean utility; otherwise the lower index alone decides.
        spare_last: Leave the last instance of the stream unused.
        stop_alone: Content when one candidate is left.
        test_ahead: The test for doubling uses the radius of this many samples more than there are.
        widest_radius: And never a larger radius than this.
    """

    rule: Rule = "new"
    keep_best: bool = True
    leader_counts: bool = False
    ties_by_mean: bool = True
    spare_last: bool = False
    stop_alone: bool = True
    test_ahead: int = 0
    widest_radius: float = 1.0


# Options of a procedure, from text: the signature of its maker is the schema.


def build_procedure(
    name: str, registers: Mapping[Population, Mapping[str, Any]], problem: Problem, options: Mapping[str, object]
) -> Procedure:
    """Build the procedure of that name with these options; text values are read as the signature says.

    Args:
        name: Its name in the registers.
        registers: The procedures by name, by the instances that they make a claim about.
        problem: The question.
        options: Keyword options, as values or as text from a command line.
    """
    known, able = registers[Population.DRAWN], registers[problem.population]
    if name not in known:
        raise ScenarioError(f"there is no procedure {name!r}; there are {', '.join(sorted(known))}")
    if name not in able:
        raise ScenarioError(
            f"procedure {name} makes no claim about exactly these instances; use population = 'drawn', or one of "
            f"{', '.join(sorted(able))}"
        )
    maker = able[name]
    procedure: Procedure = maker(problem, **read_options(name, maker, options))
    return procedure


def read_options(name: str, maker: Any, options: Mapping[str, object]) -> dict[str, object]:
    """The options as the maker's signature wants them; unknown ones are refused with the known ones."""
    known = option_types(maker)
    for option in options:
        if option not in known:
            allowed = ", ".join(known) or "none at all"
            raise ScenarioError(f"procedure {name} has no option {option!r}; it takes {allowed}")
    return {option: _read(f"option {option} of {name}", value, known[option]) for option, value in options.items()}


def option_types(maker: Any) -> dict[str, Any]:
    """Names and types of a maker's keyword options."""
    target = maker.__init__ if inspect.isclass(maker) else maker
    hints = get_type_hints(target)
    return {
        parameter.name: hints[parameter.name]
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _read(where: str, value: object, kind: Any) -> object:
    """Text becomes what the signature wants; anything else is passed on as it is."""
    if not isinstance(value, str):
        return value
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ScenarioError(f"{where} is {value!r}; it can be {', '.join(map(str, get_args(kind)))}")
        return value
    try:
        return _CONVERTERS[kind](value)
    except (ValueError, CaptimeError) as error:
        expected = {int: "a whole number", float: "a number, or a time such as 5min", bool: "true or false"}[kind]
        raise ScenarioError(f"{where} is {value!r}; it has to be {expected}") from error


def _truth(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


_CONVERTERS: dict[Any, Any] = {int: int, float: parse_duration, bool: _truth, str: str}
