"""The pictures of the README and of these pages, from a demo campaign.

    python docs/screenshots.py [FOLDER] [--ledger LEDGER]

Without a ledger a small campaign is made on recorded runtimes, the same one every time. Needs the extras `plot` and
`dashboard`, Playwright and a Chromium (CAPTIME_CHROMIUM, or one on the path).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from captime.campaign import RunSettings, run_campaign
from captime.ledger import ConfigRow, LedgerReader
from captime.ledger.ownership import SlotBoard, SlotId
from captime.sources import RuntimeTable
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility

TESTS = Path(__file__).parents[1] / "tests"
WIDTH, HEIGHT = 1120, 760
_SLOTS = 4
_MIDWAY = 0.1
# Until the page has asked again.
_NEWS_MS = 1500
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def demo_ledger(folder: Path, midway: Callable[[Path, Callable[[], None]], None]) -> Path:
    """Forty configurations of a solver that does not exist, on runtimes that a generator made.

    Args:
        folder: Where the ledger is made.
        midway: Called once while the campaign is under way, with the ledger and with what tells it again what is on
            its slots: a virtual clock stands still while a browser starts.
    """
    sys.path.insert(0, str(TESTS))
    from campaign_stand_ins import question_on, virtual_slots  # noqa: PLC0415 (found on the path just added)

    rng = np.random.default_rng(1)
    made = synthetic_table(5, 40, 20_000, limit=900.0)
    seconds = made.seconds.copy()
    seconds[3, rng.random(20_000) < 0.2] = np.inf
    table = RuntimeTable.build("demo", made.configs, [f"i{each}" for each in range(20_000)], seconds, timeout=900.0)
    configs = []
    for index, typical in enumerate(np.median(made.seconds, axis=1).tolist()):
        restart = ("luby", "glucose", "ema")[int(np.digitize(typical, [20.0, 60.0]))]
        settings: dict[str, object] = {
            "restart": restart,
            "decay": round(0.5 + 0.49 * float(np.exp(-typical / 100.0)) + 0.02 * float(rng.normal()), 3),
            "phase": bool(rng.random() < 0.5),
            "tier": int(10.0 ** rng.uniform(1.0, 5.0)),
        }
        if restart == "luby":
            settings["unit"] = int(rng.integers(32, 512))
        configs.append(ConfigRow(index, "default" if index == 9 else f"{restart}-{index:02d}", settings))
    utility = parse_utility("log-laplace(30, 1)")
    identity = {"utility": str(utility), "delta": 0.1, "seed": 0, "clock": "cpu", "procedure": "race", "options": {}}
    question = replace(question_on(table, epsilon=0.05), configs=configs, utility=utility, identity=identity)
    path = folder / "solver.ledger"
    called = False

    def look(procedure: Any, evidence: Any, executor: Any) -> None:  # noqa: ARG001 (as observers are called)
        nonlocal called
        if not called and procedure.certificate().epsilon <= _MIDWAY and len(executor.watch()) == _SLOTS - 1:
            called = True
            with LedgerReader(path) as reader, SlotBoard(path, reader.campaign_id) as board:

                def tell() -> None:
                    # Virtual slots have no numbers: each run gets one here. One has just ended, and no run follows yet.
                    for slot, (request, seconds) in enumerate(executor.watch()):
                        board.running(SlotId(slot, "here"), request, seconds)
                    board.idle(SlotId(_SLOTS - 1, "here"))

                tell()
                midway(path, tell)

    run_campaign(question, path, RunSettings(jobs=_SLOTS), make_executor=virtual_slots(table, _SLOTS), observer=look)
    return path


@contextmanager
def dashboard(ledger: Path) -> Iterator[str]:
    """A dashboard that is running, by its address."""
    command = [sys.executable, "-m", "captime", "dashboard", str(ledger)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (our own command)
        try:
            yield (process.stdout.readline() if process.stdout else "").strip()
        finally:
            process.terminate()


def shoot(page: Any, path: Path) -> None:
    """What is in the window."""
    page.screenshot(path=str(path))
    print(path)


def main() -> None:
    """Make the ledger if there is none, then the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "pictures")
    parser.add_argument("--ledger", type=Path, default=None)
    wishes = parser.parse_args()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only this script and the tests need it)

    chromium = os.environ.get("CAPTIME_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as made, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})

        def watched(path: Path, tell: Callable[[], None]) -> None:
            with dashboard(path) as address:
                page.goto(address)
                page.wait_for_selector("#intervals svg", timeout=60_000)
                tell()
                page.wait_for_timeout(_NEWS_MS)
                shoot(page, wishes.folder / "dashboard.png")

        ledger = wishes.ledger or demo_ledger(Path(made), watched)
        if wishes.ledger:
            watched(ledger, lambda: None)
        report = Path(made) / "report.html"
        subprocess.run(  # noqa: S603 (our own command)
            [sys.executable, "-m", "captime", "report", str(ledger), "-o", str(report)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        page.goto(report.as_uri())
        shoot(page, wishes.folder / "report.png")
        page.goto(f"{report.as_uri()}#runtimes")
        shoot(page, wishes.folder / "report-runtimes.png")
        browser.close()


if __name__ == "__main__":
    main()
