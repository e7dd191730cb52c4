"""What a dashboard costs a campaign: commits with and without fifty pages that look on, measured in one run.

    python benchmarks/dashboard.py [--clients 50] [--rounds 12] [--seconds 2] [--runs 20000] [--where DIR] [--limit 2]

One process writes as a campaign does: a run is announced, put on the board of slots, observed and taken off again, as
fast as the disk allows. A real `captime dashboard` is there all the time. In every round the same work is done for some
seconds without readers, and for as many seconds while browsers look: each asks for the whole page every 0.8 s, from
an address of its own. So both kinds of seconds meet the same machine and the same ledger. The first line compares the
quiet seconds of odd rounds with those of even rounds, which is what chance does.

Ends with exit code 1 if the 99th percentile of a commit beside the pages is more than the limit times the one alone, or
if any commit or page failed.
"""

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from captime.certificate import Certificate
from captime.errors import LedgerLocked
from captime.ledger import ConfigRow, Ledger, SampleRow
from captime.ledger.ownership import SlotBoard, SlotId
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict

_CONFIGS = 100
_GROUP = 1000
_SCENARIO = {"utility": "log-laplace(60, 1)", "delta": 0.1, "seed": 0, "procedure": "by hand", "options": {}}
# As often as the page itself asks.
_PAUSE = 0.8
_SETTLE = 1.0


# ------------------------------------------------------------------ the campaign


class Campaign:
    """A campaign that writes.

    Args:
        ledger: Where to.
        board: Likewise.

    Attributes:
        refused: Commits that were refused because another process had the file locked.
    """

    def __init__(self, ledger: Ledger, board: SlotBoard) -> None:
        self.refused = 0
        self._ledger = ledger
        self._board = board
        self._numbers = count()

    def fill(self, runs: int) -> None:
        """Something to look at, written in large groups."""
        for first in range(0, runs, _GROUP):
            requests = [self._request() for _ in range(min(_GROUP, runs - first))]
            self._ledger.started(requests, {each.instance: _sample(each.instance) for each in requests})
            self._ledger.observed([_outcome(each) for each in requests])
            epsilon = 1.0 / (1.0 + first / 2000)
            self._ledger.certified(Certificate(0, epsilon, 0.1, _CONFIGS, 0.5, 0.6), first, first, first, _CONFIGS)

    def work(self, seconds: float) -> list[float]:
        """Record run after run for `seconds`; return how long each commit took."""
        taken, until, seat = [], time.perf_counter() + seconds, SlotId(0, "here")
        while time.perf_counter() < until:
            request = self._request()
            begun = time.perf_counter()
            try:
                self._ledger.started([request], {request.instance: _sample(request.instance)})
                announced = time.perf_counter()
                self._board.running(seat, request)
                self._board.idle(seat)
                told = time.perf_counter()
                self._ledger.observed([_outcome(request)])
            except LedgerLocked:
                self.refused += 1
                continue
            taken += [announced - begun, time.perf_counter() - told]
        return taken

    def _request(self) -> RunRequest:
        number = next(self._numbers)
        return RunRequest(number % _CONFIGS, number // _CONFIGS, 12.5)


def _sample(position: int) -> SampleRow:
    return SampleRow(position, f"instances/uf250-{position:06d}.cnf", f"{position:064x}", position + 1)


def _outcome(request: RunRequest) -> RunOutcome:
    seconds = 0.1 + 0.01 * (request.instance % 97) + 0.02 * request.config
    measured = Measurement(cpu_ns=round(seconds * 1e9), wall_ns=round(seconds * 1e9), exit_code=10, host="here")
    return RunOutcome(request, Status.COMPLETED, seconds, seconds, "", Verdict.ANSWERED, measured)


# ------------------------------------------------------------------ those who look on


class Audience:
    """Pages that ask, each in a thread and from an address of its own; told by lines on stdin when to look.

    Args:
        address: As `captime dashboard` prints it.
        clients: How many.
    """

    def __init__(self, address: str, clients: int) -> None:
        parts = urlsplit(address)
        self._port = int(parts.port or 0)
        self._looking = threading.Event()
        self._pages: list[int] = []
        self._bytes: list[int] = []
        token = parts.fragment.partition("=")[2]
        _, cookie, _ = self._asked(1, "/enter", {"X-Captime-Token": token})
        self._cookie = cookie.partition(";")[0]
        for number in range(clients):
            threading.Thread(target=self._look, args=(number,), daemon=True).start()

    def _asked(self, number: int, path: str, headers: dict[str, str]) -> tuple[int, str, int]:
        source = (f"127.0.{1 + number // 250}.{1 + number % 250}", 0)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30, source_address=source)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("set-cookie", "") or "", len(answer.read())
        finally:
            connection.close()

    def _look(self, number: int) -> None:
        # Not all at the same moment.
        time.sleep(_PAUSE * (number % 16) / 16)
        while True:
            self._looking.wait()
            try:
                status, _, size = self._asked(number, "/state?width=600&seen=0", {"Cookie": self._cookie})
            except OSError:
                status, size = 0, 0
            self._pages.append(status)
            self._bytes.append(size)
            time.sleep(_PAUSE)

    def follow(self) -> None:
        """Look and stop looking as told; in the end say how many pages came, how many did not, and how many bytes."""
        for line in sys.stdin:
            if line.strip() == "look":
                self._looking.set()
            else:
                self._looking.clear()
            print(len(self._pages), sum(status != 200 for status in self._pages), sum(self._bytes), flush=True)


@contextmanager
def _started(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _told(process: subprocess.Popen[str], word: str) -> list[int]:
    assert process.stdin is not None  # noqa: S101 (they are pipes)
    assert process.stdout is not None  # noqa: S101 (a pipe)
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return [int(each) for each in process.stdout.readline().split()]


# ------------------------------------------------------------------ the comparison


def _p99(commits: list[float]) -> float:
    return float(np.percentile(commits, 99)) if commits else float("nan")


def _line(what: str, commits: list[float]) -> str:
    middle, late = np.percentile(commits, [50, 99]).tolist()
    return f"{what}: {len(commits):,} commits, median {1e3 * middle:.2f} ms, p99 {1e3 * late:.2f} ms"


def compare(path: Path, wishes: argparse.Namespace) -> int:
    """Write, look, compare; the exit code."""
    configs = [ConfigRow(index, f"configuration {index}") for index in range(_CONFIGS)]
    alone: list[list[float]] = []
    beside: list[float] = []
    with Ledger.create(path, _SCENARIO, configs) as ledger, SlotBoard(path, ledger.campaign_id) as board:
        campaign = Campaign(ledger, board)
        campaign.fill(wishes.runs)
        with _started("-m", "captime", "dashboard", str(path)) as dashboard:
            assert dashboard.stdout is not None  # noqa: S101 (a pipe)
            address = dashboard.stdout.readline().strip()
            with _started(__file__, "--audience", address, "--clients", str(wishes.clients)) as audience:
                # The first looks read the whole ledger; that is not what is measured.
                _told(audience, "look")
                campaign.work(5.0)
                before = _told(audience, "rest")
                for _ in range(wishes.rounds):
                    campaign.work(_SETTLE)
                    alone.append(campaign.work(wishes.seconds))
                    _told(audience, "look")
                    campaign.work(_SETTLE)
                    beside += campaign.work(wishes.seconds)
                    after = _told(audience, "rest")
    pages, failed, size = (late - early for late, early in zip(after, before, strict=True))
    quiet = [commit for block in alone for commit in block]
    halves = [[commit for block in alone[start::2] for commit in block] for start in (0, 1)]
    ratio, chance = _p99(beside) / _p99(quiet), _p99(halves[1]) / _p99(halves[0])
    print(f"chance alone: p99 of even quiet rounds is {chance:.2f} times that of odd ones")
    print(_line("no readers", quiet))
    print(_line(f"{wishes.clients} pages look", beside))
    print(f"{pages:,} pages of {size / max(1, pages) / 1e3:.0f} kB were served, {failed} were not")
    print(f"commits refused: {campaign.refused}; p99 ratio {ratio:.2f} (limit {wishes.limit:g})")
    return int(ratio > wishes.limit or campaign.refused > 0 or failed > 0 or pages == 0)


def main() -> int:
    """One of two: the comparison, or the audience that it starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--where", type=Path, default=None)
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("--audience", metavar="ADDRESS", default=None, help=argparse.SUPPRESS)
    wishes = parser.parse_args()
    if wishes.audience is not None:
        # Browsers are elsewhere, or are looked at only now and then: they come last.
        os.nice(19)
        Audience(wishes.audience, wishes.clients).follow()
        return 0
    with tempfile.TemporaryDirectory(dir=wishes.where) as folder:
        return compare(Path(folder) / "busy.ledger", wishes)


if __name__ == "__main__":
    sys.exit(main())
