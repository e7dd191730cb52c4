"""What a comparison of tuners came to: as a sentence and a table, and as one JSON object."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from captime.arrays import IntArray
from captime.campaign.judge_candidates import JudgedCandidate
from captime.campaign.measurement import DECIDED
from captime.campaign.result import CampaignResult
from captime.campaign.validation import Worth
from captime.ledger import LedgerReader
from captime.ledger.reading import which_mean
from captime.report.campaigned import assumptions, campaign_json, warnings_of
from captime.report.words import STOPPED, cpu_time, printable, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much the winner exceeds the default.

    Attributes:
        worth: The difference of the expected utilities, seen and bounded.
        n_instances: On how many instances both were run.
        stopped: Why those runs ended.
        n_runs: How many there were.
        cpu_seconds: What they cost.
        captime: Of every run, in seconds.
        ledger: Where they are.
    """

    worth: Worth
    n_instances: int
    stopped: str
    n_runs: int
    cpu_seconds: float
    captime: float
    ledger: Path


@dataclass(frozen=True, slots=True)
class Judged:
    """The race of the candidates, with what there is to tell about it.

    Attributes:
        candidates: The default first.
        result: Of the race.
        gain: Of the winner over the default; None if the default won, or nothing was left for it.
        delta: Allowed probability that anything said is wrong.
        n_met: How many instances were left out because a tuner had met them.
        files: What the candidates were read from.
    """

    candidates: Sequence[JudgedCandidate]
    result: CampaignResult
    gain: Gain | None
    delta: float
    n_met: int
    files: Sequence[Path]

    @property
    def winner(self) -> JudgedCandidate:
        """The recommended one."""
        return self.candidates[self.result.certificate.config]

    @property
    def default(self) -> JudgedCandidate:
        """The configuration that all tuners were to improve."""
        return self.candidates[0]

    def runs(self) -> tuple[IntArray, IntArray]:
        """Return how many runs each candidate had in the race, and how many of them answered."""
        with LedgerReader(self.result.record) as reader:
            columns = reader.outcomes()
        counted = which_mean(columns["status"], lambda meaning: meaning.counts) & ~columns["orphan"]
        answered = counted & which_mean(columns["status"], lambda meaning: meaning.answered)
        count = len(self.candidates)
        return (
            np.bincount(columns["config"][counted], minlength=count),
            np.bincount(columns["config"][answered], minlength=count),
        )


def judged_json(told: Judged) -> dict[str, object]:
    """Return everything, in words that JSON knows."""
    runs, answered = told.runs()
    gain = told.gain
    return {
        "best": told.winner.name,
        "default": told.default.name,
        "statement": statement_of(told),
        "delta": told.delta,
        "candidates": [
            {
                "name": each.name,
                "settings": dict(each.configuration.settings),
                "sources": [
                    {"tuner": result.tuner, "file": str(result.path), "about": about} for result, about in each.sources
                ],
                "filled": list(each.filled),
                "dropped": list(each.dropped),
                "runs": int(runs[place]),
                "answered": int(answered[place]),
                "mean_utility": _number(float(told.result.means[place])),
            }
            for place, each in enumerate(told.candidates)
        ],
        "gain": None
        if gain is None
        else {
            **asdict(gain.worth),
            "n_instances": gain.n_instances,
            "runs": gain.n_runs,
            "cpu_seconds": gain.cpu_seconds,
            "captime": gain.captime,
            "stopped": gain.stopped,
            "ledger": str(gain.ledger),
        },
        "n_met": told.n_met,
        "race": campaign_json(told.result),
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def statement_of(told: Judged) -> str:
    """Return the answer as one sentence."""
    held = told.result.certificate
    name, default = printable(told.winner.name), printable(told.default.name)
    count = len(told.candidates)
    if held.epsilon >= 1.0:
        return f"Nothing is certified yet; {name} is only the first guess among {count} candidates."
    sure = f"With probability at least {rounded_down(100 * (1 - told.delta), 2).rstrip('0').rstrip('.')} %"
    near = f"within {rounded_up(held.epsilon)} of the best of these {count} candidates"
    if told.winner is told.default:
        return f"{sure}, {name} is {near}: no incumbent is better than the default by more than that."
    if told.gain is None:
        return f"{sure}, {name} is {near}. By how much it exceeds {default} was not measured."
    worth = told.gain.worth
    if worth.low > 0:
        more = f"exceeds that of {default} by {rounded_down(worth.low)} to {rounded_up(worth.high)}"
    elif worth.high < 0:
        more = f"is {rounded_down(-worth.high)} to {rounded_up(-worth.low)} below that of {default}"
    else:
        more = (
            f"differs from that of {default} by {rounded_down(worth.low)} to {rounded_up(worth.high)}, so that it is "
            "not shown to be better"
        )
    return f"{sure}, {name} is {near}, and its expected utility {more}."


def print_judged(told: Judged) -> None:
    """Print it for people."""
    console = Console(highlight=False, markup=False)
    console.print(statement_of(told), style="bold", soft_wrap=True)
    runs, answered = told.runs()
    shown = Table()
    for heading in ("candidate", "recommended by", "runs", "answered", "mean utility"):
        shown.add_column(heading, justify="right" if heading in ("runs", "answered", "mean utility") else "left")
    for place, each in enumerate(told.candidates):
        mean = float(told.result.means[place])
        shown.add_row(
            printable(each.name) + (" *" if each is told.winner else ""),
            printable(_source(each)),
            f"{runs[place]:,}",
            f"{answered[place]:,}",
            "–" if np.isnan(mean) else f"{mean:.4f}",
        )
    console.print(shown)
    for line in (*_notes(told), *_cost(told)):
        console.print(line, soft_wrap=True)
    console.print("This rests on:", style="dim")
    for assumed in assumptions(told.result):
        console.print(f"  - {printable(assumed)}", soft_wrap=True)


def _source(candidate: JudgedCandidate) -> str:
    if not candidate.sources:
        return "the scenario"
    return "; ".join(f"{result.tuner}, {result.path.name}: {about}" for result, about in candidate.sources)


def _notes(told: Judged) -> list[str]:
    found = [f"warning: {each}" for each in warnings_of(told.result)]
    for each in told.candidates:
        if each.filled:
            found.append(
                f"note: {printable(each.name)}: its tuner does not name {printable(', '.join(each.filled))}; the "
                "default's values stand for them."
            )
        if each.dropped:
            found.append(
                f"note: {printable(each.name)}: {printable(', '.join(each.dropped))} named by its tuner, but not "
                "active with its other settings; left out."
            )
    if told.n_met:
        found.append(f"note: {told.n_met:,} instances were left out because a tuner was run on them.")
    return found


def _cost(told: Judged) -> list[str]:
    result, gain = told.result, told.gain
    clock = result.question.clock
    lines = [
        (
            f"race: {cpu_time(result.cpu_seconds, clock)}, {int(result.outcome.runs.sum()):,} runs; stopped because "
            f"{STOPPED.get(result.outcome.stopped, result.outcome.stopped)}; ledger {printable(str(result.ledger))}"
        )
    ]
    if gain is not None:
        why = "it is known closely enough" if gain.stopped == DECIDED else STOPPED.get(gain.stopped, gain.stopped)
        lines.append(
            f"gain: {cpu_time(gain.cpu_seconds, clock)}, {gain.n_runs:,} runs on {gain.n_instances:,} instances; "
            f"stopped because {why}; ledger {printable(str(gain.ledger))}"
        )
    return lines
