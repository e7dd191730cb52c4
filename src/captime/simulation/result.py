"""What a simulation came to: what was asked, and what came out."""

import csv
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from captime.certificate import Certificate
from captime.drive import Outcome
from captime.errors import ScenarioError, TableError
from captime.sources import RuntimeTable
from captime.sources.window import Accounting
from captime.spaces import Settings, Space
from captime.spaces.parameters import Choice, Float, Parameter
from captime.utilities import Utility

# Who took part in a simulation on a space, in the place where a simulation on a table has its table.


@dataclass(frozen=True, slots=True)
class Found:
    """What the answer is really worth: simulations know their targets' laws.

    Attributes:
        settings: Of the recommended configuration.
        worth: Its expected utility.
        best: The largest expected utility in the pool.
        default: Expected utility of the default configuration; None where the rows of a table are all there is,
            and none of them is the default.
        above: The share of random configurations that are better by more than the certified epsilon.
        drawn: How many random configurations that was estimated from.
    """

    settings: Settings
    worth: float
    best: float
    default: float | None
    above: float
    drawn: int


@dataclass(frozen=True, slots=True)
class Pooled:
    """The pool as it was at the end.

    Attributes:
        name: What to call the target.
        configs: Names by index.
        settings: Settings by index.
        limit: Nothing is known of runs beyond this.
        n_instances: Recorded instances behind the target; 0 if there are none.
        law: What runtimes rest on.
        proposals: Configurations of the pool that a model proposed.
        found: What the answer is really worth.
        notes: What a reader of the results should know.
    """

    name: str
    configs: tuple[str, ...]
    settings: tuple[Settings, ...]
    limit: float
    n_instances: int
    law: str
    proposals: int
    found: Found
    notes: tuple[str, ...] = ()

    @property
    def n_configs(self) -> int:
        """How many there were at the end."""
        return len(self.configs)


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """A finished simulation: what was asked and what came out.

    Attributes:
        table: The recorded runtimes, or who took their place on a space.
        utility: What answers are worth.
        procedure: Name of the procedure.
        options: Its options, as given.
        bound: Name of the bound it used.
        repeats: Whether cut runs are made again with longer captimes, which needs programs that repeat themselves.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal.
        sampling: How instances were drawn from the table.
        population: `stream` (the distribution the instances come from) or `finite` (exactly these instances).
        seed: Seed of the sampling.
        accounting: Which cost is reported as *the* cost.
        outcome: What came out.
        matrix_cpu_seconds: CPU seconds of every configuration on every instance of the set, each run up to the longest
            captime that is of use; None where the instances have no end.
    """

    table: RuntimeTable | Pooled
    utility: Utility
    procedure: str
    options: Mapping[str, object]
    bound: str
    repeats: bool
    delta: float
    epsilon: float
    sampling: str
    population: str
    seed: int
    accounting: Accounting
    outcome: Outcome = field(repr=False)
    matrix_cpu_seconds: float | None = None

    def __repr__(self) -> str:
        """Return one line: the recommended configuration, what is certified of it, and what it would have cost."""
        held = self.certificate
        return (
            f"<Simulation of {self.table.name!r}: {self.config_name!r}, epsilon {held.epsilon:.4f}, delta "
            f"{held.delta:g}, {int(self.outcome.runs.sum()):,} runs, {self.cpu_seconds:.6g} CPU seconds>"
        )

    @property
    def certificate(self) -> Certificate:
        """The statement."""
        return self.outcome.certificate

    @property
    def config_name(self) -> str:
        """Name of the recommended configuration."""
        return self.table.configs[self.certificate.config]

    @property
    def cpu_seconds(self) -> float:
        """What it would have cost, in the accounting chosen."""
        return float(self.outcome.seconds.sum())

    def cpu_seconds_under(self, accounting: Accounting) -> float:
        """What it would have cost under either accounting; the decisions are the same."""
        rerun = self.outcome.rerun_seconds
        return self.cpu_seconds - rerun[self.accounting] + rerun[accounting]


# The settings of a table's rows, read from a list of configurations that stands in a file beside the table.
#
# Two shapes are in use. One column of words holds `-name 'value'` pairs; or every parameter has a column of its own,
# and columns that name no parameter are left aside. Row k of the list belongs to row k of the table, unless a column
# `id` says otherwise.

BESIDE = "configlist.csv"
"""The name under which a list is looked for beside a table."""
# A recorded number may miss an end of its range by rounding, relative to the range.
_ROUNDING = 1e-9
_SHAPES = "expected a column of words such as -decay '0.9', or one column for each parameter"


def settings_of_list(path: Path, space: Space, n_configs: int) -> list[Settings]:
    """Read the settings of all rows of a table.

    A parameter that a row does not name has its default. What a row says about an inactive parameter has no effect,
    and is left out.

    Args:
        path: The list, a CSV file with a header.
        space: The space that the configurations belong to.
        n_configs: How many rows the table has.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as flaw:
        raise TableError(f"{path}: the list of configurations cannot be read: {flaw}; expected a CSV file") from None
    if len(lines) - 1 != n_configs:
        raise TableError(
            f"{path}: found {max(len(lines) - 1, 0)} configurations, but the table has {n_configs}; expected one line "
            "for each row of the table, below a header"
        )
    header = [column.strip() for column in lines[0]]
    known = [place for place, column in enumerate(header) if column in space.by_name]
    found: list[Settings | None] = [None] * n_configs
    for number, line in enumerate(lines[1:]):
        where = f"{path}, line {number + 2}"
        if len(line) != len(header):
            raise TableError(f"{where}: found {len(line)} fields, expected {len(header)} as in the header")
        said = {header[place]: line[place] for place in known} if known else _words(line, where)
        row = _row(header, line, number, n_configs, where)
        if found[row] is not None:
            raise TableError(f"{where}: row {row} of the table is described twice; expected each once")
        found[row] = _completed(space, said, where)
    return [each for each in found if each is not None]


def _row(header: list[str], line: list[str], number: int, n_configs: int, where: str) -> int:
    """Which row of the table a line describes."""
    if header[0].lower() != "id":
        return number
    text = line[0].strip()
    if not text.isdecimal() or int(text) >= n_configs:
        raise TableError(f"{where}: the id is {text!r}, expected a row of the table, from 0 to {n_configs - 1}")
    return int(text)


def _words(line: list[str], where: str) -> dict[str, str]:
    """Settings from a field of words, which is the last of its line."""
    try:
        words = shlex.split(line[-1])
    except ValueError as flaw:
        raise TableError(f"{where}: {line[-1][:60]!r} has unbalanced quotes ({flaw}); {_SHAPES}") from None
    if not words or len(words) % 2 or any(not word.startswith("-") for word in words[::2]):
        raise TableError(f"{where}: found {line[-1][:60]!r}; {_SHAPES}")
    return {name.lstrip("-"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _completed(space: Space, said: Mapping[str, str], where: str) -> Settings:
    row = space.default_row.copy()
    for name, text in said.items():
        parameter = space.by_name.get(name)
        if parameter is None:
            raise TableError(f"{where}: there is no parameter {name} in the space; is it the space of this table?")
        code = _code(parameter, text.strip())
        if code is None:
            raise TableError(f"{where}: {name} is {text.strip()!r}, which is no value of it; see captime space")
        row[space.names.index(name)] = code
    settings = space.settings(space.deactivated(row[np.newaxis])[0])
    try:
        space.check(settings, where)
    except ScenarioError as flaw:
        raise TableError(str(flaw)) from None
    return settings


def _code(parameter: Parameter, text: str) -> float | None:
    """A recorded value as its parameter has it; None if it is none."""
    if isinstance(parameter, Choice):
        for choice in parameter.choices:
            if text == str(choice) or (isinstance(choice, bool) and text.lower() == str(choice).lower()):
                return parameter.code(choice)
    try:
        number = float(text)
    except ValueError:
        return None
    if isinstance(parameter, Choice):
        same = [each for each in parameter.choices if _number(each) == number]
        return parameter.code(same[0]) if same else None
    low, high = float(parameter.low), float(parameter.high)
    slack = _ROUNDING * max(abs(low), abs(high))
    if not low - slack <= number <= high + slack:
        return None
    number = min(max(number, low), high)
    return parameter.code(number if isinstance(parameter, Float) else round(number))


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
