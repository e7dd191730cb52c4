"""The sections `[target]` and `[instances]` of a scenario: from what was written to the program and the stream."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from captime.certificate import Population
from captime.errors import ScenarioError
from captime.procedures import ON_A_SET
from captime.procedures.problem import option_types
from captime.programs import CommandProgram, Conditions, Configuration, FunctionProgram, environment_of
from captime.programs.command import Direction, Success, TargetValue
from captime.programs.protocol import find_command
from captime.programs.template import ArgumentStyle, SettingsToArguments, Template, passed_unchanged
from captime.programs.wrappers import WRAPPERS
from captime.scenario.errors import SourceLocation
from captime.scenario.models import FromBest, InstancesSection, TargetSection
from captime.streams import FiniteStream, GeneratedStream
from captime.streams.files import (
    digest_of_file,
    fingerprint_of,
    from_csv,
    from_list,
    from_patterns,
    from_values,
    look_at,
    read_answers,
    require_readable,
    with_answers,
    with_seeds,
)
from captime.streams.finite import PLACEHOLDERS
from captime.supervision.messages import Fingerprint

# From `[target]` to the program whose runs are made and judged.

_TARGET = "target"
_OF_COMMANDS = (
    "command",
    "wrapper",
    "settings_style",
    "switches",
    "stdin",
    "answer",
    "exit_codes",
    "until",
    "verifier",
    "verifier_timeout",
)
_NOT_WITH_UNTIL = ("answer", "exit_codes", "verifier", "verifier_timeout", "wrapper", "compare_answers", "tolerance")


def conditions_of(target: TargetSection, folder: Path, place: SourceLocation) -> Conditions:
    """Limits and surroundings of every run."""
    directory = None
    if target.directory is not None:
        directory = str((folder / target.directory).absolute())
        if not Path(directory).is_dir():
            raise ScenarioError(
                f"{place(_TARGET, 'directory')} is {target.directory!r}, which is no folder; make it, or leave the "
                "field out and every run gets a fresh one"
            )
    return Conditions(
        clock=target.clock,
        memory=target.memory,
        output=target.output_limit,
        disk=target.disk_limit,
        processes=target.processes,
        directory=directory,
        environment=environment_of(target.environment.inherit, target.environment.set),
        files=_further_files(target.files, folder, place),
        wall_factor=target.wall_factor,
    )


def _further_files(patterns: Sequence[str], folder: Path, place: SourceLocation) -> dict[str, Fingerprint]:
    """Return the files that `target.files` names, each with what a change of it would change."""
    found: dict[str, Fingerprint] = {}
    for number, pattern in enumerate(patterns):
        where = place(_TARGET, "files", number)
        paths = [folder / pattern] if (folder / pattern).exists() else sorted(_matching(pattern, folder))
        if not paths:
            raise ScenarioError(
                f"{where} is {pattern!r}, which matches no file as seen from {str(folder)!r}; name a file, or a "
                "pattern such as 'lib/*.so' or 'model/**/*.bin'"
            )
        for path in paths:
            require_readable(path, where)
            found[str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)] = fingerprint_of(
                path, digest_of_file(path)
            )
    return found


def _matching(pattern: str, folder: Path) -> list[Path]:
    """Return the files, and no folders, that a pattern stands for."""
    found = (folder / name for name in glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207 (a pattern may be absolute)
    return [path for path in found if not path.is_dir()]


def program_of(
    target: TargetSection,
    stream: FiniteStream | GeneratedStream,
    configurations: Sequence[Configuration],
    folder: Path,
    place: SourceLocation,
    *,
    function: Callable[..., Any] | None = None,
    settings: SettingsToArguments | None = None,
    longest: float = math.inf,
) -> CommandProgram | FunctionProgram:
    """Return the program that a scenario describes.

    Args:
        target: The section.
        stream: The instances.
        configurations: The candidates, by index.
        folder: Relative names are seen from here.
        place: The file, for messages.
        function: A Python function in place of what the section says, for library calls.
        settings: How settings are written where the command says `{settings}`, if something else knows better than the
            section, such as a parameter space.
        longest: The seconds that wrappers are told in place of the captime of a run.
    """
    conditions = conditions_of(target, folder, place)
    repeatable = None if target.repeatable == "auto" else target.repeatable
    if function is not None or target.function is not None or target.kind == "function":
        _check_function(target, place, given=function is not None)
        return FunctionProgram(
            stream,
            configurations,
            function or str(target.function),
            folder=folder,
            conditions=conditions,
            time=target.time,
            tolerance=target.tolerance,
            repeatable=repeatable,
        )
    wrapper = None if target.wrapper is None else WRAPPERS[target.wrapper]
    _check_command(target, stream, configurations, place)
    if settings is None and (target.settings_style is not None or target.switches):
        usual = ArgumentStyle() if wrapper is None else wrapper.style
        words = usual.words if target.settings_style is None else tuple(target.settings_style)
        settings = ArgumentStyle(words, target.switches, usual.text)
    return CommandProgram(
        stream,
        configurations,
        target.command,
        folder=folder,
        conditions=conditions,
        success=_success_of(target, _goal_of(target, stream, configurations, place)),
        wrapper=wrapper,
        settings=settings,
        stdin=target.stdin,
        repeatable=repeatable,
        longest=longest,
    )


def _goal_of(
    target: TargetSection,
    stream: FiniteStream | GeneratedStream,
    configurations: Sequence[Configuration],
    place: SourceLocation,
) -> TargetValue | None:
    """Return the value that ends a run; what has no meaning beside it is refused."""
    until = target.until
    if until is None:
        return None
    where = place(_TARGET, "until")
    for field in _NOT_WITH_UNTIL:
        if field in target.model_fields_set:
            raise ScenarioError(
                f"{place(_TARGET, field)} means nothing beside until: a run is over, and has answered, when a line "
                "reaches the value; leave one of the two out"
            )
    for each in configurations:
        if each.answer is not None or each.exit_codes is not None:
            raise ScenarioError(f"{where}: configuration {each.name!r} says what its answer is; leave that out")
    if (until.at_most is None) == (until.at_least is None):
        raise ScenarioError(f"{where}: expected exactly one of at_most and at_least")
    direction: Direction = "at_least" if until.at_most is None else "at_most"
    bound = until.at_least if until.at_most is None else until.at_most
    if not isinstance(bound, FromBest):
        return TargetValue(until.pattern, direction, number=None if bound is None else float(bound))
    if (bound.best_times is None) == (bound.gap is None):
        raise ScenarioError(f"{where}: {direction} is a table; expected exactly one of best_times and gap in it")
    goal = TargetValue(until.pattern, direction, best_times=bound.best_times, gap=bound.gap)
    _check_best_values(goal, stream, place)
    return goal


def _check_best_values(goal: TargetValue, stream: FiniteStream | GeneratedStream, place: SourceLocation) -> None:
    """Refuse a bound that needs the best values of instances of which they are not known."""
    if isinstance(stream, GeneratedStream):
        raise ScenarioError(
            f"{place(_TARGET, 'until')} needs the best value of every instance, which is not known of instances that "
            "a generator makes; give a number, or list the instances"
        )
    with place.naming():
        for instance in stream.instances:
            goal.bound(instance.answer, instance.name)


def _success_of(target: TargetSection, goal: TargetValue | None) -> Success:
    return Success(
        until=goal,
        answer=target.answer,
        exit_codes=None if target.exit_codes is None else tuple(target.exit_codes),
        verifier=None if target.verifier is None else tuple(target.verifier),
        verifier_timeout=target.verifier_timeout,
        time=target.time,
        tolerance=target.tolerance,
    )


def _check_function(target: TargetSection, place: SourceLocation, *, given: bool) -> None:
    if target.function is None and not given:
        raise ScenarioError(
            f"{place(_TARGET, 'function')} is missing, but kind is 'function'; write module:function, such as "
            "solver:solve"
        )
    for field in _OF_COMMANDS:
        if field in target.model_fields_set:
            raise ScenarioError(f"{place(_TARGET, field)} means nothing for a function; leave it out")
    if target.kind == "command":
        raise ScenarioError(f"{place(_TARGET, 'kind')} is 'command', but a function is given; leave one of them out")


def _check_command(
    target: TargetSection,
    stream: FiniteStream | GeneratedStream,
    configurations: Sequence[Configuration],
    place: SourceLocation,
) -> None:
    if target.command is None and any(each.command is None for each in configurations):
        raise ScenarioError(
            f"{place(_TARGET, 'command')} is missing; write the command as a list, one word per argument, such as "
            '["minisat", "-rnd-seed={seed}", "{instance}"]. A Python function is function = "module:function"'
        )
    if target.time == "reported" and target.wrapper is None:
        raise ScenarioError(
            f"{place(_TARGET, 'time')} is 'reported', but a plain command reports no time; name its wrapper, or leave "
            "the field out and the measured time counts"
        )
    if target.stdin is not None and "{" in target.stdin and target.stdin != "{instance}":
        raise ScenarioError(f"{place(_TARGET, 'stdin')} is {target.stdin!r}; expected '{{instance}}' or a file's name")
    style = target.settings_style
    if style is not None and not any("{value}" in word for word in style):
        raise ScenarioError(f"{place(_TARGET, 'settings_style')} is {style}; expected {{value}} somewhere in it")
    if (
        stream.has_answers
        and target.wrapper is None
        and target.until is None
        and any((each.answer or target.answer) is None for each in configurations)
    ):
        raise ScenarioError(
            f"{place(_TARGET, 'answer')} is missing, but right answers are known; describe an answer in the "
            "output by a pattern, or they cannot be compared"
        )


# From `[instances]` to the stream that all configurations share.

_INSTANCES = "instances"
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
        raise ScenarioError(f"{place(_INSTANCES)} {found}; expected exactly one of {', '.join(_WAYS)}")
    answers = {} if wishes.answers is None else read_answers(folder / wishes.answers, place(_INSTANCES, "answers"))
    if ways == ["generator"]:
        _refuse(wishes, _OF_FILES, place, "a generator")
        where = place(_INSTANCES, "generator")
        return _generated(wishes, where, folder, seed=seed, environment=environment, kept=generated, answers=answers)
    _refuse(wishes, _OF_GENERATORS, place, "listed instances")
    groups = None
    if given is not None or wishes.values is not None:
        values = wishes.values if given is None else list(given)
        instances = from_values(values or [], place(_INSTANCES, "values"), allow_duplicates=wishes.allow_duplicates)
    else:
        where = place(_INSTANCES, ways[0])
        listed = _listed(wishes, folder, where)
        instances, groups = look_at(listed, folder, where, allow_duplicates=wishes.allow_duplicates)
    for each in instances:
        passed_unchanged(each.path or each.name, f"instance {each.name!r}", place(_INSTANCES))
    if answers:
        instances = with_answers(instances, answers, place(_INSTANCES, "answers"))
    if wishes.seeds > 1:
        instances, groups = with_seeds(instances, groups, wishes.seeds, place(_INSTANCES, "seeds"))
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
    where = place(_INSTANCES, "population")
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
            f"{place(_INSTANCES, 'seeds')} is {wishes.seeds}, and the runs of one instance with several seeds are no "
            f"independent draws, so the claim has to be about exactly these instances. But {why}; or leave seeds out"
        )
    if wishes.seeds > 1 and not seeded:
        raise ScenarioError(
            f"{place(_INSTANCES, 'seeds')} is {wishes.seeds}, but the program is not given its seed, so every run of "
            "an instance would be the same; pass the seed on ({seed} in a command, a parameter called seed of a "
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
            raise ScenarioError(f"{place(_INSTANCES, field)} means nothing for {whose}; leave it out")


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
