"""Where the time went: CPU time and runs per configuration; and how long runs were allowed to take, over time."""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.known_runs import KINDS, KnownRuns, sums
from captime.report.story import Story

_STRETCHES = 60


@dataclass(frozen=True, slots=True)
class Spending:
    """Per configuration.

    Attributes:
        seconds: CPU seconds of all attempts.
        runs: Runs, each counted once however often it was tried.
        attempts: Executions.
        kinds: Runs of each kind, by configuration and `KINDS`.
    """

    seconds: FloatArray
    runs: IntArray
    attempts: IntArray
    kinds: IntArray


def spending(story: Story) -> Spending | None:
    """What every configuration cost; None without runs."""
    runs, n = story.runs, len(story.names)
    if runs is None:
        return None
    kinds = np.bincount(runs.config * len(KINDS) + runs.kind, minlength=n * len(KINDS)).reshape(n, len(KINDS))
    return Spending(
        seconds=sums(runs.config, runs.cost, n),
        runs=np.bincount(runs.config, minlength=n),
        attempts=sums(runs.config, runs.attempts.astype(np.float64), n).astype(np.int64),
        kinds=kinds,
    )


@dataclass(frozen=True, slots=True)
class Captimes:
    """How long runs were allowed to take, in stretches of the campaign's CPU time.

    Attributes:
        seconds: CPU seconds of the campaign at the end of each stretch.
        median: Of the captimes of runs that came back in it.
        longest: Of them.
        steps: (CPU seconds, configuration, captime) where captimes of a configuration rose, if they rise at all.
    """

    seconds: FloatArray
    median: FloatArray
    longest: FloatArray
    steps: tuple[tuple[float, int, float], ...]


def captimes(story: Story) -> Captimes | None:
    """Captimes over the campaign; None if the story says nothing about them."""
    runs = story.runs
    if runs is None or not len(runs):
        empty = np.empty(0)
        return Captimes(empty, empty, empty, tuple(story.progress.raised)) if story.progress.raised else None
    finite = np.isfinite(runs.captime)
    spent, captime = runs.spent[finite], runs.captime[finite]
    if len(spent) == 0:
        return None
    edges = np.linspace(0.0, float(spent.max()), _STRETCHES + 1)
    stretch = np.clip(np.searchsorted(edges, spent, side="left") - 1, 0, _STRETCHES - 1)
    order = np.lexsort((captime, stretch))
    ordered, values = stretch[order], captime[order]
    present, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    return Captimes(
        seconds=edges[1:][present],
        median=values[first + (counts - 1) // 2],
        longest=np.maximum.reduceat(values, first),
        steps=_steps(runs, len(story.names)) if story.lottery is None else (),
    )


def _steps(runs: KnownRuns, n_configs: int) -> tuple[tuple[float, int, float], ...]:
    """Where the longest captime of a configuration rose; for plans that raise captimes."""
    found: list[tuple[float, int, float]] = []
    for config in range(n_configs):
        own = runs.of(config)
        order = np.argsort(own.spent, kind="stable")
        highest = np.maximum.accumulate(own.captime[order])
        risen = np.flatnonzero(np.diff(highest, prepend=-1.0) > 0.0)
        found += [
            (float(own.spent[order][place]), config, float(highest[place]))
            for place in risen.tolist()
            if np.isfinite(highest[place])
        ]
    return tuple(sorted(found))
