"""A program that is a Python function: called in a process of its own for every run, supervised like any program."""

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle

from captime.errors import ScenarioError
from captime.programs.answers import TOLERANCE
from captime.programs.conditions import Conditions
from captime.programs.configurations import Configuration
from captime.programs.guards import Guards
from captime.programs.judge import Rules, TellsTime, Told, judge
from captime.programs.returned import account_of
from captime.programs.signatures import Arguments
from captime.runs import RunOutcome, RunRequest
from captime.streams.contents import digest_of_file, fingerprint_of
from captime.streams.protocol import Instance, InstanceStream
from captime.supervision.messages import Call, Launch, Report


class FunctionProgram:
    """A function of settings, instance and seed. Whatever it raises is a crash.

    Args:
        stream: The instances.
        configurations: The candidates, by index.
        function: The function itself, or `module:function`.
        folder: Where the module is looked for first.
        conditions: Limits and surroundings.
        time: Which time counts: as measured by us, or as reported by the function.
        tolerance: By which share a number may differ from the known answer.
        repeatable: Whether the same seed gives the same run; None to see whether the function takes the seed at all.
    """

    def __init__(
        self,
        stream: InstanceStream,
        configurations: Sequence[Configuration],
        function: Callable[..., Any] | str,
        *,
        folder: Path,
        conditions: Conditions,
        time: TellsTime = "measured",
        tolerance: float = TOLERANCE,
        repeatable: bool | None = None,
    ) -> None:
        self._stream = stream
        self._folder = folder
        self._conditions = conditions
        self._guards = Guards()
        self._reference = function if isinstance(function, str) else ""
        self._function = _imported(function, folder) if isinstance(function, str) else function
        self._pickled = b"" if self._reference else cloudpickle.dumps(self._function)
        self.name = self._reference or getattr(function, "__qualname__", repr(function))
        self._arguments = Arguments(self._function, self.name)
        self._source = _source_file(self._function)
        self._fingerprints = () if self._source is None else (fingerprint_of(self._source),)
        # The function's own module, and for a function given as an object everything that could be imported here.
        here = [os.fspath(folder)] if self._reference else [os.path.abspath(each) for each in sys.path]  # noqa: PTH100 (entries of any kind)
        self._search_path = tuple(dict.fromkeys(here))
        self._configurations: list[Configuration] = []
        self._rules = Rules(time=time, clock=conditions.clock, tolerance=tolerance)
        self.repeatable = self._arguments.seeded if repeatable is None else repeatable
        self.extend(configurations)

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """More candidates, for pools that grow."""
        for each in configurations:
            self._arguments.check(each)
            self._configurations.append(each)

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        element = self._stream.at(request.instance)
        arguments = cloudpickle.dumps(self._bound(request.config, element.instance, element.seed))
        return self._conditions.launch(
            number,
            tag,
            request.captime,
            what=Call(self._pickled, self._reference, arguments, self._search_path),
            preparation=element.instance.preparation,
            guarded=(*self._fingerprints, *self._guards.of(element.instance)),
        )

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        told = _told(report) if report.ended == "exit" else None
        known = self._stream.at(request.instance).instance.answer
        return judge(request, report, self._rules, repeatable=self.repeatable, known=known, told=told)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {"kind": "function", "function": self.name, "programs": self.programs()}

    def programs(self) -> dict[str, str]:
        """Digest of the function's source file; of its code, if it was never in a file."""
        if self._source is not None:
            return {self.name: digest_of_file(self._source)}
        code = getattr(self._function, "__code__", None)
        told = repr((code.co_code, code.co_consts, code.co_names)) if code is not None else self.name
        return {self.name: hashlib.sha256(told.encode()).hexdigest()}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol. A line of Python, where there is no command."""
        args, kwargs = self._bound(config, Instance(instance, instance), seed)
        told = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return [f"{self.name}({', '.join(told)})"]

    def _bound(self, config: int, instance: Instance, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        value = instance.value if instance.path is None else instance.path
        return self._arguments.of(self._configurations[config], value, seed)


def _told(report: Report) -> Told:
    if report.returned is None:
        last = report.stderr_tail.decode("utf-8", "replace").strip().splitlines()[-1:]
        return Told("crashed", problem=f"the function raised {last[0] if last else 'something'}")
    return account_of(report.returned)


def _imported(reference: str, folder: Path) -> Callable[..., Any]:
    """The function behind `module:function`, looked for in the scenario's folder first."""
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ScenarioError(
            f"target.function is {reference!r}; expected module:function, such as 'solver:solve' for the function "
            "solve in solver.py beside the scenario"
        )
    with _first_on_path(folder):
        try:
            found: Any = importlib.import_module(module_name)
        except ImportError as error:
            raise ScenarioError(
                f"target.function is {reference!r}, but importing {module_name} failed: {error}; is {module_name}.py "
                "beside the scenario, and is everything installed that it imports?"
            ) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ScenarioError(
            f"target.function is {reference!r}, but {module_name} has no function {name!r}; check its name"
        )
    function: Callable[..., Any] = found
    return function


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, os.fspath(folder))
    try:
        yield
    finally:
        sys.path.remove(os.fspath(folder))


def _source_file(function: Callable[..., Any]) -> Path | None:
    try:
        found = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return Path(found) if found is not None and Path(found).is_file() else None
