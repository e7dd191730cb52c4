"""What a campaign of `AskTell` is made of: the question, with a stream of instances and no program to start."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from captime.campaign.identity import population_on_record
from captime.certificate import RULES, Population
from captime.errors import InvariantViolated, ScenarioError
from captime.ledger import ConfigRow
from captime.programs.protocol import Configuration
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.scenario.configurations import (
    SpaceLike,
    canonical,
    listed_of,
    order_on_record,
    proposer_for,
    row_of,
    section_for,
)
from captime.scenario.errors import SourceLocation
from captime.scenario.identity import plain
from captime.scenario.models import InstancesSection
from captime.scenario.sections import population_of
from captime.scenario.spec import CampaignQuestion
from captime.spaces import Proposer, order_for
from captime.streams import FiniteStream, InstanceStream, finite
from captime.streams.files import from_values
from captime.streams.finite import TARGET, Element, Instance, Seeds
from captime.supervision.messages import Launch, Report
from captime.utilities import Utility, utility_of

KIND = "asked-and-told"
"""What such ledgers say about their target."""
_PLACE = SourceLocation("AskTell")
# A run that was stopped before its captime was cancelled; `outcome_told` knows those that reached it.
_VERDICTS = {
    Status.COMPLETED: Verdict.ANSWERED,
    Status.CAPPED: Verdict.CANCELLED,
    Status.FAILED: Verdict.UNKNOWN,
    Status.LOST: Verdict.LOST,
}


class RunsMadeElsewhere:
    """Stands for a program that the caller starts.

    Args:
        repeatable: Whether a run takes the same time when it is made again with its seed.
    """

    def __init__(self, *, repeatable: bool) -> None:
        self.repeatable = repeatable

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """Let them join; the caller hears of each with its first run."""

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """Refuse: there is nothing to start."""
        raise InvariantViolated(f"{request} ({number}, {tag}) was to be started, but its runs are made elsewhere")

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """Refuse: there is nothing to judge."""
        raise InvariantViolated(f"{request} was to be judged by {report}, but its runs are made elsewhere")

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {"kind": KIND}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol."""
        return [f"configuration {config} on {instance} with seed {seed}"]

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """See the protocol."""
        return f"The run was configuration {config} on {instance.name} with seed {seed}, made by the caller of AskTell"


class Numbered:
    """An endless stream of instances that only the caller knows, by number.

    Args:
        seed: The campaign's.
    """

    length = None
    population = "stream"
    n_instances = None

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._seeds = Seeds(TARGET, seed)

    def at(self, position: int) -> Element:
        """See the protocol."""
        return Element(position, Instance(str(position), value=position), self._seeds.at(position))

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {"sampling": "generator", "seed": self._seed, "first": 0, "generator": None}


def stream_for(
    instances: Sequence[Any] | None, n_instances: int | None, sampling: str, seed: int, known: Sequence[str]
) -> InstanceStream:
    """Return the stream: of these instances, of this many numbers, or of numbers without end.

    Args:
        instances: See `AskTell`.
        n_instances: See `AskTell`.
        sampling: See `AskTell`.
        seed: The campaign's.
        known: Names of the instances on record, in their order; new ones follow them.
    """
    if instances is not None and n_instances is not None:
        raise ScenarioError("AskTell was given instances and n_instances; expected one of them, leave n_instances out")
    if instances is not None:
        listed = from_values(list(instances), "AskTell: instances", allow_duplicates=False)
        return FiniteStream(listed, sampling, seed, known=known)
    if n_instances is None:
        return Numbered(seed)
    numbered = [Instance(str(number), value=number) for number in range(n_instances)]
    return FiniteStream(numbered, "given", seed, known=known)


def population_for(
    said: str | None,
    instances: Sequence[Any] | None,
    sampling: str,
    recorded: Mapping[str, object] | None,
    *,
    repeatable: bool,
    procedure: str,
    options: Mapping[str, object],
) -> Population:
    """Return what the claim is about; the names are those of `AskTell`, and `recorded` is the ledger's scenario."""
    if said not in (None, *map(str, Population)):
        raise ScenarioError(f"AskTell: population is {said!r}; expected 'these' or 'drawn'")
    if instances is None:
        if said == Population.THESE:
            raise ScenarioError(
                "AskTell: population is 'these', but there is no list of instances, so captime cannot draw their "
                "order; pass instances, or leave population out"
            )
        return Population.DRAWN
    section = InstancesSection.model_construct(population=said, sampling=sampling, seeds=1, generator=None)
    return population_of(
        section,
        _PLACE,
        repeatable=repeatable,
        seeded=True,
        procedure=procedure,
        options=options,
        recorded=None if recorded is None else population_on_record(recorded),
    )


def listed_rows(configurations: Mapping[str, Any] | Sequence[Any]) -> tuple[list[ConfigRow], list[Any]]:
    """Return the configurations as a ledger remembers them, and what each run hands back."""
    if isinstance(configurations, str | bytes):
        raise ScenarioError(
            f"AskTell: configurations is {configurations!r}, one text; expected a list, such as "
            f"[{configurations!r}, 'another']"
        )
    if isinstance(configurations, Mapping):
        given = [(str(name), settings) for name, settings in configurations.items()]
    else:
        given = [(_name(each, number), each) for number, each in enumerate(configurations, start=1)]
    if not given:
        raise ScenarioError("AskTell: configurations is empty; expected at least one")
    names = [name for name, _ in given]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, start=1)]
    rows = [
        ConfigRow(number, name, {"settings": _settings(settings)})
        for number, (name, (_, settings)) in enumerate(zip(names, given, strict=True))
    ]
    return rows, [settings for _, settings in given]


def _name(given: Any, number: int) -> str:
    if isinstance(given, Mapping):
        return str(given.get("name", number))
    return given if isinstance(given, str) and given else str(number)


def _settings(given: Any) -> dict[str, object]:
    """Return what is recorded of a configuration: its settings, or how Python writes it."""
    table = given if isinstance(given, Mapping) else {"value": given}
    told: dict[str, object] = json.loads(json.dumps({str(name): each for name, each in table.items()}, default=_word))
    return told


def _word(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)


def outcome_told(request: RunRequest, status: Status, seconds: float, cost: float | None, seen_ns: int) -> RunOutcome:
    """Return an outcome as a ledger takes it: what the caller told stands where measurements stand.

    Args:
        request: Which run.
        status: How it ended.
        seconds: When.
        cost: What it cost; None for the seconds.
        seen_ns: How long it was under way by our own clock, from the asking to the telling.
    """
    # Whole nanoseconds are what is recorded; upwards, because no run costs less than it took.
    nanoseconds = math.ceil((seconds if cost is None else cost) * 1e9)
    verdict = _VERDICTS[status]
    if seconds >= request.captime and status.meaning.counts:
        status, verdict, seconds = Status.CAPPED, Verdict.CAPPED, request.captime
    code = 0 if verdict is Verdict.ANSWERED else None
    measured = Measurement(cpu_ns=nanoseconds, wall_ns=max(seen_ns, 1), exit_code=code)
    return RunOutcome(request, status, seconds, nanoseconds / 1e9, "", verdict, measured)


def recorded_seed(recorded: Mapping[str, object] | None, seed: int | None) -> int:
    """Return the seed that was asked for, or that of the ledger's scenario, or a fresh one."""
    found = (recorded or {}).get("seed") if seed is None else seed
    return found if isinstance(found, int) else finite.fresh_seed()


def proposer_on(
    space: SpaceLike | None, seed: int, effort: object, recorded: Mapping[str, object] | None
) -> Proposer | None:
    """Return the proposer of a space's configurations; None if they are listed.

    Args:
        space: The space.
        seed: Of the draws.
        effort: What CPU time is mainly spent on; a new campaign takes its order of arrivals from it.
        recorded: The ledger's scenario; a campaign that has begun keeps its order.
    """
    if space is None:
        return None
    order = None if recorded is None else order_on_record(recorded)
    return proposer_for(plain(section_for(space, ".")), seed, _PLACE, Path.cwd(), order or order_for(effort))


def question_for(
    rows: list[ConfigRow] | None,
    proposer: Proposer | None,
    stream: InstanceStream,
    utility: Utility | str | None,
    *,
    seed: int,
    delta: float,
    epsilon: float,
    procedure: str,
    options: Mapping[str, object],
    captime_first: float,
    ceiling: float,
    repeatable: bool,
    population: Population,
) -> CampaignQuestion:
    """Return the question, with an identity that a ledger can belong to; the names are those of `AskTell`."""
    worth = utility_of(utility)
    if rows is None:
        assert proposer is not None  # noqa: S101 (the caller has either)
        rows = [row_of(index, each) for index, each in enumerate(listed_of(proposer))]
    identity = {
        "rules": RULES,
        "utility": str(worth),
        "delta": delta,
        "seed": seed,
        "clock": "cpu",
        "captime_first": captime_first,
        "procedure": procedure,
        "options": dict(options),
        "order": "arrival",
        "window": None,
        "target": {
            "kind": KIND,
            "function": KIND,
            "ceiling": ceiling if np.isfinite(ceiling) else None,
            "repeatable": repeatable,
        },
        "configurations": {"list": [{"name": row.name, **row.settings} for row in rows]},
        "space": None if proposer is None else canonical(proposer),
        **({} if proposer is None else {"space_order": list(proposer.space.names)}),
        "instances": {
            **stream.describe(),
            **({} if population is Population.DRAWN else {"population": population.value}),
        },
    }
    return CampaignQuestion(
        program=RunsMadeElsewhere(repeatable=repeatable),
        stream=stream,
        configs=rows,
        utility=worth,
        delta=delta,
        epsilon=epsilon,
        procedure=procedure,
        options=options,
        seed=seed,
        captime_first=captime_first,
        ceiling=ceiling,
        proposer=proposer,
        identity=identity,
        population=population,
    )
