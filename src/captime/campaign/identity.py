"""Whether a ledger belongs to the question that is asked: what was run must be what is run.

One thing may grow: the stream of instances, at its end. What was added is written down, and counts from then on.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from captime.campaign.question import Question
from captime.errors import ScenarioDiffers
from captime.ledger import LedgerReader
from captime.scenario.identity import difference, grown

_GOAL, _LENGTH = "goal", "length"
"""What a ledger is told beside the identity: the first goal, and the first length of the stream."""


def remembered(question: Question) -> dict[str, object]:
    """What a new ledger is told about the question."""
    return {**question.identity, _GOAL: question.epsilon, _LENGTH: question.stream.length}


def recorded(path: Path) -> dict[str, Any]:
    """The identity of a ledger, with the instances that were added on the way."""
    with LedgerReader(path) as reader:
        before: dict[str, Any] = dict(reader.scenario)
        added = [entry for event in reader.events() if event.kind == "instances" for entry in _entries(event.facts)]
    for beside in (_GOAL, _LENGTH):
        before.pop(beside, None)
    if added:
        instances = before["instances"]
        before["instances"] = {**instances, "list": [*instances["list"], *added]}
    return before


def _entries(facts: Mapping[str, object]) -> list[Any]:
    entries = facts["list"]
    return entries if isinstance(entries, list) else []


def known_instances(path: Path) -> list[str]:
    """Names of the instances of a ledger's stream, in its order; none if it has no ledger yet, or no list of them."""
    if not path.exists():
        return []
    instances = recorded(path).get("instances")
    if not isinstance(instances, dict) or instances.get("sampling") not in ("shuffle", "given"):
        return []
    return [str(entry[0]) for entry in instances.get("list", ())]


def check_identity(path: Path, question: Question) -> list[Any]:
    """Refuse to mix runs of one question with those of another; return the instances that were added at the end."""
    before, now = recorded(path), _plain(question.identity)
    differs = difference(before, now)
    if not differs:
        return []
    added = grown(before, now) if "instances" in before and "configurations" in before else None
    if added is not None and added[0] == 0 and now["instances"].get("sampling") in ("shuffle", "given"):
        entries: list[Any] = now["instances"]["list"][-added[1] :]
        return entries
    listed = "".join(f"\n  {line}" for line in differs)
    raise ScenarioDiffers(
        f"{path}: this ledger belongs to another scenario. It differs in:{listed}\nPut that back to go on, or begin a "
        "new ledger with --ledger"
    )


def _plain(identity: Mapping[str, object]) -> dict[str, Any]:
    """As it comes back from a file: tuples are lists there."""
    return {name: _listed(value) for name, value in identity.items()}


def _listed(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _listed(each) for name, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value
