"""A program that is a command: its template is filled in, and its output is compared with what an answer looks like."""

import json
import math
import os
import re
import shlex
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from captime.errors import ScenarioError
from captime.programs.judge import TOLERANCE, AnswerRules, TellsTime, judge, meaning
from captime.programs.protocol import Conditions, Configuration, FoundCommand, InstanceGuards, Setting, find_command
from captime.programs.template import (
    RESERVED,
    ArgumentStyle,
    SettingsToArguments,
    Template,
    check_settings,
    passed_unchanged,
    rounded_up,
    safe_path,
    text_of,
)
from captime.programs.wrappers import Called, Wrapper
from captime.runs import RunOutcome, RunRequest
from captime.streams.finite import Element, Instance, InstanceStream
from captime.supervision.messages import Fingerprint, Launch, Report, StopValue
from captime.supervision.output import UNTIL

# Time to target: a run has answered when a line that it prints reaches a value, and not before.
#
# The value is a number, or one that is reckoned from the best value known of the instance: a multiple of it, or a
# share of it away from it. The direction is always said, so nothing depends on the sign of a value.

Direction = Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True)
class TargetValue:
    """The value that ends a run.

    Attributes:
        pattern: Matches the lines with a value, which is the group `value`, or the first group.
        direction: Whether the value has to be at most or at least the bound.
        number: The bound itself, the same for all instances; None if it depends on the best value.
        best_times: The bound is this multiple of the best value that is known of the instance.
        gap: The bound is away from the best value by this share of it.
    """

    pattern: str
    direction: Direction
    number: float | None = None
    best_times: float | None = None
    gap: float | None = None

    @property
    def relative(self) -> bool:
        """Whether the bound depends on the best value of the instance."""
        return self.number is None

    def bound(self, best: bytes | None, instance: str) -> float:
        """Return the bound for an instance whose best known value is this.

        >>> TargetValue("^o ([0-9]+)", "at_most", gap=0.05).bound(b"-100", "a")
        -95.0
        """
        if self.number is not None:
            return self.number
        known = None if best is None else meaning(best)
        if not isinstance(known, float):
            found = "no best value" if best is None else f"the value {best.decode('utf-8', 'replace')!r}"
            raise ScenarioError(
                f"target.until: {found} is known of instance {instance!r}; expected a number for every instance, in "
                "the column answer of instances.csv or in instances.answers"
            )
        if self.best_times is not None:
            return self.best_times * known
        away = (self.gap or 0.0) * abs(known)
        return known + away if self.direction == "at_most" else known - away

    def until(self, best: bytes | None, instance: str) -> StopValue:
        """Return what a slot supervisor compares values with."""
        bound = self.bound(best, instance)
        return StopValue(at_most=bound) if self.direction == "at_most" else StopValue(at_least=bound)


OUTPUT_FILE = "output"
"""What `{output}` is called inside the run's own directory."""
VERIFIER_WORDS = ("instance", "seed", "config", "here", "stdout", "output", "scratch")
"""Placeholders of a verifier's command."""


@dataclass(frozen=True, slots=True)
class Success:
    """What a right answer is.

    Attributes:
        answer: A regular expression that a line of the output has to match; None if the exit code alone decides.
        exit_codes: Accepted exit codes; None for the usual: 0, or what a wrapper's convention says.
        verifier: A command that checks the answer; None for none.
        verifier_timeout: Wall-clock seconds it may take.
        time: Which time counts: as measured by us, or as reported by a wrapper.
        tolerance: By which share a number may differ from the known answer.
        until: The value that ends a run, in place of all the others; None for a program that ends by itself.
    """

    answer: str | None = None
    exit_codes: tuple[int, ...] | None = None
    verifier: tuple[str, ...] | None = None
    verifier_timeout: float = 60.0
    time: TellsTime = "measured"
    tolerance: float = TOLERANCE
    until: TargetValue | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A configuration, ready to be launched."""

    configuration: Configuration
    template: Template
    guarded: tuple[Fingerprint, ...]
    patterns: dict[str, str]
    rules: AnswerRules


class CommandProgram:
    """A command line per configuration.

    Args:
        stream: The instances.
        configurations: The candidates, by index.
        command: The template; None if every configuration has a command of its own.
        folder: Relative names are seen from here.
        conditions: Limits and surroundings.
        success: What a right answer is.
        wrapper: A convention by which the command is called and tells its result.
        settings: How settings are written where the command says `{settings}`; None for the wrapper's or the usual way.
        stdin: What the program reads: `{instance}`, a file, or None for nothing.
        repeatable: Whether the same seed gives the same run; None to see whether the command takes the seed at all.
        longest: The seconds that wrappers, and commands with `{captime}`, are told: no run of the campaign gets more.
            It must not depend on the captime that was drawn for a run; that one is enforced, and told to no program.
    """

    def __init__(
        self,
        stream: InstanceStream,
        configurations: Sequence[Configuration],
        command: Sequence[str] | None,
        *,
        folder: Path,
        conditions: Conditions,
        success: Success,
        wrapper: Wrapper | None = None,
        settings: SettingsToArguments | None = None,
        stdin: str | None = None,
        repeatable: bool | None = None,
        longest: float = math.inf,
    ) -> None:
        self._stream = stream
        self._longest = longest
        self._command = None if command is None else tuple(command)
        self._folder = folder
        self._conditions = conditions
        self._success = success
        self._wrapper = wrapper
        self._worded: SettingsToArguments = settings or (wrapper.style if wrapper is not None else ArgumentStyle())
        self._stdin = stdin
        self._guards = InstanceGuards()
        self._found: dict[tuple[str, ...], FoundCommand] = {}
        self._verifier: Template | None = None
        self._checked_by: tuple[Fingerprint, ...] = ()
        if success.verifier is not None:
            where = "target.verifier"
            Template(success.verifier, where).check(VERIFIER_WORDS)
            found = self._find(success.verifier, where)
            self._verifier, self._checked_by = Template(found.template, where), found.fingerprints
        self._declared = repeatable
        self._candidates: list[_Candidate] = []
        self._seeded = True
        self.extend(configurations)

    @property
    def seeded(self) -> bool:
        """Whether every command is given the seed."""
        return self._seeded

    @property
    def repeatable(self) -> bool:
        """See the protocol. Without a declaration: whether every command takes the seed."""
        return self._seeded if self._declared is None else self._declared

    def once(self) -> "CommandProgram":
        """See the protocol."""
        same = copy(self)
        same._candidates, same._declared = list(self._candidates), False  # noqa: SLF001 (an object of this class)
        return same

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """More candidates, for pools that grow."""
        fresh = [self._prepare(each) for each in configurations]
        self._candidates += fresh
        wrapped = self._wrapper is not None and self._wrapper.seeded
        self._seeded = self._seeded and (wrapped or all("seed" in each.template.names for each in fresh))

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        candidate = self._candidates[request.config]
        element = self._stream.at(request.instance)
        values = self._values(candidate.configuration, element.instance, element.seed, self._longest)
        argv = self._argv(candidate, values, request.config, element, self._longest)
        verifier = None if self._verifier is None else tuple(self._verifier.fill(values))
        goal = self._success.until
        takes_output = any("{output}" in word for word in (*argv, *(verifier or ())))
        return self._conditions.launch(
            number,
            tag,
            request.captime,
            what=tuple(argv),
            preparation=element.instance.preparation,
            guarded=(*candidate.guarded, *self._guards.of(element.instance)),
            stdin=self._read_from(element.instance),
            patterns=candidate.patterns,
            output_file=OUTPUT_FILE if takes_output else None,
            verifier=verifier,
            verifier_timeout=self._success.verifier_timeout,
            exit_codes=candidate.rules.exit_codes or (),
            until=None if goal is None else goal.until(element.instance.answer, element.instance.name),
        )

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        read = None if self._wrapper is None or report.ended != "exit" else self._wrapper.read
        told = None if read is None else read(report, self._longest)
        known = self._stream.at(request.instance).instance.answer
        rules = self._candidates[request.config].rules
        return judge(request, report, rules, repeatable=self.repeatable, known=known, told=told)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {
            "kind": "command",
            "command": None if self._command is None else list(self._command),
            "wrapper": None if self._wrapper is None else self._wrapper.name,
            "answer": self._success.answer,
            "exit_codes": None if self._success.exit_codes is None else list(self._success.exit_codes),
            "verifier": None if self._success.verifier is None else list(self._success.verifier),
            "stdin": self._stdin,
            "programs": self.programs(),
        }

    def programs(self) -> dict[str, str]:
        """Digests of every file that the commands name, by that name."""
        named = {word: digest for found in self._found.values() for word, digest in sorted(found.digests.items())}
        return {**named, **self._conditions.digests}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol. Files that a run makes for itself are shown by their plain names."""
        candidate = self._candidates[config]
        element = Element(0, Instance(instance, instance), seed)
        values = self._values(candidate.configuration, element.instance, seed, math.inf)
        argv = self._argv(candidate, values, config, element, math.inf)
        return [word.replace("{output}", OUTPUT_FILE).replace("{scratch}", ".") for word in argv]

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """See the protocol."""
        return f"The command was: {shlex.join(self.command_line(config, instance.path or instance.name, seed))}"

    # ------------------------------------------------------------------ one configuration

    def _prepare(self, configuration: Configuration) -> _Candidate:
        where = f"configuration {configuration.name!r}"
        command = configuration.command or self._command
        if command is None:
            raise ScenarioError(
                f"{where} names no command, and neither does [target]; write command = [...] in one of the two places"
            )
        written = Template(command, f"{where}: command" if configuration.command else "target.command")
        check_settings(configuration, written, where, all_passed=self._wrapper is not None)
        found = self._find(command, f"{where}: command" if configuration.command else "target.command")
        answer = configuration.answer or self._success.answer
        patterns = {} if answer is None else {"answer": checked_pattern(answer, where)}
        if self._success.until is not None:
            patterns |= {UNTIL: checked_pattern(self._success.until.pattern, "target.until")}
        if self._wrapper is not None:
            patterns |= self._wrapper.patterns
        template = Template(found.template, where)
        # Filled in once now, so that a value which cannot be passed on is refused before anything runs.
        values = self._values(configuration, Instance("instance"), 1, 1.0)
        self._argv(
            _Candidate(configuration, template, (), {}, AnswerRules()), values, 0, Element(0, Instance("i"), 1), 1.0
        )
        guarded = {entry[0]: entry for entry in (*found.fingerprints, *self._checked_by)}
        return _Candidate(configuration, template, tuple(guarded.values()), patterns, self._rules(configuration))

    def _find(self, words: Sequence[str], where: str) -> FoundCommand:
        key = tuple(words)
        if key not in self._found:
            self._found[key] = find_command(key, self._folder, self._conditions.environment, where)
        return self._found[key]

    def _rules(self, configuration: Configuration) -> AnswerRules:
        success = self._success
        usual = (0,) if self._wrapper is None else self._wrapper.exit_codes
        codes = configuration.exit_codes or success.exit_codes
        return AnswerRules(
            exit_codes=usual if codes is None else codes,
            pattern=self._wrapper is None and (configuration.answer or success.answer) is not None,
            verifier=success.verifier is not None,
            time=success.time,
            clock=self._conditions.clock,
            tolerance=success.tolerance,
            until=success.until is not None,
        )

    def _values(
        self, configuration: Configuration, instance: Instance, seed: int, longest: float
    ) -> dict[str, Setting]:
        return dict(configuration.settings) | {
            "seed": seed,
            "instance": shown_to_program(instance),
            "captime": rounded_up(longest),
            "config": configuration.name,
            "here": os.fspath(self._folder),
            "settings": self._worded(configuration.settings),
        }

    def _argv(
        self, candidate: _Candidate, values: dict[str, Setting], config: int, element: Element, longest: float
    ) -> list[str]:
        argv = candidate.template.fill(values)
        if self._wrapper is None:
            return argv
        settings = self._worded(candidate.configuration.settings)
        worded = [passed_unchanged(word, "a setting", f"configuration {values['config']!r}") for word in settings]
        instance = shown_to_program(element.instance)
        return argv + self._wrapper.words(Called(instance, element.seed, config, element.position, longest, worded))

    def _read_from(self, instance: Instance) -> str | None:
        if self._stdin is None:
            return None
        if self._stdin == "{instance}":
            return instance.path
        return os.fspath(self._folder / self._stdin)


def shown_to_program(instance: Instance) -> str:
    """Return what a program is given for an instance: its path, or its value as a word."""
    if instance.path is not None:
        return safe_path(instance.path)
    value = instance.value
    return text_of(value) if isinstance(value, str | int | float | bool) else json.dumps(value, default=repr)


def checked_pattern(pattern: str, where: str) -> str:
    """Return the pattern itself, if it is a regular expression that cannot match nothing at all."""
    try:
        compiled = re.compile(os.fsencode(pattern))
    except re.error as error:
        raise ScenarioError(
            f"{where}: the answer's pattern {pattern!r} is no regular expression: {error}; a backslash before it makes "
            "any sign stand for itself"
        ) from None
    if compiled.match(b"") is not None:
        raise ScenarioError(
            f"{where}: the answer's pattern {pattern!r} matches an empty line, so anything would be an answer; write "
            "what a right answer looks like, such as ^s (SATISFIABLE|UNSATISFIABLE)"
        )
    return pattern


__all__ = ["OUTPUT_FILE", "RESERVED", "VERIFIER_WORDS", "CommandProgram", "Success", "checked_pattern"]
