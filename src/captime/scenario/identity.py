"""What the answer depends on: a canonical form of a scenario, its hash, and the difference of two, field by field.

Not part of it: jobs, stop rules, the ledger's name, isolation. Resuming with a smaller epsilon or with more jobs is the
same question. Configurations and instances stand in fields of their own, as lists in a fixed order, so that a pool or a
stream that has only grown at its end can be told from one that was changed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from captime.scenario.models import TargetSection

_RULES, _VERSION = "rules", "captime"

_MISSING = object()
_SHOWN = 60
_FEW = 3
_PROGRAMS = ".programs."
"""Below this stand digests of programs, by the word of the command that names them."""


def scenario_hash(canonical: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, in hexadecimal digits."""
    text = json.dumps(canonical, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plain(value: Any) -> Any:
    """As it comes back from a file: tuples are lists there."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def as_recorded_now(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity as a ledger has it, in the form that this captime would give to the same scenario.

    Before there were numbers for rules, captime's version stood in their place; those versions decided by rules 1. What
    a target could not say then was the default of today.
    """
    identity: dict[str, Any] = {}
    for name, value in recorded.items():
        identity |= {_RULES: recorded.get(_RULES, 1)} if name == _VERSION else {name: value}
    target = identity.get("target")
    if isinstance(target, Mapping) and "exit_codes" in target:
        left_out = {"environment", "clock", "compare_answers", "kind"}
        defaults = {
            name: plain(each.get_default(call_default_factory=True))
            for name, each in TargetSection.model_fields.items()
            if name not in left_out and name not in target
        }
        identity["target"] = {**target, **defaults}
    return identity


def rules_of(identity: Mapping[str, Any]) -> int:
    """Return by which rules a campaign was decided (`captime.certificate.RULES`); without a number, it is 1."""
    return int(identity.get(_RULES, 1))


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line per field that differs: its name, what it was, what it is."""
    return list(_differences("", old, new))


def grown(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[int, int] | None:
    """How many configurations and instances were added at the end, if nothing else differs; None if something does.

    For campaigns that may be resumed with a larger pool or a longer stream.
    """
    counts = []
    for section in ("configurations", "instances"):
        before, after = (list(each[section].get("list", ())) for each in (old, new))
        if after[: len(before)] != before:
            return None
        counts.append(len(after) - len(before))
    if _without_lists(old) != _without_lists(new) or not _as_before(old["instances"], new["instances"]):
        return None
    return counts[0], counts[1]


def _as_before(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether instances that were there are judged and grouped as they were; those that are new may be as they like."""
    was, now = old.get("groups"), new.get("groups")
    grouped = now[: len(was)] == was if isinstance(was, list) and isinstance(now, list) else was == now
    answers = new.get("answers") or {}
    listed = [entry[0] for entry in old.get("list", ())]
    return grouped and {name: answers[name] for name in listed if name in answers} == (old.get("answers") or {})


# Fields inside a section that may grow with it. Favourites of a space stand among its configurations too.
_GROWING = {
    "configurations": ("list",),
    "instances": ("list", "groups", "answers"),
    "space": ("favourites",),
}


def _without_lists(canonical: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: inner for key, inner in value.items() if key not in _GROWING.get(name, ())}
        if isinstance(value, Mapping)
        else value
        for name, value in canonical.items()
    }


def _differences(where: str, old: Any, new: Any) -> Iterator[str]:
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{where}.{name}" if where else str(name)
            yield from _differences(inner, old.get(name, _MISSING), new.get(name, _MISSING))
    elif isinstance(old, list) and isinstance(new, list) and where.endswith(".list"):
        yield from _of_lists(where.removesuffix(".list"), old, new)
    elif old != new and isinstance(old, str) and isinstance(new, str) and _PROGRAMS in f".{where}":
        program = f".{where}".partition(_PROGRAMS)[2]
        yield f"{where}: the program {program!r} has changed (SHA-256 {old[:12]}… before, {new[:12]}… now)"
    elif old != new:
        yield f"{where}: was {_shown(old)}, is {_shown(new)}"


def _of_lists(where: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    """Lists of named things: what is gone, what is new, what changed; a long story is cut short."""
    before, after = ({_name(each): each for each in entries} for entries in (old, new))
    gone = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    changed = [name for name in before if name in after and before[name] != after[name]]
    if gone:
        yield f"{where}: {len(gone)} gone ({_some(gone)})"
    if added:
        between = "" if new[: len(old)] == old or gone else " between others"
        yield f"{where}: {len(added)} added{between} ({_some(added)})"
    for name in changed[:_FEW]:
        if isinstance(before[name], Mapping):
            yield from _differences(f"{where}.{name}", before[name], after[name])
        else:
            yield f"{where}: the content of {name!r} changed"
    if len(changed) > _FEW:
        yield f"{where}: {len(changed) - _FEW} more changed"
    if not gone and not added and not changed:
        yield f"{where}: the order changed"


def _name(entry: Any) -> str:
    return str(entry["name"] if isinstance(entry, Mapping) else entry[0])


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_FEW])) + (", …" if len(names) > _FEW else "")


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
