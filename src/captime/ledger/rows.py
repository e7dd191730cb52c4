"""What a ledger remembers, as values: configurations, stream positions, and the events of a campaign in their order.

Also how each becomes a row of a table, and is read back from one. No SQL here, and no decisions: `store` writes these,
`writer` and `reading` give them back as they were.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np

from captime.arrays import IntArray
from captime.certificate import Certificate, Orders, Population
from captime.errors import InvariantViolated
from captime.ledger.schema import Origin, Row, Value, Values
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A configuration, as it was registered.

    Attributes:
        index: The number it has in requests, counted from 0.
        name: What people call it; any text a file name can be, surrogate escapes included.
        settings: What was said about it; whatever JSON can say.
        origin: Where it came from.
    """

    index: int
    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    origin: Origin = "listed"

    @property
    def parameters(self) -> Mapping[str, object]:
        """What it is set to: a scenario's description has that in a field of its own, beside a command perhaps."""
        inner = self.settings.get("settings")
        return inner if isinstance(inner, Mapping) else self.settings


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A position of the stream, as it was when the first run on it was asked for.

    Attributes:
        position: Counted from 0.
        instance: Name of the instance; any text a file name can be.
        digest: SHA-256 of its content, in hexadecimal digits; empty if not known yet.
        seed: What the target was given as its seed.
    """

    position: int
    instance: str
    digest: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.position < 0 or not -(2**63) <= self.seed < 2**63:
            raise InvariantViolated(f"{self}: positions count from 0, and a seed has to fit into 64 bits")


@dataclass(frozen=True, slots=True)
class Asked:
    """The procedure was asked what it wants, and this is what it said.

    Attributes:
        sequence: Number of the row.
        slots: How many free slots it was told of.
        orders: Its orders; possibly none.
    """

    sequence: int
    slots: int
    orders: Orders


@dataclass(frozen=True, slots=True)
class Started:
    """These runs were about to be started: written down before any of them was.

    Attributes:
        sequence: Number of the first row.
        requests: In the order in which they were submitted.
        samples: Stream positions without any earlier run.
    """

    sequence: int
    requests: tuple[RunRequest, ...]
    samples: tuple[SampleRow, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """This became known at one moment: written down before any decision was drawn from it.

    Attributes:
        sequence: Number of the first row.
        outcomes: What came back, orphans included; in the order in which it did.
        seen: Runs seen unfinished, with the CPU seconds they had behind them.
    """

    sequence: int
    outcomes: tuple[RunOutcome, ...]
    seen: tuple[tuple[RunRequest, float], ...]


@dataclass(frozen=True, slots=True)
class Added:
    """Configurations that joined later.

    Attributes:
        sequence: Number of the first row.
        configs: The added configurations.
    """

    sequence: int
    configs: tuple[ConfigRow, ...]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something worth remembering that is neither order nor run.

    Attributes:
        sequence: Number of the row.
        kind: One word: `began`, `stopped`, `warning`, `conflict`, …
        facts: Whatever JSON can say.
        at_ns: When, in nanoseconds since 1970.
    """

    sequence: int
    kind: str
    facts: Mapping[str, object]
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate, as it was held at that moment.

    Attributes:
        sequence: Number of the row.
        certificate: The statement.
        rounds: Decisions taken by then.
        cpu_seconds: CPU seconds spent by then.
        wall_seconds: How long the campaign had taken by then, all calls of the command together.
        candidates: How many could still be the best.
        head: Hash of the row before: everything the statement rests on, in 64 hexadecimal digits.
        at_ns: When, in nanoseconds since 1970.
    """

    sequence: int
    certificate: Certificate
    rounds: int
    cpu_seconds: float
    wall_seconds: float
    candidates: int
    head: str
    at_ns: int = 0


Event: TypeAlias = Asked | Started | Observed | Added | Noted


# Values into columns and back, without losing a bit. What types columns have is written in `schema`.

_STATUS = {status.value: status for status in Status}
_VERDICT = {verdict.value: verdict for verdict in Verdict}


def to_bytes(text: str) -> bytes:
    """Any text a file name or a program's last words can be."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def to_text(content: bytes) -> str:
    """Return the text that `to_bytes` was given."""
    return content.decode("utf-8", "surrogateescape")


def to_json(value: object) -> str:
    """One way of writing a value as JSON, always the same; numbers that are not finite become words."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic() | np.ndarray():
            return _plain(value.tolist())
        case float():
            return value if math.isfinite(value) else {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in (sorted(value, key=repr) if isinstance(value, set | frozenset) else value)]
        case _:
            raise InvariantViolated(f"{value!r} cannot be written into a ledger; use numbers, texts and lists")


def config_values(config: ConfigRow, call: int) -> Values:
    """Columns of a configuration."""
    return {
        "config": config.index,
        "name": to_bytes(config.name),
        "settings": to_json(config.settings),
        "origin": config.origin,
        "call": call,
    }


def config_of(row: Row) -> ConfigRow:
    """Return a configuration from its columns."""
    return ConfigRow(row["config"], to_text(row["name"]), json.loads(row["settings"]), row["origin"])


def sample_values(sample: SampleRow, call: int) -> Values:
    """Columns of a stream position."""
    return {
        "position": sample.position,
        "instance": to_bytes(sample.instance),
        "digest": sample.digest,
        "seed": sample.seed,
        "call": call,
    }


def sample_of(row: Row) -> SampleRow:
    """Return a stream position from its columns."""
    return SampleRow(row["position"], to_text(row["instance"]), row["digest"], row["seed"])


def ask_values(slots: int, orders: Orders, at_ns: int) -> Values:
    """Columns of a question and its answer; arrays as 64-bit integers, lowest byte first."""
    return {
        "slots": slots,
        "configs": _packed(orders.config),
        "n": _packed(orders.n),
        "level": _packed(orders.level),
        "first": None if orders.first is None else _packed(orders.first),
        "at_ns": at_ns,
    }


def orders_of(row: Row) -> Orders:
    """Orders from their columns."""
    first = row["first"]
    config, n, level = (_unpacked(row[name]) for name in ("configs", "n", "level"))
    return Orders(config, n, level, None if first is None else _unpacked(first))


def _packed(numbers: IntArray) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _unpacked(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i8").astype(np.int64)


def start_values(request: RunRequest, epoch: int, at_ns: int, call: int) -> Values:
    """Columns of an intent. -0.0 is 0 in every sense but its bits, and SQLite keeps the sense."""
    captime = None if math.isinf(request.captime) else float(request.captime) + 0.0
    return {**_run_values(request), "captime": captime, "epoch": epoch, "at_ns": at_ns, "call": call}


def _run_values(request: RunRequest) -> dict[str, Value]:
    return {"config": request.config, "position": request.instance, "attempt": request.attempt}


def request_of(row: Row) -> RunRequest:
    """Return a request from the columns of its intent."""
    captime = math.inf if row["captime"] is None else row["captime"]
    return RunRequest(row["config"], row["position"], captime, row["attempt"])


def look_values(request: RunRequest, seconds: float, call: int) -> Values:
    """Columns of a look at an unfinished run."""
    return {**_run_values(request), "seconds": float(seconds) + 0.0, "call": call}


def outcome_values(outcome: RunOutcome, *, orphan: bool, at_ns: int, call: int) -> Values:
    """Columns of an outcome."""
    return {
        **_run_values(outcome.request),
        "status": outcome.status.value,
        "runtime": float(outcome.runtime) + 0.0,
        "cost": float(outcome.cost) + 0.0,
        "orphan": int(orphan),
        "verdict": None if outcome.verdict is None else outcome.verdict.value,
        "detail": to_bytes(outcome.detail),
        **_measured_values(outcome.measured),
        "at_ns": at_ns,
        "call": call,
    }


_AS_THEY_ARE = tuple(each.name for each in fields(Measurement) if each.name not in ("reported", "host", "flags"))
"""Fields of a measurement that are columns of the same name, and written as they are."""


def _measured_values(measured: Measurement | None) -> dict[str, Value]:
    """Columns of what was measured; all NULL if nothing was."""
    if measured is None:
        return {}
    return {name: getattr(measured, name) for name in _AS_THEY_ARE} | {
        "reported": None if measured.reported is None else float(measured.reported) + 0.0,
        "host": to_bytes(measured.host),
        "flags": " ".join(measured.flags),
    }


def outcome_of(row: Row, request: RunRequest) -> RunOutcome:
    """Return an outcome from its columns, and the request it answers."""
    verdict, detail = row["verdict"], row["detail"]
    return RunOutcome(
        request,
        _STATUS[row["status"]],
        row["runtime"],
        row["cost"],
        to_text(detail) if detail else "",
        None if verdict is None else _VERDICT[verdict],
        None if row["cpu_ns"] is None else _measured_of(row),
    )


def _measured_of(row: Row) -> Measurement:
    """Return what was measured, as far as the file has columns for it; a field that came later has its default."""
    known = set(row.keys())
    here = {name: row[name] for name in _AS_THEY_ARE if name in known}
    return Measurement(**here, reported=row["reported"], host=to_text(row["host"]), flags=tuple(row["flags"].split()))


def certificate_values(held: Certificate, progress: tuple[int, float, float, int], head: bytes, at_ns: int) -> Values:
    """Columns of a certificate; `progress`: rounds, CPU seconds, wall seconds, candidates."""
    rounds, cpu_seconds, wall_seconds, candidates = progress
    return {
        "config": held.config,
        "epsilon": float(held.epsilon) + 0.0,
        "delta": float(held.delta) + 0.0,
        "n_configs": held.n_configs,
        "utility_low": float(held.utility_low),
        "utility_high": float(held.utility_high),
        "gamma": None if held.gamma is None else float(held.gamma),
        "challenger": held.challenger,
        "mode": held.mode,
        "shares": to_json(held.shares),
        "rounds": rounds,
        "cpu_seconds": float(cpu_seconds) + 0.0,
        "wall_seconds": float(wall_seconds) + 0.0,
        "candidates": candidates,
        "head": head,
        "at_ns": at_ns,
        "population": str(held.population),
        "instances": held.instances,
        "instances_run": held.instances_run,
        "other": None if held.other is None else to_json(asdict(held.other)),
    }


def _claim_of(said: dict[str, Any]) -> Certificate:
    """Return the claim about the other population from its JSON."""
    shares = tuple((name, share) for name, share in said["shares"])
    return Certificate(**(said | {"shares": shares, "population": Population(said["population"])}))


def certified_of(row: Row) -> Certified:
    """Return a certificate from its columns."""
    alike = ("config", "epsilon", "delta", "n_configs", "utility_low", "utility_high", "gamma", "challenger", "mode")
    shares = tuple((name, share) for name, share in json.loads(row["shares"]))
    held = Certificate(**{name: row[name] for name in alike}, shares=shares)
    if "population" in row.keys() and row["population"] is not None:  # noqa: SIM118 (a row is no mapping)
        held = replace(
            held,
            population=Population(row["population"]),
            instances=row["instances"],
            instances_run=row["instances_run"],
            other=None if row["other"] is None else _claim_of(json.loads(row["other"])),
        )
    return Certified(
        sequence=row["seq"],
        certificate=held,
        rounds=row["rounds"],
        cpu_seconds=row["cpu_seconds"],
        wall_seconds=row["wall_seconds"],
        candidates=row["candidates"],
        head=row["head"].hex(),
        at_ns=row["at_ns"],
    )


def note_values(kind: str, facts: str, at_ns: int) -> Values:
    """Columns of a note; `facts` as JSON."""
    return {"kind": kind, "facts": facts, "at_ns": at_ns}


def note_of(row: Row) -> Noted:
    """Return a note from its columns."""
    return Noted(row["seq"], row["kind"], json.loads(row["facts"]), row["at_ns"])
