"""How fast a ledger is, and how large: single commits, group commits, replay, opening, bytes per run.

    python benchmarks/ledger.py [--runs 1000000] [--singles 500] [--where DIR] [--read LEDGER]

Prints one line per figure. A "run" is an intent and an outcome with everything that is measured of a real program.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict

_CONFIGS = 100
_GROUP = 100
_ANSWER = b"s SATISFIABLE"


def _requests(first: int, count: int) -> list[RunRequest]:
    return [RunRequest(number % _CONFIGS, number // _CONFIGS, 12.5) for number in range(first, first + count)]


def _elements(requests: list[RunRequest]) -> dict[int, SampleRow]:
    positions = {request.instance for request in requests}
    return {each: SampleRow(each, f"instances/uf250-{each:06d}.cnf", f"{each:064x}", each + 1) for each in positions}


def _outcome(request: RunRequest) -> RunOutcome:
    seconds = 0.1 + 0.01 * (request.instance % 97)
    measured = Measurement(
        cpu_ns=round(seconds * 1e9),
        wall_ns=round(seconds * 1.01e9),
        exit_code=10,
        peak_memory=12_345_678,
        answer=_ANSWER,
        queue_wait_ns=123_456,
        switches=7,
        output_bytes=1234,
        host="node",
        slot=request.config % 8,
    )
    return RunOutcome(request, Status.COMPLETED, seconds, seconds, "", Verdict.ANSWERED, measured)


@contextmanager
def _timed(what: str, count: int, unit: str) -> Iterator[None]:
    begun, worked = time.perf_counter(), time.process_time()
    yield
    seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
    print(f"{what}: {count / seconds:,.0f} {unit}/s ({count:,} in {seconds:.2f} s, {cpu:.2f} s of CPU)", flush=True)


def _write(ledger: Ledger, first: int, count: int, group: int) -> None:
    for start in range(first, first + count, group):
        requests = _requests(start, min(group, first + count - start))
        ledger.started(requests, _elements(requests))
        ledger.observed([_outcome(request) for request in requests])


def write(path: Path, runs: int, singles: int) -> None:
    """Write a ledger; print how long it took and how large it is."""
    configs = [ConfigRow(index, f"configuration {index}") for index in range(_CONFIGS)]
    with Ledger.create(path, {"question": {}}, configs) as ledger:
        with _timed("single commits, two a run", singles, "runs"):
            _write(ledger, 0, singles, 1)
        with _timed(f"group commits of {_GROUP}", runs - singles, "runs"):
            _write(ledger, singles, runs - singles, _GROUP)
    print(f"size: {path.stat().st_size / runs:.0f} bytes a run ({path.stat().st_size / 1e6:.1f} MB)")


def read(path: Path) -> None:
    """Open, ask and replay a ledger; print how long each took."""
    with _timed("open for reading, counts, newest rows, what is in flight", 1, "times"), LedgerReader(path) as reader:
        runs = sum(count for count, _ in reader.counts().values())
        reader.last_certificate()
        reader.in_flight()
    with LedgerReader(path) as reader:
        with _timed("columns of all runs", runs, "runs"):
            reader.outcomes()
        with _timed("what came after a given row", 1, "times"):
            reader.outcomes(since=reader.last_sequence - 100)
        with _timed("walk over all rows with the chain checked", reader.last_sequence, "rows"):
            for _ in reader.walk():
                pass
    with _timed("open for writing", 1, "times"):
        ledger = Ledger.open(path)
    with ledger, _timed("replay with the chain checked", runs, "runs"):
        for _ in ledger.replay():
            pass
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--singles", type=int, default=500)
    parser.add_argument("--where", type=Path, default=None)
    parser.add_argument("--read", type=Path, default=None, metavar="LEDGER", help="only read this one")
    options = parser.parse_args()
    if options.read is not None:
        read(options.read)
        return
    with tempfile.TemporaryDirectory(dir=options.where) as directory:
        path = Path(directory) / "benchmark.ledger"
        write(path, options.runs, options.singles)
        read(path)


if __name__ == "__main__":
    main()
