"""How long a report takes, and how large it is: by default of a campaign with a million runs.

    python benchmarks/report.py [--runs 1000000] [--configs 400] [--where DIR] [--limit 30]

The ledger is made first (as a campaign would write it, in large groups), which is not part of the time. Prints one line
per figure, and ends with exit code 1 if the report took more CPU time than the limit (one process, so that is the time
on a machine that has nothing else to do) or is larger than 20 MB.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from captime.certificate import Certificate
from captime.ledger import ConfigRow, Ledger, SampleRow
from captime.plans import RandomCaptimes, Schedule
from captime.report.ledger_data import read_story
from captime.report.page import report_page, write_report
from captime.report.views import figures_of
from captime.runs import RunOutcome, RunRequest, Status
from captime.utilities import parse_utility

_UTILITY = "log-laplace(60, 1)"
_GROUP = 20_000
_LARGEST = 20e6


@contextmanager
def _timed(what: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - begun:.2f} s", flush=True)


def make_ledger(path: Path, n_runs: int, n_configs: int) -> None:
    """Write a long race: every configuration on the same positions, captimes drawn by chance."""
    rng = np.random.default_rng(1)
    plan = RandomCaptimes(parse_utility(_UTILITY), 0, Schedule(1.25), Schedule(900.0))
    scenario = {"utility": _UTILITY, "delta": 0.1, "seed": 0, "procedure": "race", "options": {}, "goal": 0.01}
    configs = [
        ConfigRow(index, f"configuration-{index:04d}", {"restart": index % 7, "decay": float(rng.random())})
        for index in range(n_configs)
    ]
    speed = rng.uniform(1.0, 4.0, n_configs)
    with Ledger.create(path, scenario, configs) as ledger:
        spent = 0.0
        for first in range(0, n_runs, _GROUP):
            numbers = np.arange(first, min(first + _GROUP, n_runs))
            config, position = numbers % n_configs, numbers // n_configs
            captime = plan.captime(np.zeros(len(numbers), dtype=np.int64), position)
            seconds = np.exp(speed[config] + 1.2 * rng.standard_normal(len(numbers)))
            requests = [
                RunRequest(*each) for each in zip(config.tolist(), position.tolist(), captime.tolist(), strict=True)
            ]
            places = np.unique(position).tolist()
            ledger.started(requests, {each: SampleRow(each, f"instances/{each:06d}.cnf", "", each) for each in places})
            outcomes = [
                RunOutcome(request, Status.COMPLETED, time_taken, time_taken)
                if time_taken < request.captime
                else RunOutcome(request, Status.CAPPED, request.captime, request.captime)
                for request, time_taken in zip(requests, seconds.tolist(), strict=True)
            ]
            ledger.observed(outcomes)
            spent += sum(outcome.cost for outcome in outcomes)
            epsilon = max(0.01, 1.0 / (1.0 + first / 20_000))
            ledger.certified(Certificate(0, epsilon, 0.1, n_configs, 0.5, 0.6), first, spent, spent, n_configs)


def main() -> int:
    """Make the ledger, time the report, judge it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--configs", type=int, default=400)
    parser.add_argument("--where", type=Path, default=None)
    parser.add_argument("--limit", type=float, default=30.0)
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wishes.where) as folder:
        path, page = Path(folder) / "large.ledger", Path(folder) / "large.html"
        with _timed(f"making a ledger of {wishes.runs:,} runs of {wishes.configs:,} configurations"):
            make_ledger(path, wishes.runs, wishes.configs)
        begun, cpu = time.perf_counter(), time.process_time()
        with _timed("reading it"):
            story = read_story(path)
        with _timed("numbers and charts"):
            views = figures_of(story)
        with _timed("the page"):
            write_report(report_page(story, views), page)
        wall, used, size = time.perf_counter() - begun, time.process_time() - cpu, page.stat().st_size
    print(
        f"report of {wishes.runs:,} runs: {used:.1f} s of CPU time, {wall:.1f} s on the clock, {size / 1e6:.2f} MB "
        f"(limits {wishes.limit:g} s, 20 MB)"
    )
    return int(used > wishes.limit or size > _LARGEST)


if __name__ == "__main__":
    sys.exit(main())
