"""Values into columns and back, without losing a bit. What types columns have is written in `schema`."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from captime.arrays import IntArray
from captime.certificate import Certificate
from captime.errors import InvariantViolated
from captime.ledger.chain import Row, Value
from captime.ledger.rows import Certified, ConfigRow, Noted, SampleRow
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.targets import Targets

_STATUS = {status.value: status for status in Status}
_VERDICT = {verdict.value: verdict for verdict in Verdict}


def to_bytes(text: str) -> bytes:
    """Any text a file name or a program's last words can be."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def to_text(content: bytes) -> str:
    """The text that `to_bytes` was given."""
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
            raise InvariantViolated(f"{value!r} cannot be written into a ledger; say it in numbers, texts and lists")


def config_values(config: ConfigRow, call: int) -> tuple[Value, ...]:
    """Columns of a configuration."""
    return (config.index, to_bytes(config.name), to_json(config.settings), config.origin, call)


def config_of(row: Row) -> ConfigRow:
    """A configuration from its columns."""
    _, index, name, settings, origin, *_ = row
    return ConfigRow(index, to_text(name), json.loads(settings), origin)


def sample_values(sample: SampleRow, call: int) -> tuple[Value, ...]:
    """Columns of a stream position."""
    return (sample.position, to_bytes(sample.instance), sample.digest, sample.seed, call)


def sample_of(row: Row) -> SampleRow:
    """A stream position from its columns."""
    _, position, instance, digest, seed, *_ = row
    return SampleRow(position, to_text(instance), digest, seed)


def ask_values(slots: int, targets: Targets, at_ns: int) -> tuple[Value, ...]:
    """Columns of a question and its answer; arrays as 64-bit integers, lowest byte first."""
    first = None if targets.first is None else _packed(targets.first)
    return (slots, _packed(targets.config), _packed(targets.n), _packed(targets.level), first, at_ns)


def targets_of(row: Row) -> Targets:
    """Orders from their columns."""
    _, _, config, n, level, first, *_ = row
    return Targets(_unpacked(config), _unpacked(n), _unpacked(level), None if first is None else _unpacked(first))


def _packed(numbers: IntArray) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _unpacked(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i8").astype(np.int64)


def start_values(request: RunRequest, epoch: int, at_ns: int, call: int) -> tuple[Value, ...]:
    """Columns of an intent. -0.0 is 0 in every sense but its bits, and SQLite keeps the sense."""
    captime = None if math.isinf(request.captime) else float(request.captime) + 0.0
    return (request.config, request.instance, request.attempt, captime, epoch, at_ns, call)


def request_of(row: Row) -> RunRequest:
    """A request from the columns of its intent."""
    _, config, position, attempt, captime, *_ = row
    return RunRequest(config, position, math.inf if captime is None else captime, attempt)


def look_values(request: RunRequest, seconds: float, call: int) -> tuple[Value, ...]:
    """Columns of a look at an unfinished run."""
    return (request.config, request.instance, request.attempt, float(seconds) + 0.0, call)


def outcome_values(outcome: RunOutcome, *, orphan: bool, at_ns: int, call: int) -> tuple[Value, ...]:
    """Columns of an outcome."""
    request, verdict = outcome.request, outcome.verdict
    return (
        request.config,
        request.instance,
        request.attempt,
        outcome.status.value,
        float(outcome.runtime) + 0.0,
        float(outcome.cost) + 0.0,
        int(orphan),
        None if verdict is None else verdict.value,
        to_bytes(outcome.detail),
        *_measured_values(outcome.measured),
        at_ns,
        call,
    )


_NOT_MEASURED: tuple[Value, ...] = (None,) * 16


def _measured_values(measured: Measurement | None) -> tuple[Value, ...]:
    if measured is None:
        return _NOT_MEASURED
    return (
        measured.cpu_ns,
        measured.wall_ns,
        measured.exit_code,
        measured.signal,
        measured.peak_memory,
        measured.answer,
        None if measured.reported is None else float(measured.reported) + 0.0,
        measured.queue_wait_ns,
        measured.switches,
        measured.leftovers,
        measured.output_bytes,
        measured.stdout_tail,
        measured.stderr_tail,
        to_bytes(measured.host),
        measured.slot,
        " ".join(measured.flags),
    )


def outcome_of(row: Row, request: RunRequest) -> RunOutcome:
    """An outcome from its columns, and the request it answers."""
    _, _, _, _, status, runtime, cost, _, verdict, detail = row[:10]
    return RunOutcome(
        request,
        _STATUS[status],
        runtime,
        cost,
        to_text(detail) if detail else "",
        None if verdict is None else _VERDICT[verdict],
        None if row[10] is None else _measured_of(row[10:26]),
    )


def _measured_of(columns: Sequence[Any]) -> Measurement:
    *_, host, slot, flags = columns
    return Measurement(*(*columns[:-3], to_text(host), slot, tuple(flags.split())))


def certificate_values(held: Certificate, progress: tuple[int, float, float, int], head: bytes, at_ns: int) -> Row:
    """Columns of a certificate; `progress`: rounds, CPU seconds, wall seconds, candidates."""
    rounds, cpu_seconds, wall_seconds, candidates = progress
    return (
        held.config,
        float(held.epsilon) + 0.0,
        float(held.delta) + 0.0,
        held.n_configs,
        float(held.utility_low),
        float(held.utility_high),
        None if held.gamma is None else float(held.gamma),
        held.challenger,
        held.mode,
        to_json(held.shares),
        rounds,
        float(cpu_seconds) + 0.0,
        float(wall_seconds) + 0.0,
        candidates,
        head,
        at_ns,
    )


def certified_of(row: Row) -> Certified:
    """A certificate from its columns."""
    config, epsilon, delta, n_configs, low, high, gamma, challenger, mode, shares = row[1:11]
    rounds, cpu_seconds, wall_seconds, candidates, head, at_ns = row[11:17]
    held = Certificate(
        config=config,
        epsilon=epsilon,
        delta=delta,
        n_configs=n_configs,
        utility_low=low,
        utility_high=high,
        gamma=gamma,
        challenger=challenger,
        mode=mode,
        shares=tuple((name, share) for name, share in json.loads(shares)),
    )
    return Certified(row[0], held, rounds, cpu_seconds, wall_seconds, candidates, head.hex(), at_ns)


def note_of(row: Row) -> Noted:
    """A note from its columns."""
    sequence, kind, facts, at_ns, *_ = row
    return Noted(sequence, kind, json.loads(facts), at_ns)
