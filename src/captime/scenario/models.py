"""What a scenario file can say, field by field. The names are the file's; docs/scenario.md explains each."""

import math
import re
from datetime import datetime, time
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, WithJsonSchema
from pydantic_core import PydanticCustomError

from captime.errors import UtilityError
from captime.utilities.formula import parse_duration

# Times and sizes as people write them in a scenario: `10m` is ten minutes, `2GB` are two billion bytes.

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)")
# Limits are signed numbers of 64 bits to the system.
_MOST_BYTES = 2**63 - 1
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}


def seconds_of(value: Any) -> float:
    """Return seconds from a number or a text.

    >>> seconds_of("10m"), seconds_of("90s"), seconds_of(2)
    (600.0, 90.0, 2.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("duration", "expected a time such as 90s, 10m, 2h or 1d, or a number of seconds")
    if not isinstance(value, str):
        if not 0 <= value < math.inf:
            raise PydanticCustomError("duration", "expected a finite number of seconds, 0 or more")
        try:
            return float(value)
        except OverflowError:
            raise PydanticCustomError("duration", "expected a number of seconds that is not astronomical") from None
    value = value.strip()
    try:
        return parse_duration(value, "it")
    except UtilityError as error:
        problem = str(error).removeprefix(f"it is {value!r}").lstrip(",: ")
        raise PydanticCustomError("duration", "{problem}", {"problem": problem}) from None


def bytes_of(value: Any) -> int:
    """Bytes from a number or a text.

    >>> bytes_of("2GB"), bytes_of("1 KiB"), bytes_of(5)
    (2000000000, 1024, 5)
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_BYTES:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found.group(2).lower() not in _UNITS:
        raise PydanticCustomError("size", "expected a size such as 500MB, 2GB or 4GiB, or a number of bytes")
    size = float(found.group(1)) * _UNITS[found.group(2).lower()]
    if size > _MOST_BYTES:
        raise PydanticCustomError("size", "expected a size that a machine can have, such as 500MB, 2GB or 4GiB")
    return max(1, int(size))


def time_of_day(value: Any) -> time | datetime:
    """Return a moment: `18:30`, or a date and time as TOML knows them."""
    if isinstance(value, time | datetime):
        return value
    try:
        return time.fromisoformat(value)
    except (TypeError, ValueError):
        raise PydanticCustomError("moment", "expected a time of day such as '18:30'") from None


_TIME = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^\\s*[0-9.]"}]}
_BYTES = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^\\s*[0-9.]"}]}
_DAY = {"anyOf": [{"type": "string"}, {"type": "object"}]}
"""What editors are told; TOML's own times reach them as texts, or as objects."""

Duration = Annotated[float, BeforeValidator(seconds_of), WithJsonSchema(_TIME)]
Size = Annotated[int, BeforeValidator(bytes_of), WithJsonSchema(_BYTES)]
Moment = Annotated[time | datetime, BeforeValidator(time_of_day), WithJsonSchema(_DAY)]


# Under names of their own, because a section below has a field called `list`.
Texts = list[str]
Values = list[Any]


class Section(BaseModel):
    """A table of the file: nothing unknown, nothing converted behind one's back."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)


class Environment(Section):
    """What the program sees of the environment."""

    inherit: list[str] | None = Field(default=None, description="Variables passed on; ['*'] for all of them.")
    set: dict[str, str] = Field(default={}, description="Variables set for the program.")


class FromBest(Section):
    """A value that is reckoned from the best one known of an instance."""

    best_times: float | None = Field(default=None, description="This multiple of the best value.")
    gap: float | None = Field(default=None, ge=0, description="Away from the best value by this share of it.")


class UntilSection(Section):
    """The value at which a run is over."""

    pattern: str = Field(min_length=1, description="What a line with a value looks like.")
    at_most: float | FromBest | None = Field(default=None, description="The value has to be this or less.")
    at_least: float | FromBest | None = Field(default=None, description="The value has to be this or more.")


class TargetSection(Section):
    """The program to be configured, and what a right answer of it is."""

    kind: Literal["command", "function"] | None = Field(default=None, description="What the target is.")
    command: list[str] | None = Field(default=None, min_length=1, description="The command, one word per argument.")
    function: str | None = Field(default=None, description="A Python function, as module:function.")
    wrapper: Literal["aclib1", "aclib2", "irace", "smac3"] | None = Field(
        default=None, description="A calling convention."
    )
    settings_style: list[str] | None = Field(
        default=None, min_length=1, description="How {settings} writes one setting."
    )
    switches: dict[str, str] = Field(
        default={}, description="What {settings} writes before the value of single settings."
    )
    stdin: str | None = Field(default=None, description="A file the program reads from its standard input.")
    answer: str | None = Field(default=None, min_length=1, description="What a line with a right answer looks like.")
    exit_codes: list[int] | None = Field(
        default=None, min_length=1, description="Exit codes of a run that has answered."
    )
    until: UntilSection | None = Field(default=None, description="The value of a printed line at which a run is over.")
    verifier: list[str] | None = Field(default=None, min_length=1, description="A command that checks an answer.")
    verifier_timeout: Duration = Field(default=60.0, gt=0, description="How long the verifier may take.")
    tolerance: float = Field(
        default=1e-6, ge=0, description="By which share numbers may differ and be the same answer."
    )
    compare_answers: bool = Field(default=True, description="Stop if two configurations contradict each other.")
    time: Literal["measured", "reported"] = Field(default="measured", description="Which time counts.")
    clock: Literal["cpu", "wall"] = Field(default="cpu", description="Clock by which runs are capped and measured.")
    ceiling: Duration | None = Field(default=None, gt=0, description="No run is given more time than this.")
    wall_factor: float = Field(default=5.0, ge=1, description="Wall-clock guard, as a multiple of the captime.")
    memory: Size | None = Field(default=None, description="Memory of the whole process tree.")
    output_limit: Size = Field(default=1 << 30, description="How much a run may print.")
    disk_limit: Size | None = Field(default=None, description="How much a run may write into its own directory.")
    processes: PositiveInt | None = Field(default=None, description="How many processes a run may have at once.")
    directory: str | None = Field(default=None, description="Where runs take place.")
    files: Texts = Field(
        default=[], description="Further files that must not change: libraries, models, data. Patterns are allowed."
    )
    environment: Environment = Field(
        default_factory=Environment, description="What the program sees of the environment."
    )
    repeatable: Literal["auto"] | bool = Field(default="auto", description="Whether the same seed gives the same run.")


class InstancesSection(Section):
    """Where instances come from, and in which order they are met."""

    files: str | Texts | None = Field(default=None, description="Patterns of file names.")
    list: str | None = Field(default=None, description="A file with one path per line.")
    csv: str | None = Field(default=None, description="A table with a column 'instance', perhaps 'answer' and 'group'.")
    values: Values | None = Field(default=None, min_length=1, description="Instances that are not files.")
    generator: Texts | None = Field(default=None, min_length=1, description="A command that makes instance {k}.")
    first: int = Field(default=0, ge=0, description="The first {k} of the generator.")
    suffix: str = Field(default="", description="How names of generated files end.")
    folder: str | None = Field(default=None, description="Where generated files are kept.")
    timeout: Duration = Field(default=60.0, gt=0, description="How long making one instance may take.")
    sampling: Literal["shuffle", "given", "replace"] = Field(default="shuffle", description="In which order.")
    population: Literal["these", "drawn"] | None = Field(
        default=None, description="What the claim is about: exactly these instances, or more like them."
    )
    seeds: PositiveInt = Field(default=1, description="How many seeds each instance is run with.")
    allow_duplicates: bool = Field(default=False, description="Whether two instances may hold the same.")
    answers: str | None = Field(default=None, description="A CSV file of known answers.")


class StopSection(Section):
    """When to stop; whichever comes first."""

    epsilon: float = Field(default=0.1, ge=0, lt=1, description="The goal: within this of the best.")
    gamma: float | None = Field(
        default=None, ge=0, lt=1, description="On a space, the other goal: the best fraction of it that may be missed."
    )
    cpu: Duration | None = Field(default=None, gt=0, description="CPU time of the whole campaign.")
    wall: Duration | None = Field(default=None, gt=0, description="Wall-clock time from now.")
    until: Moment | None = Field(default=None, description="A time of day.")


class ExecutorSection(Section):
    """Where runs happen."""

    kind: Literal["local", "dask"] = Field(default="local", description="This machine, or a Dask cluster.")
    address: str | None = Field(default=None, min_length=1, description="Of a scheduler, such as tcp://host:8786.")
    scheduler_file: str | None = Field(default=None, min_length=1, description="The file a scheduler has written.")
    cluster: Literal["local", "slurm", "pbs", "sge", "lsf", "htcondor", "oar", "moab"] | None = Field(
        default=None, description="A cluster to be started."
    )
    workers: PositiveInt | None = Field(default=None, description="How many workers to ask a started cluster for.")
    options: dict[str, Any] = Field(default={}, description="For the maker of the cluster.")
    transfer: bool = Field(default=False, description="Send instance files to the workers.")
    scratch: str | None = Field(default=None, description="Where workers make the directories of runs.")
    machines: Literal["same", "any", "normalised"] = Field(default="same", description="What is demanded of machines.")
    tolerance: float = Field(default=0.1, gt=0, lt=1, description="By which share machines may differ and be the same.")
    reference: Duration | None = Field(
        default=None, gt=0, description="CPU time of the reference on the machine whose seconds count."
    )
    patience: Duration | None = Field(default=None, gt=0, description="How long to wait if there is no worker.")


class ScenarioModel(Section):
    """The whole file."""

    utility: str = Field(description="What an answer is worth.")
    delta: float = Field(default=0.1, gt=0, lt=1, description="Allowed probability of a wrong certificate.")
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="Random seed; a fresh one is drawn by default.")
    procedure: str | None = Field(default=None, description="The procedure that decides what to run next.")
    options: dict[str, Any] = Field(default={}, description="Options of the procedure.")
    effort: Literal["search", "balanced", "certify"] | None = Field(
        default=None, description="On a space, what CPU time is mainly spent on; balanced if it is left out."
    )
    captime_first: Duration = Field(
        default=1.0, gt=0, description="The first captime of all configurations, where captimes rise."
    )
    jobs: PositiveInt | Literal["auto"] = Field(default="auto", description="How many runs are under way at once.")
    oversubscribe: bool = Field(default=False, description="Allow more jobs than cores.")
    order: Literal["arrival", "fixed"] = Field(default="arrival", description="In which order outcomes are told.")
    window: PositiveInt = Field(default=8, description="How many runs are open at once if the order is fixed.")
    isolation: Literal["cgroup2", "subreaper", "posix"] | None = Field(
        default=None, description="How runs are kept together."
    )
    ledger: str | None = Field(default=None, description="The file in which every run is recorded.")
    executor: ExecutorSection = Field(default_factory=ExecutorSection, description="Where runs happen.")
    target: TargetSection = Field(description="The program.")
    configurations: dict[str, Any] | list[dict[str, Any]] | None = Field(default=None, description="The candidates.")
    space: dict[str, Any] | None = Field(default=None, description="A parameter space, in place of listed candidates.")
    instances: InstancesSection = Field(description="What is to be solved.")
    stop: StopSection = Field(default_factory=StopSection, description="When to stop.")
