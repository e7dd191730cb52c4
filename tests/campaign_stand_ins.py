"""A program, a stream and slots that are not real, so that whole campaigns can be tested without a clock."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from captime.campaign import CampaignQuestion
from captime.campaign.run import MakeExecutor
from captime.executors import VirtualExecutor
from captime.executors.protocol import Executor
from captime.ledger import ConfigRow
from captime.programs.protocol import Configuration, Program
from captime.runs import RunOutcome, RunRequest
from captime.sources import RuntimeTable
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of
from captime.streams.finite import TARGET, Element, Instance, Seeds
from captime.supervision.messages import Launch, Report
from captime.utilities import parse_utility

UTILITY = parse_utility("uniform(60)")
_SEEDS = Seeds(TARGET, 0)


class Recorded:
    """A program that is never started: virtual slots answer from a table."""

    def __init__(self, *, repeatable: bool = True) -> None:
        self.repeatable = repeatable

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """Never asked."""
        raise AssertionError(request)

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """Never asked."""
        raise AssertionError(request)

    def describe(self) -> dict[str, object]:
        """A name."""
        return {"command": "recorded"}

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """Whatever."""

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """What it would be."""
        return ["recorded", str(config), instance, str(seed)]

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """What it would be."""
        return f"The command was: recorded {config} {instance.name} {seed}"


class Numbered:
    """Instances without content."""

    population = "stream"

    def __init__(self, length: int | None) -> None:
        self.length = self.n_instances = length

    def at(self, position: int) -> Element:
        """A name, and the seed that a campaign with seed 0 gives."""
        return Element(position, Instance(f"instance-{position}"), _SEEDS.at(position))

    def describe(self) -> dict[str, object]:
        """How many."""
        return {"length": self.length}


def small_table(n_configs: int = 5, n_instances: int = 4000) -> RuntimeTable:
    """Something that a race decides in some hundred runs."""
    return synthetic_table(3, n_configs, n_instances, limit=900.0, spread=0.6)


def question_on(
    table: RuntimeTable, *, epsilon: float = 0.2, repeatable: bool = True, **more: object
) -> CampaignQuestion:
    """Which configuration of the table is best?"""
    return CampaignQuestion(
        program=Recorded(repeatable=repeatable),
        stream=Numbered(table.n_instances),
        configs=[ConfigRow(index, name) for index, name in enumerate(table.configs)],
        utility=UTILITY,
        epsilon=epsilon,
        ceiling=table.limit,
        identity={"command": ["recorded"], "utility": str(UTILITY), "delta": 0.1, "seed": 0},
        **more,  # type: ignore[arg-type] # whatever else a test wants to say
    )


def virtual_slots(table: RuntimeTable, workers: int) -> MakeExecutor:
    """Slots that answer from the table, in the order given."""

    def make(program: Program, tag: str) -> Executor:
        return VirtualExecutor(table, stream_of("given", np.arange(table.n_instances), 0), workers)

    return make


class PulledThePlug(Exception):  # noqa: N818 (what happened, not an error of ours)
    """The process ended just here."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for ledgers; in memory where that is possible, because every commit waits for the disk."""
    memory = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


def ledger_in(folder: Path, name: str = "campaign.ledger") -> Path:
    """Where the ledger of a test is."""
    return folder / name
