"""Everything a campaign needs, built from a scenario; whoever runs it need not know what TOML is."""

from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Any, Literal

from captime.ledger.rows import ConfigRow
from captime.procedures import Problem
from captime.programs import CommandProgram, Configuration, FunctionProgram
from captime.spaces import Proposer
from captime.streams import FiniteStream, GeneratedStream
from captime.utilities import Utility


@dataclass(frozen=True, slots=True)
class StopWishes:
    """When to stop; whichever comes first.

    Attributes:
        epsilon: The goal.
        cpu: CPU seconds of the whole campaign; None for no limit.
        wall: Wall-clock seconds; None for no limit.
        until: A time of day, or a date and time; None for none.
    """

    epsilon: float
    cpu: float | None
    wall: float | None
    until: time | datetime | None


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts.

    Attributes:
        program: How runs are made and judged.
        stream: The instances, in their order.
        configurations: The candidates, by index.
        config_rows: The same, as a ledger remembers them.
        problem: The question as procedures see it.
        utility: What an answer is worth.
        procedure_name: Who decides.
        options: Its options.
        proposer: Who makes the configurations of a space; None if they are listed.
        check_repeatability: Whether the user left open if the program repeats itself given its seed, so that a
            procedure which repeats runs has to try first.
        compare_answers: Whether contradicting answers end all claims.
        tolerance: By which share two numbers may differ and be the same answer.
        clock: Which time counts.
        jobs: How many runs go on at once.
        order: In which order outcomes are told.
        window: With a fixed order, how many runs are open at once.
        isolation: How runs are kept together; None for the best that works here.
        oversubscribe: Whether there may be more jobs than cores.
        stop: When to stop.
        ledger: The file that records the runs.
        identity: What the answer depends on, in words that JSON knows.
    """

    program: CommandProgram | FunctionProgram
    stream: FiniteStream | GeneratedStream
    configurations: tuple[Configuration, ...]
    config_rows: tuple[ConfigRow, ...]
    problem: Problem
    utility: Utility
    procedure_name: str
    options: dict[str, Any]
    proposer: Proposer | None
    check_repeatability: bool
    compare_answers: bool
    tolerance: float
    clock: Literal["cpu", "wall"]
    jobs: int
    order: Literal["arrival", "fixed"]
    window: int
    isolation: str | None
    oversubscribe: bool
    stop: StopWishes
    ledger: Path
    identity: dict[str, Any]
