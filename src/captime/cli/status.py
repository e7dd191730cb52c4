"""`captime status`: how far a campaign is, read from its ledger, also while it runs."""

import json
import math
import time
import webbrowser
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.campaign.transfer import learned_words
from captime.certificate import Population
from captime.cli.shared import LedgerArgument, ledger_of, print_table, say_missing
from captime.errors import MissingExtra
from captime.ledger import LedgerReader
from captime.ledger.ownership import SlotUse, under_way
from captime.report.configurations import ROWS_SHOWN, ConfigurationTable, table_of_story
from captime.report.ledger_data import Pace, floor_of, story_of
from captime.report.ledger_words import OVER, liveness, note_words, summary_of_ledger
from captime.report.words import (
    RUNS_EVERYTHING,
    Summary,
    age_words,
    busy_words,
    certificate_json,
    claim_lines,
    cpu_time,
    gamma_words,
    left_words,
    printable,
    rounded_down,
    rounded_up,
    slot_names,
    statement,
)
from captime.runs import RunRequest, Status, Verdict
from captime.utilities.formula import duration_text

_EVENTS = 5
# How long a watcher waits: this, or this many times as long as it took to read the ledger.
_WATCH_SECONDS = 2.0
_WATCH_SHARE = 10.0
_SHOWN_IN_FLIGHT = 8
# Written for those who check, not for those who watch.
_QUIET = {"facts", "candidates"}


def status_command(
    ledger: LedgerArgument,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again every few seconds until the campaign ends or Ctrl-C.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show all configurations, however many there are.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; with --watch, one for each line.")] = (
        False
    ),
) -> None:
    """Show the certificate, its cost, the runs under way and the latest events. Only reads."""
    ledger = ledger_of(ledger)
    most = None if every else ROWS_SHOWN
    console = Console(markup=False, highlight=False)
    if watch:
        _watch(ledger, console, most, as_json=as_json)
        return
    seen = _read(ledger, most)
    say_missing(seen.found["missing"] or "")
    if as_json:
        typer.echo(json.dumps(seen.found, indent=2))
    else:
        seen.print_on(console)


@dataclass(frozen=True, slots=True)
class _Seen:
    """How a campaign stood at one moment.

    Attributes:
        found: Everything, as `--json` prints it.
        summary: The newest certificate, and what there is to tell about it.
        table: The configurations.
        most: How many of them are shown.
    """

    found: dict[str, Any]
    summary: Summary
    table: ConfigurationTable
    most: int

    def print_on(self, console: Console) -> None:
        """Print it for people."""
        console.print(statement(self.summary), style="bold", soft_wrap=True)
        if self.found["runs"] or self.found["in_flight"]:
            print_table(console, self.table, self.most)
        grid = Table.grid(padding=(0, 2))
        for label, value in _lines(self.found, self.summary):
            grid.add_row(Text(label, style="dim"), Text(printable(value)))
        console.print(grid)


def _read(ledger: Path, most: int | None) -> _Seen:
    with LedgerReader(ledger) as reader, reader.snapshot():
        table, summary = table_of_story(story_of(reader)), summary_of_ledger(reader, reader.last_certificate())
        found = {**_gathered(reader, summary), "configurations": table.as_json()}
    return _Seen(found, summary, table, len(table) if most is None else most)


def _watch(ledger: Path, console: Console, most: int | None, *, as_json: bool) -> None:
    """Print how the campaign stands again and again, until it is over; Ctrl-C ends the watching, not the campaign."""
    shown = ""
    while True:
        began = time.monotonic()
        seen = _read(ledger, most)
        over = seen.found["state"] in OVER
        if seen.found["head"] != shown or over:
            shown = seen.found["head"]
            if as_json:
                typer.echo(json.dumps(seen.found))
            else:
                # A terminal shows the newest state in place of the one before; a pipe gets one after the other.
                console.clear()
                seen.print_on(console)
                if not over:
                    console.print("Ctrl-C ends the watching, not the campaign.", style="dim")
        if over:
            return
        # Reading takes longer the more runs there are; the campaign needs the machine more than its watcher does.
        try:
            time.sleep(max(_WATCH_SECONDS, _WATCH_SHARE * (time.monotonic() - began)))
        except KeyboardInterrupt:
            return


# ---------------------------------------------------------------------- what there is


def _gathered(reader: LedgerReader, summary: Summary) -> dict[str, Any]:
    names, held, events = list(summary.names), summary.certificate, reader.events()
    statuses, verdicts = _sums(reader.counts())
    state = liveness(in_use=reader.in_use, owner=reader.owner)
    seats, unseated = _seats(reader, state)
    return {
        "ledger": str(reader.path),
        "campaign": reader.campaign_id,
        "state": state,
        "owner": None if reader.owner is None else str(reader.owner),
        "seed": summary.seed,
        "goal": None if summary.goal is None else summary.goal.epsilon,
        "gamma_goal": None if summary.goal is None else summary.goal.gamma,
        "certificate": None if held is None else certificate_json(held, names),
        "next_steps": summary.next_steps or None,
        "runs_everything": summary.runs_everything,
        "pace": _pace(reader, summary) if state == "running" else "",
        "learned": learned_words(events) or None,
        "n_configs": len(names),
        "candidates_left": summary.left,
        "runs": summary.runs,
        "statuses": statuses,
        "verdicts": verdicts,
        "orphans": reader.orphans()[0],
        "cpu_seconds": summary.cpu_seconds,
        "clock": summary.clock,
        "wall_seconds": summary.wall_seconds,
        "slots": _slots(reader, names, seats),
        "running_now": None if state in OVER else busy_words(seats, unseated),
        "in_flight": _in_flight(reader, names),
        "events": [
            {
                "at": _moment(event.at_ns),
                "kind": event.kind,
                "facts": dict(event.facts),
                "words": note_words(names, event.kind, event.facts),
            }
            for event in [event for event in events if event.kind not in _QUIET][-_EVENTS:]
        ],
        "missing": reader.missing or None,
        "rows": reader.last_sequence,
        "head": reader.head,
    }


def _sums(counts: dict[tuple[Status, Verdict | None], tuple[int, float]]) -> tuple[dict[str, int], dict[str, int]]:
    statuses: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    for (status, verdict), (count, _) in counts.items():
        statuses[status.value] = statuses.get(status.value, 0) + count
        told = status.value if verdict is None else verdict.value
        verdicts[told] = verdicts.get(told, 0) + count
    return statuses, verdicts


def _pace(reader: LedgerReader, summary: Summary) -> str:
    """Return a guess at how long it may still take; nothing once every instance was met, which ends the stream."""
    held, length, met = summary.certificate, summary.length, len(reader.sample_rows())
    if held is None:
        return ""
    # A claim about exactly these instances falls further while runs on instances that were met are made longer.
    if length is not None and met >= length and held.population is Population.DRAWN:
        return ""
    pace = Pace(summary.epsilon_goal)
    for certified in reader.certificates():
        pace.note(certified.wall_seconds, certified.certificate.epsilon)
    return pace.words(floor_of(held.epsilon, met, length, held.population))


def _seats(reader: LedgerReader, state: str) -> tuple[list[SlotUse], int]:
    """Return what is on the slots; nothing if no process carries the campaign out."""
    if state in OVER:
        return [], 0
    flying = {(each.config, each.instance, each.attempt): None for each, _ in reader.in_flight()}
    return under_way(reader.path, reader.campaign_id, flying)


def _slots(reader: LedgerReader, names: list[str], seats: list[SlotUse]) -> list[dict[str, object]]:
    now = time.time_ns()
    flying = {(each.config, each.instance, each.attempt): each for each, _ in reader.in_flight()}
    places = {sample.position: sample.instance for sample in reader.sample_rows()}
    return [
        {
            "name": name,
            "host": seated.seat.host,
            "worker": seated.seat.worker,
            "slot": seated.seat.slot,
            "run": None
            if seated.run is None
            else {**_run(flying[seated.run], names, places), "seconds": seated.seconds(now)},
        }
        for name, seated in zip(slot_names(seats), seats, strict=True)
    ]


def _run(request: RunRequest, names: list[str], places: dict[int, str]) -> dict[str, object]:
    return {
        "config": names[request.config],
        "instance": places.get(request.instance, ""),
        "position": request.instance,
        "attempt": request.attempt,
        "captime": request.captime if math.isfinite(request.captime) else None,
    }


def _in_flight(reader: LedgerReader, names: list[str]) -> list[dict[str, object]]:
    """What was begun and has not come back; if the campaign is not running, it was cut off and is made again."""
    now = time.time_ns()
    places = {sample.position: sample.instance for sample in reader.sample_rows()}
    return [
        {**_run(request, names, places), "wall_seconds": max(0.0, (now - began) / 1e9)}
        for request, began in reader.in_flight()
    ]


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, tz=UTC).isoformat()


# ---------------------------------------------------------------------- for people

_STATES = {
    "running": "running ({owner})",
    "closed": "not running; the ledger is closed",
    "interrupted": "not running; it was interrupted, and the same command resumes it",
    "elsewhere": "begun elsewhere or before the last boot ({owner}); whether it runs cannot be told from here",
}


def _lines(found: dict[str, Any], summary: Summary) -> list[tuple[str, str]]:
    lines = [("state", _STATES[found["state"]].format(owner=found["owner"]))]
    held = summary.certificate
    if held is not None:
        lines += [
            ("epsilon", " ".join(filter(None, (rounded_up(held.epsilon), _of_goal(found["goal"]), found["pace"])))),
            *([] if held.gamma is None else [("gamma", f"{gamma_words(held)} {_of_goal(found['gamma_goal'])}")]),
            ("expected utility", f"between {rounded_down(held.utility_low)} and {rounded_up(held.utility_high)}"),
            *claim_lines(held),
            ("candidates left", left_words(summary)),
        ]
    told = ", ".join(
        f"{count:,} {name}" for name, count in sorted(found["verdicts"].items(), key=lambda each: -each[1])
    )
    lines += [
        *([("way", RUNS_EVERYTHING)] if found["runs_everything"] else []),
        *([("next steps", found["next_steps"])] if found["next_steps"] else []),
        *([("lessons", found["learned"])] if found["learned"] else []),
        ("runs", f"{found['runs']:,}" + (f" ({told})" if told else "")),
        ("cost", cpu_time(found["cpu_seconds"], found["clock"])),
        *([] if found["seed"] is None else [("seed", str(found["seed"]))]),
        *(_on_slots(found) if found["slots"] else _flying(found)),
        *[("last events" if not place else "", _event(event)) for place, event in enumerate(found["events"])],
        ("ledger", f"{found['rows']:,} rows, head {found['head'][:16]}…"),
    ]
    return lines


def _of_goal(goal: float | None) -> str:
    return "" if not goal else f"(goal {goal:g})"


def _on_slots(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What runs now on which slot, the busy ones."""
    busy = [slot for slot in found["slots"] if slot["run"] is not None]
    lines = [("running now", found["running_now"])]
    for slot in busy[:_SHOWN_IN_FLIGHT]:
        run = slot["run"]
        age = age_words(run["seconds"], run["captime"])
        lines.append(("", f"{slot['name']}: {run['config']} on {run['instance']}, {age}"))
    if len(busy) > _SHOWN_IN_FLIGHT:
        lines.append(("", f"and {len(busy) - _SHOWN_IN_FLIGHT:,} more"))
    return lines


def _flying(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return runs that were begun and have not come back, where the slot is not known."""
    runs, lines = found["in_flight"], []
    over = found["running_now"] is None
    for place, run in enumerate(runs[:_SHOWN_IN_FLIGHT]):
        limit = "" if run["captime"] is None else f", captime {duration_text(run['captime'])}"
        since = "" if over else f" since {duration_text(round(run['wall_seconds'], 1))}"
        label = "cut off" if over else "under way"
        lines.append((label if not place else "", f"{run['config']} on {run['instance']}{since}{limit}"))
    if len(runs) > _SHOWN_IN_FLIGHT:
        lines.append(("", f"and {len(runs) - _SHOWN_IN_FLIGHT:,} more"))
    return lines


def _event(event: dict[str, Any]) -> str:
    words = event["words"]
    return f"{event['at']} {event['kind']}" + (f": {words}" if words else "")


# `captime dashboard`: a local web page that shows a campaign while it runs.


def dashboard_command(
    ledger: LedgerArgument,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 chooses a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Where to listen; this machine only by default.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS certificate, for hosts that others can reach.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key.")] = None,
    public: Annotated[
        bool, typer.Option("--i-know-it-is-public", help="Listen where others can reach it; needs TLS.")
    ] = False,
) -> None:
    """Show a campaign on a local web page that follows it. Only reads; Ctrl-C ends it.

    The address that is printed gives access to the page: keep it to yourself.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtra("the dashboard", "dashboard")
    from captime.dashboard.server import Address, serve  # noqa: PLC0415 (needs an optional extra)

    ledger = ledger_of(ledger)
    # A file that is no ledger is refused before anything listens.
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)

    def announce(address: str, good_once: str) -> None:
        typer.echo(address)
        typer.echo("captime: Ctrl-C ends the dashboard, not the campaign", err=True)
        if open_browser:
            # Every user of this machine sees a browser's arguments in the list of processes.
            webbrowser.open(good_once)

    serve(ledger, Address(host, port, certificate, key, public), announce)
