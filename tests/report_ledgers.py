"""Ledgers whose every row is known: for the numbers behind figures, for pages, and for payloads that must stay text."""

import atexit
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from campaign_stand_ins import question_on, virtual_slots
from captime.campaign import CampaignQuestion, RunSettings, run_campaign
from captime.certificate import Certificate
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.sources import RuntimeTable
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility

SCENARIO: dict[str, object] = {
    "utility": "uniform(60)",
    "delta": 0.1,
    "seed": 0,
    "clock": "cpu",
    "captime_first": 1.0,
    "procedure": "race",
    "options": {},
}
RACE_CONFIGS = 12


def shared_memory() -> Path:
    """A folder for ledgers; in memory where that is possible, because every commit waits for the disk."""
    memory = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
    made = Path(mkdtemp(prefix="captime-test-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def raced_question(procedure: str = "race") -> tuple[RuntimeTable, CampaignQuestion]:
    """Twelve configurations with settings, some of them conditional, one that crashes now and then."""
    table = synthetic_table(7, RACE_CONFIGS, 3000, limit=900.0)
    seconds = table.seconds.copy()
    seconds[4, np.random.default_rng(1).random(3000) < 0.2] = np.inf
    table = RuntimeTable.build("t", table.configs, [f"i{each}" for each in range(3000)], seconds, timeout=900.0)
    configs = []
    for index in range(RACE_CONFIGS):
        settings: dict[str, object] = {"restart": ["luby", "ema"][index % 2], "decay": 0.5 + index / 50}
        if index % 2 == 0:
            settings["unit"] = 32 + 8 * index
        configs.append(ConfigRow(index, f"config-{index:02d}", settings, "default" if index == 3 else "listed"))
    question = question_on(table, epsilon=0.07 if procedure == "race" else 0.55, procedure=procedure)
    return table, replace(question, configs=configs, identity={**SCENARIO, "procedure": procedure})


@lru_cache(maxsize=4)
def raced_ledger(procedure: str = "race") -> Path:
    """The ledger of a whole campaign, made once, with an explanation beside it."""
    table, question = raced_question(procedure)
    path = shared_memory() / f"{procedure}.ledger"
    run_campaign(question, path, RunSettings(jobs=3), make_executor=virtual_slots(table, 3))
    explain(path)
    return path


def explain(path: Path) -> None:
    """Write beside a ledger what `captime explain` would write there: a path of two steps."""
    with LedgerReader(path) as reader:
        campaign = reader.campaign_id
    known = {"seen_low": 0.2, "seen_high": 0.2, "low": 0.1, "high": 0.3}
    share = {"seen": 0.5, "low": 0.4, "high": 0.6}
    steps = [{"settings": {name: [0, 1]}, **known, "share_so_far": share} for name in ("level", "depth")]
    gain = {"seen_low": 0.4, "seen_high": 0.4, "low": 0.3, "high": 0.5}
    told = {"statement": "level carries half of the gain.", "from": "a", "to": "b", "n_instances": 50}
    text = json.dumps({**told, "gain": gain, "steps": steps, "campaign": campaign})
    path.with_suffix(".explained.json").write_text(text, encoding="utf-8")


def measured(answer: str = "", stderr: str = "", host: str = "node", flags: tuple[str, ...] = ()) -> Measurement:
    """What a real run would say of itself."""
    return Measurement(
        cpu_ns=10**9,
        wall_ns=10**9,
        exit_code=1,
        answer=answer.encode("utf-8", "surrogateescape"),
        stderr_tail=stderr.encode("utf-8", "surrogateescape"),
        host=host,
        flags=flags,
    )


def hand_written(path: Path, names: Sequence[str] = ("fast", "slow", "crashing")) -> Ledger:
    """Three configurations on four positions, every kind of end among them; the ledger is still open.

    Position 0 to 3 of `fast`: answered after 1, 2, 3 and 4 s. `slow`: cut at 5 s, answered after 30 s at the second
    attempt, stopped early at 2 s, under way. `crashing`: failed twice, answered after 8 s, lost.
    """
    configs = [ConfigRow(index, name, {"level": index}) for index, name in enumerate(names)]
    ledger = Ledger.create(path, {**SCENARIO, "procedure": "by hand"}, configs)
    at = {position: SampleRow(position, f"instance-{position}", "", position) for position in range(4)}

    def run(config: int, position: int, captime: float, status: Status, seconds: float, **more: object) -> None:
        request = RunRequest(config, position, captime, int(str(more.pop("attempt", 0))))
        ledger.started([request], at)
        if status is not None:
            verdict = more.pop("verdict", None)
            ledger.observed([RunOutcome(request, status, seconds, seconds, "", verdict, measured(**more))])  # type: ignore[arg-type] # words of a test

    for position, seconds in enumerate((1.0, 2.0, 3.0, 4.0)):
        run(0, position, 60.0, Status.COMPLETED, seconds, verdict=Verdict.ANSWERED)
    run(1, 0, 5.0, Status.CAPPED, 5.0, verdict=Verdict.CAPPED)
    run(1, 1, 10.0, Status.LOST, 4.0, verdict=Verdict.LOST)
    run(1, 1, 40.0, Status.COMPLETED, 30.0, verdict=Verdict.ANSWERED, attempt=1)
    run(1, 2, 60.0, Status.CAPPED, 2.0, verdict=Verdict.CANCELLED)
    ledger.started([RunRequest(1, 3, 60.0)], at)
    run(2, 0, 60.0, Status.FAILED, 0.5, verdict=Verdict.CRASH, stderr="segmentation fault", flags=("contended",))
    run(2, 1, 60.0, Status.FAILED, 0.25, verdict=Verdict.MEMOUT)
    run(2, 2, 60.0, Status.COMPLETED, 8.0, verdict=Verdict.ANSWERED, flags=("contended", "leftovers"))
    run(2, 3, 60.0, Status.LOST, 1.0, verdict=Verdict.LOST)
    for seconds, epsilon, config in ((5.0, 0.9, 1), (20.0, 0.5, 0), (60.0, 0.25, 0)):
        ledger.certified(Certificate(config, epsilon, 0.1, 3, 0.2, 0.8), int(seconds), seconds, seconds, 3)
    ledger.noted("candidates", out=[2], back=[], cpu_seconds=30.0)
    ledger.flush()
    return ledger


UTILITY = parse_utility("uniform(60)")

PAYLOADS: tuple[str, ...] = tuple(
    text
    for shape in (
        "<script>{}</script>",
        "</script><script>{}</script>",
        "<img src=x onerror={}>",
        "<svg onload={}>",
        "<svg><script>{}</script></svg>",
        '"><script>{}</script>',
        "'><img src=x onerror={}>",
        '" onmouseover="{}" x="',
        "' onfocus='{}' autofocus='",
        "<iframe srcdoc='<script>{}</script>'>",
        "<body onload={}>",
        "<details open ontoggle={}>",
        "<a href='javascript:{}'>x</a>",
        "]]><script>{}</script>",
        "--><script>{}</script><!--",
        "</title><script>{}</script>",
        "</style><script>{}</script>",
        "</textarea><script>{}</script>",
        "<math><mtext></mtext><script>{}</script></math>",
        "\u2028<script>{}</script>\u2029",
    )
    for text in (
        shape.format("alert(1)"),
        shape.format("window.owned=1"),
        shape.format("document.title=String.fromCharCode(111,119,110,101,100)"),
    )
)
"""Sixty ways in which a name has become markup somewhere."""


def hostile(path: Path) -> None:
    """A ledger with every payload in every text field."""
    configs = [
        ConfigRow(index, f"{index} {payload}", {payload: payload, "n": index}) for index, payload in enumerate(PAYLOADS)
    ]
    with Ledger.create(path, {**SCENARIO, "command": list(PAYLOADS)}, configs) as ledger:
        for index, payload in enumerate(PAYLOADS):
            request = RunRequest(index, index, 60.0)
            ledger.started([request], {index: SampleRow(index, payload, "", 1)})
            answered = index % 2 == 0
            words = measured(payload, payload, payload, (payload.split()[0],))
            status, verdict = (Status.COMPLETED, Verdict.ANSWERED) if answered else (Status.FAILED, Verdict.CRASH)
            ledger.observed([RunOutcome(request, status, 1.0 + index, 1.0, payload, verdict, words)])
            ledger.noted(payload, words=payload)
            ledger.noted("warning", words=payload)
        ledger.started([RunRequest(0, 60, 60.0)], {60: SampleRow(60, PAYLOADS[0], "", 1)})
        ledger.certified(Certificate(0, 0.5, 0.1, len(PAYLOADS), 0.2, 0.8), 1, 60.0, 60.0, len(PAYLOADS))
        ledger.noted("candidates", out=[1, 2], back=[], cpu_seconds=30.0)
