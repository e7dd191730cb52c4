"""Incumbents of other tuners as candidates of a race, on instances that chose none of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from math import inf
from pathlib import Path
from typing import Any

from captime.campaign.measurement import difference, log_inverse_of
from captime.campaign.validation import Worth
from captime.errors import ScenarioError
from captime.programs.protocol import Configuration, Setting
from captime.scenario import Scenario
from captime.scenario.spec import CampaignQuestion, CampaignSpec
from captime.spaces import Space
from captime.spaces.values import Value
from captime.streams import FiniteStream, Instance
from captime.streams.files import digest_of_file
from captime.tuners import TunerResult

DEFAULT = "default"
RACE_SHARE = 0.75
"""Which part of delta, and of the budget, the race has; the comparison of the winner with the default has the rest."""


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """A configuration that takes part, and where it came from.

    Attributes:
        configuration: As programs know it.
        sources: Every file that recommends it, with what the file says of it; none for the default.
        filled: Settings that its tuner did not name, which have the values of the default.
        dropped: Settings that its tuner named although they are not active.
    """

    configuration: Configuration
    sources: tuple[tuple[TunerResult, str], ...] = ()
    filled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What people call it."""
        return self.configuration.name


def candidates_of(scenario: Scenario, results: Sequence[TunerResult]) -> list[JudgedCandidate]:
    """Return the default and the incumbents, those with the same settings once; the default comes first.

    Args:
        scenario: Whose target is to be run; its space, or its default configuration, says which settings there are.
        results: What was read from the tuners' files.
    """
    default = _default_of(scenario)
    proposer = scenario.proposer
    found = [JudgedCandidate(default)]
    names = {default.name}
    alone = {result.tuner for result in results if sum(other.tuner == result.tuner for other in results) == 1}
    for result in results:
        for rank, incumbent in enumerate(result.incumbents, start=1):
            where = f"{result.path}, {incumbent.about}"
            settings, filled, dropped = (
                _like(default, incumbent.settings)
                if proposer is None
                else in_space(proposer.space, incumbent.settings, where)
            )
            source = (result, incumbent.about)
            same = next((place for place, each in enumerate(found) if _same(each, settings)), None)
            if same is not None:
                found[same] = replace(found[same], sources=(*found[same].sources, source))
                continue
            stem = result.tuner if result.tuner in alone and result.tuner != "csv" else result.path.stem
            wanted = incumbent.name or (stem if len(result.incumbents) == 1 else f"{stem}-{rank}")
            name = _unused(wanted, names)
            names.add(name)
            found.append(JudgedCandidate(Configuration(name, settings), (source,), filled, dropped))
    if len(found) == 1:
        raise ScenarioError(
            f"every incumbent has the settings of {default.name!r}, the default, so there is nothing to judge; with "
            "--top 3 the tuners' next best ones take part too"
        )
    return found


def _default_of(scenario: Scenario) -> Configuration:
    """Return the configuration called default, or else the first one."""
    listed = scenario.configurations
    return next((each for each in listed if each.name == DEFAULT), listed[0])


def _same(candidate: JudgedCandidate, settings: Mapping[str, Setting]) -> bool:
    return dict(candidate.configuration.settings) == dict(settings)


def _unused(wanted: str, names: set[str]) -> str:
    name, number = wanted, 1
    while name in names:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _like(
    default: Configuration, settings: Mapping[str, Setting]
) -> tuple[dict[str, Setting], tuple[str, ...], tuple[str, ...]]:
    """Return the settings in the order of the default's, with its values where the tuner names none."""
    filled = tuple(name for name in default.settings if name not in settings)
    return {**default.settings, **settings}, filled, ()


def in_space(
    space: Space, settings: Mapping[str, Setting], where: str
) -> tuple[dict[str, Setting], tuple[str, ...], tuple[str, ...]]:
    """Return the configuration of the space that is meant: complete, checked, and without what is not active."""
    plain: dict[str, Value] = {}
    for name, value in settings.items():
        if isinstance(value, list):
            raise ScenarioError(f"{where}: {name} is a list, but a parameter of a space has one value")
        plain[name] = value
    unknown = [name for name in plain if name not in space.by_name]
    if unknown:
        space.completed({unknown[0]: plain[unknown[0]]}, where)  # says which parameters there are
    row = space.codes(plain)
    filled = row.copy()
    empty = filled != filled  # noqa: PLR0124 (not a number: not named, or a value that the check below refuses)
    filled[empty] = space.default_row[empty]
    active = space.settings(space.deactivated(filled[None])[0])
    whole = space.completed({name: value for name, value in plain.items() if name in active}, where)
    missing = tuple(name for name in whole if name not in plain)
    return dict(whole), missing, tuple(name for name in plain if name not in whole)


def race_of(
    scenario: Scenario, candidates: Sequence[JudgedCandidate], *, delta: float, epsilon: float | None
) -> Scenario:
    """Return the scenario with these candidates and no others, decided by the race.

    Args:
        scenario: Target, instances, utility and budget.
        candidates: The configurations that are compared.
        delta: Of the whole statement; the race has its share.
        epsilon: The goal; None for the scenario's.
    """
    stop = scenario.wishes.stop
    update: dict[str, Any] = {"gamma": None, **({} if epsilon is None else {"epsilon": epsilon})}
    wishes = scenario.wishes.model_copy(
        update={
            "procedure": "race",
            "options": {},
            "delta": RACE_SHARE * delta,
            "stop": stop.model_copy(update=update),
        }
    )
    chosen = tuple(each.configuration for each in candidates)
    return replace(scenario, wishes=wishes, candidates=chosen, known=(), begun_with=None).about_draws()


def listed_question(spec: CampaignSpec) -> CampaignQuestion:
    """Return the question about listed candidates; a space they come from only says how to run them."""
    question = spec.question
    return replace(question, proposer=None, identity={**question.identity, "space": None})


# ------------------------------------------------------------------ instances that chose none of them


def without_met(scenario: Scenario, names: Iterable[str], files: Iterable[Path]) -> tuple[Scenario, list[str]]:
    """Return the scenario without the instances that the tuners have met, and the names of those.

    A file is known by its content. Of a name that leads to no file only the name itself is known: an instance whose
    file is called so counts as met.

    Args:
        scenario: On the instances in question.
        names: What the tuners' files call instances.
        files: Files that the tuners were run on.
    """
    stream = scenario.stream
    if not isinstance(stream, FiniteStream):
        return scenario, []
    digests = {digest_of_file(file) for file in files}
    words: set[str] = set()
    for name in names:
        words.update((name, Path(name).name))
        found = next((each for each in (scenario.folder / name, Path(name)) if each.is_file()), None)
        if found is not None:
            digests.add(digest_of_file(found))
    everything = instances_of(stream)
    met = [each for each in everything if each.digest in digests or each.name in words or Path(each.name).name in words]
    if not met:
        return scenario, []
    gone = {each.name for each in met}
    left = [each for each in everything if each.name not in gone]
    if not left:
        raise ScenarioError(
            f"{scenario.place('instances')}: the tuners have met all {len(everything):,} instances, so that none is "
            "held out; name others with --instances 'test/*.cnf'"
        )
    return on_some(scenario, left), sorted(gone)


def instances_of(stream: FiniteStream) -> list[Instance]:
    """Return every instance once, whatever the sampling."""
    if stream.length is not None:
        return [stream.at(position).instance for position in range(stream.length)]
    found: dict[str, Instance] = {}
    position = 0
    while len(found) < (stream.n_instances or 0):
        each = stream.at(position).instance
        found[each.name] = each
        position += 1
    return list(found.values())


def on_some(scenario: Scenario, instances: Sequence[Instance]) -> Scenario:
    """Return the scenario on some of its own instances, with what else is said of them."""
    wanted = sorted(instances, key=lambda each: each.name)
    section: dict[str, Any] = {"files": None, "list": None, "csv": None, "values": None}
    if all(each.path is not None for each in wanted):
        section["files"] = [escape(str(each.path)) for each in wanted]
    elif scenario.values is None:
        section["values"] = [each.value for each in wanted]
    changed = scenario.wishes.instances.model_copy(update=section)
    wishes = scenario.wishes.model_copy(update={"instances": changed})
    values = None if scenario.values is None else [each.value for each in wanted]
    return replace(scenario, wishes=wishes, values=values)


# ------------------------------------------------------------------ by how much


def gain_over_default(low: Any, high: Any, n_candidates: int, delta: float) -> Worth:
    """Bound by how much the winner, row 0, exceeds the default, row 1.

    The race may have chosen the winner on the same instances. So the bound is one that holds for each of the other
    candidates at once: their ends share delta.

    Args:
        low: Low ends of the utilities, by row and position.
        high: High ends.
        n_candidates: How many took part, the default included.
        delta: Of the whole statement; this bound has what the race leaves.
    """
    ends = 2 * max(1, n_candidates - 1)
    return difference(low, high, 0, 1, log_inverse_of((1.0 - RACE_SHARE) * delta, ends))


def race_budget(cpu: float) -> float:
    """Return how much of the CPU time of the whole command the race may spend."""
    return cpu if cpu == inf else RACE_SHARE * cpu
