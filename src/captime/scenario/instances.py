"""From `[instances]` to the stream that all configurations share."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from captime.certificate import Population
from captime.errors import ScenarioError
from captime.procedures.options import ON_A_SET, option_types
from captime.programs.protocol import find_command
from captime.programs.template import Template, passed_unchanged
from captime.scenario.errors import SourceLocation
from captime.scenario.models import InstancesSection
from captime.streams import FiniteStream, GeneratedStream
from captime.streams.files import (
    from_csv,
    from_list,
    from_patterns,
    from_values,
    look_at,
    read_answers,
    with_answers,
    with_seeds,
)
from captime.streams.finite import PLACEHOLDERS

_SECTION = "instances"
_WAYS = ("files", "list", "csv", "values", "generator")
_OF_GENERATORS = ("first", "suffix", "folder", "timeout")
_OF_FILES = ("sampling", "allow_duplicates", "seeds")

DEFAULT_POPULATION = Population.THESE
"""The claim of scenarios that do not name one, where a claim about exactly these instances is possible."""


def stream_of(
    wishes: InstancesSection,
    place: SourceLocation,
    folder: Path,
    *,
    seed: int,
    environment: Mapping[str, str],
    generated: Path,
    given: Sequence[Any] | None = None,
    known: Sequence[str] = (),
) -> FiniteStream | GeneratedStream:
    """Return the stream that a scenario describes.

    Args:
        wishes: The section.
        place: The file, for messages.
        folder: Relative names are seen from here.
        seed: The scenario's.
        environment: In which a generator runs.
        generated: Where generated files are kept if the section does not say.
        given: Python objects in place of what the section says, for library calls.
        known: Names of the instances of a stream begun earlier, in its order; new ones follow them.
    """
    ways = [way for way in _WAYS if getattr(wishes, way) is not None]
    if given is None and len(ways) != 1:
        found = f"says {' and '.join(ways)}" if ways else "does not say where instances come from"
        raise ScenarioError(f"{place(_SECTION)} {found}; expected exactly one of {', '.join(_WAYS)}")
    answers = {} if wishes.answers is None else read_answers(folder / wishes.answers, place(_SECTION, "answers"))
    if ways == ["generator"]:
        _refuse(wishes, _OF_FILES, place, "a generator")
        where = place(_SECTION, "generator")
        return _generated(wishes, where, folder, seed=seed, environment=environment, kept=generated, answers=answers)
    _refuse(wishes, _OF_GENERATORS, place, "listed instances")
    groups = None
    if given is not None or wishes.values is not None:
        values = wishes.values if given is None else list(given)
        instances = from_values(values or [], place(_SECTION, "values"), allow_duplicates=wishes.allow_duplicates)
    else:
        where = place(_SECTION, ways[0])
        listed = _listed(wishes, folder, where)
        instances, groups = look_at(listed, folder, where, allow_duplicates=wishes.allow_duplicates)
    for each in instances:
        passed_unchanged(each.path or each.name, f"instance {each.name!r}", place(_SECTION))
    if answers:
        instances = with_answers(instances, answers, place(_SECTION, "answers"))
    if wishes.seeds > 1:
        instances, groups = with_seeds(instances, groups, wishes.seeds, place(_SECTION, "seeds"))
    return FiniteStream(instances, wishes.sampling, seed, groups=groups, known=known, seeds=wishes.seeds)


def population_of(
    wishes: InstancesSection,
    place: SourceLocation,
    *,
    repeatable: bool,
    seeded: bool,
    procedure: str,
    options: Collection[str],
    recorded: Population | None,
) -> Population:
    """Return what the claim is about: as the section says, as the ledger says, or the default.

    Args:
        wishes: The section.
        place: The file, for messages.
        repeatable: Whether the program takes the same time again with the same seed.
        seeded: Whether the program is given the seed.
        procedure: The name of the procedure that decides.
        options: The names of its options that are set.
        recorded: The population of the ledger that is resumed; None if there is none yet.
    """
    where = place(_SECTION, "population")
    said = None if wishes.population is None else Population(wishes.population)
    obstacle = _against_these(wishes, repeatable=repeatable, procedure=procedure)
    if said is not None and wishes.sampling == "replace":
        raise ScenarioError(
            f"{where} is {said.value!r} beside sampling = 'replace', whose draws come from exactly these instances, so "
            "its claim is about them anyway; leave population out, or set sampling = 'shuffle'"
        )
    if said is Population.THESE and obstacle:
        raise ScenarioError(f"{where} is 'these', but {obstacle}; or set population = 'drawn'")
    if wishes.seeds > 1 and (obstacle or said is Population.DRAWN):
        why = obstacle or "population is 'drawn'; set population = 'these'"
        raise ScenarioError(
            f"{place(_SECTION, 'seeds')} is {wishes.seeds}, and the runs of one instance with several seeds are no "
            f"independent draws, so the claim has to be about exactly these instances. But {why}; or leave seeds out"
        )
    if wishes.seeds > 1 and not seeded:
        raise ScenarioError(
            f"{place(_SECTION, 'seeds')} is {wishes.seeds}, but the program is not given its seed, so every run of an "
            "instance would be the same; pass the seed on ({seed} in a command, a parameter called seed of a "
            "function), or leave seeds out"
        )
    if said is not None:
        return said
    if recorded is not None:
        return recorded
    if wishes.seeds > 1:
        return Population.THESE
    if obstacle or not set(options) <= set(option_types(ON_A_SET[procedure])):
        return Population.DRAWN
    return DEFAULT_POPULATION


def _against_these(wishes: InstancesSection, *, repeatable: bool, procedure: str) -> str:
    """Return why no claim about exactly these instances is possible, and what to do; nothing if one is."""
    if wishes.generator is not None:
        return "a generator makes instances without end, so there is no set of them; list files or values instead"
    if wishes.sampling != "shuffle":
        return (
            f"sampling is {wishes.sampling!r}, and the claim needs an order that captime draws; set sampling = "
            "'shuffle'"
        )
    if not repeatable:
        return (
            "the program does not say that it takes the same time again with the same seed; pass the seed on ({seed} "
            "in a command, a parameter called seed of a function), or set target.repeatable = true if it is "
            "deterministic"
        )
    if procedure not in ON_A_SET:
        able = " and ".join(sorted(ON_A_SET))
        return f"procedure {procedure!r} makes no such claim; only {able} can"
    return ""


def _listed(wishes: InstancesSection, folder: Path, where: str) -> list[Any]:
    if wishes.files is not None:
        return from_patterns([wishes.files] if isinstance(wishes.files, str) else wishes.files, folder, where)
    if wishes.list is not None:
        return from_list(folder / wishes.list, where)
    return from_csv(folder / str(wishes.csv), where)


def _refuse(wishes: InstancesSection, fields: Sequence[str], place: SourceLocation, whose: str) -> None:
    """A field that has no meaning here was probably meant to have one."""
    for field in fields:
        if field in wishes.model_fields_set:
            raise ScenarioError(f"{place(_SECTION, field)} means nothing for {whose}; leave it out")


def _generated(
    wishes: InstancesSection,
    where: str,
    folder: Path,
    *,
    seed: int,
    environment: Mapping[str, str],
    kept: Path,
    answers: Mapping[str, bytes],
) -> GeneratedStream:
    command = wishes.generator or []
    template = Template(command, where)
    template.check(PLACEHOLDERS)
    if not {"k", "seed"} & template.names:
        raise ScenarioError(
            f"{where} makes the same instance every time; write {{k}}, the number of the instance, or {{seed}}, a "
            "random seed, where the generator takes its seed"
        )
    found = find_command(command, folder, environment, where)
    return GeneratedStream(
        command,
        kept if wishes.folder is None else folder / wishes.folder,
        seed,
        first=wishes.first,
        suffix=wishes.suffix,
        timeout=wishes.timeout,
        argv=found.words,
        identity=found.digests,
        answers=answers,
    )
