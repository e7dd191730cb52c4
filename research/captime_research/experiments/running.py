"""An experiment over several seeds, on as many cores as one likes."""

from collections.abc import Callable
from multiprocessing import get_context

from captime_research.experiments import EXPERIMENTS
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import Setting


def compute(
    name: str, setting: Setting, seeds: int, *, jobs: int = 1, progress: Callable[[int], None] | None = None
) -> list[Row]:
    """The rows of all seeds, in their order.

    Args:
        name: Of the experiment.
        setting: What it is run on.
        seeds: How many seeds: 0, 1, …, seeds - 1.
        jobs: How many seeds at a time, in processes of their own.
        progress: Told how many seeds are done.
    """
    tasks = [(name, setting, seed) for seed in range(seeds)]
    rows: list[Row] = []
    if jobs == 1 or seeds == 1:
        for done, task in enumerate(tasks, start=1):
            rows += _one(task)
            if progress is not None:
                progress(done)
        return rows
    with get_context("spawn").Pool(min(jobs, seeds)) as pool:
        for done, found in enumerate(pool.imap(_one, tasks), start=1):
            rows += found
            if progress is not None:
                progress(done)
    return rows


def _one(task: tuple[str, Setting, int]) -> list[Row]:
    name, setting, seed = task
    return list(EXPERIMENTS[name].compute(setting, seed))
