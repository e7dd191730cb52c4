"""From `[target]` to the program whose runs are made and judged."""

import math
from collections.abc import Callable, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.programs import CommandProgram, Conditions, Configuration, FunctionProgram, environment_of
from captime.programs.command import Direction, Success, TargetValue
from captime.programs.template import ArgumentStyle, SettingsToArguments
from captime.programs.wrappers import WRAPPERS
from captime.scenario.errors import SourceLocation
from captime.scenario.models import FromBest, TargetSection
from captime.streams import FiniteStream, GeneratedStream
from captime.streams.files import digest_of_file, fingerprint_of, require_readable
from captime.supervision.messages import Fingerprint

_SECTION = "target"
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
                f"{place(_SECTION, 'directory')} is {target.directory!r}, which is no folder; make it, or leave the "
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
        where = place(_SECTION, "files", number)
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
    where = place(_SECTION, "until")
    for field in _NOT_WITH_UNTIL:
        if field in target.model_fields_set:
            raise ScenarioError(
                f"{place(_SECTION, field)} means nothing beside until: a run is over, and has answered, when a line "
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
            f"{place(_SECTION, 'until')} needs the best value of every instance, which is not known of instances that "
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
            f"{place(_SECTION, 'function')} is missing, but kind is 'function'; write module:function, such as "
            "solver:solve"
        )
    for field in _OF_COMMANDS:
        if field in target.model_fields_set:
            raise ScenarioError(f"{place(_SECTION, field)} means nothing for a function; leave it out")
    if target.kind == "command":
        raise ScenarioError(f"{place(_SECTION, 'kind')} is 'command', but a function is given; leave one of them out")


def _check_command(
    target: TargetSection,
    stream: FiniteStream | GeneratedStream,
    configurations: Sequence[Configuration],
    place: SourceLocation,
) -> None:
    if target.command is None and any(each.command is None for each in configurations):
        raise ScenarioError(
            f"{place(_SECTION, 'command')} is missing; write the command as a list, one word per argument, such as "
            '["minisat", "-rnd-seed={seed}", "{instance}"]. A Python function is function = "module:function"'
        )
    if target.time == "reported" and target.wrapper is None:
        raise ScenarioError(
            f"{place(_SECTION, 'time')} is 'reported', but a plain command reports no time; name its wrapper, or leave "
            "the field out and the measured time counts"
        )
    if target.stdin is not None and "{" in target.stdin and target.stdin != "{instance}":
        raise ScenarioError(f"{place(_SECTION, 'stdin')} is {target.stdin!r}; expected '{{instance}}' or a file's name")
    style = target.settings_style
    if style is not None and not any("{value}" in word for word in style):
        raise ScenarioError(f"{place(_SECTION, 'settings_style')} is {style}; expected {{value}} somewhere in it")
    if (
        stream.has_answers
        and target.wrapper is None
        and target.until is None
        and any((each.answer or target.answer) is None for each in configurations)
    ):
        raise ScenarioError(
            f"{place(_SECTION, 'answer')} is missing, but right answers are known; say what an answer looks like in "
            "the output, or they cannot be compared"
        )
