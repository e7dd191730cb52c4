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

from captime.campaign.changes import goal_on_record
from captime.campaign.transfer import learned_words
from captime.certificate import Population
from captime.cli.shared import LedgerArgument, ledger_of, print_table, say_missing
from captime.errors import MissingExtra
from captime.ledger import Certified, LedgerReader
from captime.ledger.ownership import SlotUse, under_way
from captime.report.configurations import ROWS_SHOWN, ConfigurationTable, table_of_ledger
from captime.report.ledger_data import Pace, everything_on_record, floor_of
from captime.report.ledger_words import OVER, account_of_ledger, length_on_record, liveness, note_words
from captime.report.simulated import certificate_json
from captime.report.words import (
    RUNS_EVERYTHING,
    age_words,
    busy_words,
    claim_lines,
    cpu_time,
    gamma_words,
    next_steps,
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
        words: The statement.
        newest: The newest certificate; None before the first.
        table: The configurations.
        most: How many of them are shown.
    """

    found: dict[str, Any]
    words: str
    newest: Certified | None
    table: ConfigurationTable
    most: int

    def print_on(self, console: Console) -> None:
        """Print it for people."""
        console.print(self.words, style="bold", soft_wrap=True)
        if self.found["runs"] or self.found["in_flight"]:
            print_table(console, self.table, self.most)
        grid = Table.grid(padding=(0, 2))
        for label, value in _lines(self.found, self.newest):
            grid.add_row(Text(label, style="dim"), Text(printable(value)))
        console.print(grid)


def _read(ledger: Path, most: int | None) -> _Seen:
    with LedgerReader(ledger) as reader, reader.snapshot():
        table, newest = table_of_ledger(ledger), reader.last_certificate()
        words = "Nothing is certified yet." if newest is None else statement(account_of_ledger(reader, newest))
        found = {**_gathered(reader), "configurations": table.as_json()}
    return _Seen(found, words, newest, table, len(table) if most is None else most)


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


def _gathered(reader: LedgerReader) -> dict[str, Any]:
    names = [config.name for config in reader.configs]
    newest, counts = reader.last_certificate(), reader.counts()
    orphans, orphan_seconds = reader.orphans()
    statuses, verdicts = _sums(counts)
    state = liveness(in_use=reader.in_use, owner=reader.owner)
    seats, unseated = _seats(reader, state)
    return {
        "ledger": str(reader.path),
        "campaign": reader.campaign_id,
        "state": state,
        "owner": None if reader.owner is None else str(reader.owner),
        "seed": _seed(reader),
        "goal": _goal(reader),
        "gamma_goal": _gamma_goal(reader),
        "certificate": None if newest is None else certificate_json(newest.certificate, names),
        "next_steps": _next_steps(reader, newest) or None,
        "runs_everything": everything_on_record(reader.events()),
        "pace": _pace(reader) if state == "running" else "",
        "learned": learned_words(reader.events()) or None,
        "n_configs": len(names),
        "candidates_left": None if newest is None else newest.candidates,
        "runs": sum(statuses.values()),
        "statuses": statuses,
        "verdicts": verdicts,
        "orphans": orphans,
        "cpu_seconds": sum(seconds for _, seconds in counts.values()) + orphan_seconds,
        "clock": reader.scenario.get("clock", "cpu"),
        "wall_seconds": None if newest is None else reader.clock(),
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
            for event in [event for event in reader.events() if event.kind not in _QUIET][-_EVENTS:]
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


def _seed(reader: LedgerReader) -> int | None:
    """Return the seed that the campaign was begun with, the user's or a drawn one."""
    seed = reader.scenario.get("seed")
    return seed if isinstance(seed, int) else None


def _goal(reader: LedgerReader) -> float | None:
    goals = [event.facts.get("epsilon") for event in reader.events() if event.kind == "goal"]
    goal = goals[-1] if goals else reader.scenario.get("goal")
    return float(goal) if isinstance(goal, int | float) else None


def _gamma_goal(reader: LedgerReader) -> float | None:
    """On a space, the gamma that was asked for last."""
    return goal_on_record(reader.scenario, reader.events()).gamma


def _pace(reader: LedgerReader) -> str:
    """Return a guess at how long it may still take; nothing once every instance was met, which ends the stream."""
    newest, length, met = reader.last_certificate(), _length(reader), len(reader.sample_rows())
    if newest is None:
        return ""
    held = newest.certificate
    # A claim about exactly these instances falls further while runs on instances that were met are made longer.
    if length is not None and met >= length and held.population is Population.DRAWN:
        return ""
    pace = Pace(_goal(reader) or 0.0)
    for certified in reader.certificates():
        pace.note(certified.wall_seconds, certified.certificate.epsilon)
    return pace.words(floor_of(held.epsilon, met, length, held.population))


def _next_steps(reader: LedgerReader, newest: Certified | None) -> str:
    """Return what can be done if the campaign has used up its instances; nothing otherwise."""
    events = reader.events()
    ends = [str(event.facts.get("because")) for event in events if event.kind == "stopped"]
    if newest is None or not ends or events[-1].kind != "stopped":
        return ""
    return next_steps(ends[-1], newest.certificate, _goal(reader) or 0.0, length_on_record(reader.scenario, events))


def _length(reader: LedgerReader) -> int | None:
    return length_on_record(reader.scenario, reader.events())


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


def _lines(found: dict[str, Any], newest: Certified | None) -> list[tuple[str, str]]:
    lines = [("state", _STATES[found["state"]].format(owner=found["owner"]))]
    if newest is not None:
        held = newest.certificate
        lines += [
            ("epsilon", " ".join(filter(None, (rounded_up(held.epsilon), _of_goal(found["goal"]), found["pace"])))),
            *([] if held.gamma is None else [("gamma", f"{gamma_words(held)} {_of_goal(found['gamma_goal'])}")]),
            ("expected utility", f"between {rounded_down(held.utility_low)} and {rounded_up(held.utility_high)}"),
            *claim_lines(held),
            ("candidates left", f"{newest.candidates:,} of {max(found['n_configs'], held.n_configs):,}"),
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
