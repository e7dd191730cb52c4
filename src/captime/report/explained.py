"""Which settings carry the gain: as a sentence and a table, and as one JSON object."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from captime.campaign.explain import Ablation, Group, SettingsDifference
from captime.campaign.measurement import DECIDED
from captime.report.words import STOPPED, cpu_time, printable, rounded_down, rounded_up
from captime.spaces.values import text_of

_NAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Explained:
    """An ablation path with what there is to tell about it.

    Attributes:
        first: Name of the configuration it starts from.
        last: Name of the one it leads to.
        difference: What differs between them.
        steps: Which groups of settings change at each step.
        found: The intervals.
        least: A gain below this is called none.
        n_choice: On how many instances the order was chosen.
        n_met: How many instances were left out because the campaign had met them.
        stopped: Why the runs ended.
        n_runs: How many there were, those that chose the order included.
        cpu_seconds: What they cost.
        clock: Of the seconds, `cpu` or `wall`.
        utility: What an answer is worth, as text.
        campaign: Identity of the campaign's ledger.
        ledgers: Where the runs are.
    """

    first: str
    last: str
    difference: SettingsDifference
    steps: Sequence[tuple[Group, ...]]
    found: Ablation
    least: float
    n_choice: int
    n_met: int
    stopped: str
    n_runs: int
    cpu_seconds: float
    clock: str
    utility: str
    campaign: str
    ledgers: Sequence[Path]

    def settings_of(self, step: int) -> list[str]:
        """Return the names of the settings that change at a step, counted from 0."""
        return [name for group in self.steps[step] for name in group]

    @property
    def named(self) -> list[str]:
        """The settings that the sentence names."""
        return [name for step in range(self.found.named) for name in self.settings_of(step)]


def statement_of(told: Explained) -> str:
    """Return the answer as one or two sentences."""
    found, gain = told.found, told.found.gain
    sure = f"With probability at least {rounded_down(100 * (1 - found.delta), 2).rstrip('0').rstrip('.')} %"
    first, last = printable(told.first), printable(told.last)
    interval = f"{rounded_down(gain.low)} to {rounded_up(gain.high)}"
    if gain.high < told.least:
        return f"{sure}, {last} exceeds {first} by at most {rounded_up(gain.high)}: there is no gain to explain."
    if gain.low <= 0.0:
        return (
            f"{sure}, the difference between {last} and {first} is {interval}, so that no gain is shown yet; more "
            "instances or a larger --budget may show one."
        )
    count, whole = len(told.named), told.difference.n_settings
    if count == whole:
        which = "its only changed setting" if whole == 1 else f"all {whole} changed settings together"
        return f"{sure}, {last} exceeds {first} by {interval}, and {which} ({_listed(told.named)}) carry it."
    these = f"this 1 of {whole} settings carries" if count == 1 else f"these {count} of {whole} settings carry"
    share = found.share
    return f"{sure}, {these} {_percent(share.low, share.high)} of the gain of {interval}: {_listed(told.named)}."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(printable, names[:_NAMES_SHOWN]))
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def _percent(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "an unknown share"
    if high is None:
        return f"at least {100 * (low or 0.0):.0f} %"
    if low is None:
        return f"at most {100 * high:.0f} %"
    return f"between {100 * low:.0f} and {100 * high:.0f} %"


def explained_json(told: Explained) -> dict[str, object]:
    """Return everything, in words that JSON knows."""
    found = told.found
    cumulative = [*found.shares, None]
    return {
        "statement": statement_of(told),
        "from": told.first,
        "to": told.last,
        "n_settings": told.difference.n_settings,
        "settings": told.named,
        "share": {"low": found.share.low, "high": found.share.high, "seen": found.share.seen},
        "gain": asdict(found.gain),
        "delta": found.delta,
        "n_instances": found.n_instances,
        "n_choice": told.n_choice,
        "n_met": told.n_met,
        "steps": [
            {
                "settings": {name: [told.difference.start.get(name), told.difference.goal.get(name)] for name in names},
                **asdict(found.steps[place]),
                "share_so_far": {"low": 1.0, "high": 1.0, "seen": 1.0} if share is None else asdict(share),
            }
            for place, share in enumerate(cumulative)
            for names in [told.settings_of(place)]
        ],
        "utility": told.utility,
        "stopped": told.stopped,
        "runs": told.n_runs,
        "cpu_seconds": told.cpu_seconds,
        "campaign": told.campaign,
        "ledgers": [str(path) for path in told.ledgers],
    }


def print_explained(told: Explained) -> None:
    """Print it for people."""
    console = Console(highlight=False, markup=False)
    console.print(statement_of(told), style="bold", soft_wrap=True)
    grid = Table()
    for heading in ("step", "setting", f"from {printable(told.first)}", f"to {printable(told.last)}"):
        grid.add_column(heading)
    for heading in ("gain of the step", "share of the gain so far"):
        grid.add_column(heading, justify="right")
    for place, worth in enumerate(told.found.steps):
        names = told.settings_of(place)
        shown = (
            names if len(names) <= _NAMES_SHOWN else [*names[:_NAMES_SHOWN], f"and {len(names) - _NAMES_SHOWN} more"]
        )
        share = "100 %" if place == len(told.found.shares) else _range(told, place)
        grid.add_row(
            str(place + 1),
            "\n".join(map(printable, shown)),
            "\n".join(_value(told.difference.start, name) for name in names[:_NAMES_SHOWN]),
            "\n".join(_value(told.difference.goal, name) for name in names[:_NAMES_SHOWN]),
            f"{rounded_down(worth.low)} to {rounded_up(worth.high)}",
            share,
        )
    console.print(grid)
    why = "it is known closely enough" if told.stopped == DECIDED else STOPPED.get(told.stopped, told.stopped)
    lines = [
        (
            f"cost: {cpu_time(told.cpu_seconds, told.clock)}, {told.n_runs:,} runs; the order was chosen on "
            f"{told.n_choice:,} instances, and everything above is about {told.found.n_instances:,} others"
        ),
        f"stopped because {why}",
        *(f"ledger: {printable(str(path))}" for path in told.ledgers),
    ]
    if told.n_met:
        lines.append(f"{told.n_met:,} instances were left out because the campaign had been run on them")
    for line in lines:
        console.print(line, soft_wrap=True)


def _range(told: Explained, place: int) -> str:
    if told.found.gain.low <= 0.0:
        return "–"
    share = told.found.shares[place]
    low, high = (None if each is None else f"{100 * each:.0f} %" for each in (share.low, share.high))
    return f"{low or '…'} to {high or '…'}"


def _value(settings: Mapping[str, Any], name: str) -> str:
    return printable(text_of(settings[name])) if name in settings else "(not there)"
