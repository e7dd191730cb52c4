"""Whether a ledger belongs to the question that is asked: what was run must be what is run.

Two things may grow: the stream of instances and the list of configurations, each at its end. What was added is written
down, and counts from then on. Goals are not part of the question.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from captime.campaign.transfer import SAME_TARGET, check_unlearned, has_learned
from captime.certificate import Population
from captime.errors import ScenarioDiffers
from captime.ledger import LedgerReader
from captime.ledger.rows import Noted
from captime.procedures.claims import COARSEST_STEP, difference_step
from captime.scenario import Scenario
from captime.scenario.configurations import order_on_record
from captime.scenario.identity import as_recorded_now, difference, grown, plain, rules_of
from captime.scenario.spec import GOAL_OPTIONS, CampaignQuestion
from captime.streams import FiniteStream, InstanceStream

_GOAL, _LENGTH, _LISTED, _STEP, _SHORT = "goal", "length", "listed", "difference_step", "short_captimes"
_SCHEDULE = "schedule"
"""What a ledger is told beside the identity: the first goal, the first length of the stream, in which order its
instances were listed, from which and from the seed the order of a shuffled stream follows, the first step of duels,
whether runs of a race may be stopped early and repeated, and by which rules a race orders its runs."""
_HAVE_DUELS = ("race", "pool")
_GROWING = ("instances", "configurations")


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added since a ledger was last written to.

    Attributes:
        instances: At the end of the stream, each with name and digest.
        configurations: At the end of the list, as described.
    """

    instances: tuple[Any, ...] = ()
    configurations: tuple[Any, ...] = ()


def remembered(question: CampaignQuestion) -> dict[str, object]:
    """Return what a new ledger is told about the question."""
    listed = order_listed(question.stream, question.stream.describe().get("list"))
    beside: dict[str, object] = {} if listed is None else {_LISTED: listed}
    if question.procedure in _HAVE_DUELS:
        beside[_STEP] = difference_step(question.epsilon)
        beside[_SHORT] = question.problem().short_captimes
        beside[_SCHEDULE] = question.problem().schedule
    return {**question.identity, _GOAL: question.epsilon, _LENGTH: question.stream.length, **beside}


def order_listed(stream: InstanceStream, entries: object) -> str | list[int] | None:
    """In which order instances were listed, as `FiniteStream.listed_as` tells it; None where the seed shuffles nothing.

    Args:
        stream: The stream.
        entries: Name and digest of each, in the order of the stream.
    """
    if not isinstance(stream, FiniteStream) or stream.sampling != "shuffle" or not isinstance(entries, list | tuple):
        return None
    return stream.listed_as([str(entry[0]) for entry in entries])


def step_on_record(scenario: Mapping[str, object]) -> float | None:
    """Return the step of duels that a campaign has to keep; None if it follows the goal.

    Ledgers that name no step were begun when there was one for all goals.
    """
    return None if _STEP in scenario else COARSEST_STEP


def short_captimes_on_record(scenario: Mapping[str, object]) -> bool:
    """Return whether runs of a campaign may be stopped early; ledgers that do not say were begun when none were."""
    return bool(scenario.get(_SHORT, False))


def schedule_on_record(scenario: Mapping[str, object]) -> int:
    """Return by which rules a race orders its runs; ledgers that do not say were begun under the first ones."""
    said = scenario.get(_SCHEDULE, 1)
    return said if isinstance(said, int) else 1


def population_on_record(scenario: Mapping[str, object]) -> Population:
    """Return what the claim of a ledger is about; ledgers that do not say were begun when all were about draws."""
    instances = scenario.get("instances")
    said = instances.get("population") if isinstance(instances, Mapping) else None
    return Population.DRAWN if said is None else Population(str(said))


def recorded(reader: LedgerReader) -> tuple[dict[str, Any], list[Noted]]:
    """Return the identity of a ledger, with what was added on the way; and its notes."""
    before, notes = as_recorded_now(reader.scenario), reader.events()
    for beside in (_GOAL, _LENGTH, _LISTED, _STEP, _SHORT, _SCHEDULE):
        before.pop(beside, None)
    for section in _GROWING:
        added = [entry for note in notes if note.kind == section for entry in _entries(note.facts)]
        if added:
            before[section] = {**before[section], "list": [*before[section]["list"], *added]}
    return before, notes


def _entries(facts: Mapping[str, object]) -> list[Any]:
    entries = facts["list"]
    return entries if isinstance(entries, list) else []


def as_begun(scenario: Scenario, path: Path) -> Scenario:
    """The scenario as the ledger knows it: what was there when it was begun keeps its place, and what is new follows.

    Args:
        scenario: As it is now.
        path: The ledger; if there is none yet, nothing was begun.
    """
    if not path.exists():
        return scenario
    with LedgerReader(path) as reader:
        listed = reader.scenario.get("configurations")
        population, target = population_on_record(reader.scenario), reader.scenario.get("target")
        repeatable = target.get("repeatable") if isinstance(target, dict) else None
        order = order_on_record(reader.scenario)
        options, seed = reader.scenario.get("options"), reader.scenario.get("seed")
        known = known_instances(reader)
    effort = options.get("effort") if isinstance(options, dict) and scenario.wishes.effort is None else None
    begun = len(listed["list"]) if isinstance(listed, dict) and "list" in listed else None
    return replace(
        with_seed_on_record(scenario.with_effort(effort), seed),
        known=known,
        begun_with=begun,
        recorded_population=population,
        recorded_repeatable=repeatable,
        recorded_order=order,
    )


def with_recorded_seed(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario with the seed that was drawn when the ledger was begun; a seed that the file names stays.

    Args:
        scenario: As it is now.
        path: The ledger; if there is none yet, nothing was drawn.
    """
    if not path.exists():
        return scenario
    with LedgerReader(path) as reader:
        return with_seed_on_record(scenario, reader.scenario.get("seed"))


def with_seed_on_record(scenario: Scenario, seed: object) -> Scenario:
    """Return the scenario with the seed that a ledger names; a seed that the file names stays."""
    return replace(scenario, drawn_seed=seed) if isinstance(seed, int) else scenario


def known_instances(reader: LedgerReader) -> list[str]:
    """Names of the instances of a ledger's stream, in its order; none if it has no list of them."""
    instances = recorded(reader)[0].get("instances")
    if not isinstance(instances, dict) or instances.get("sampling") not in ("shuffle", "given"):
        return []
    return [str(entry[0]) for entry in instances.get("list", ())]


def check_identity(reader: LedgerReader, question: CampaignQuestion) -> Growth:
    """Refuse to mix runs of one question with those of another; return what was added at the ends of the lists."""
    path = reader.path
    before, notes = recorded(reader)
    now = _asked(plain(question.identity))
    if "rules" not in now:
        # A survey decides nothing: what was measured under other rules is resumed like any other.
        before.pop("rules", None)
    elif rules_of(before) != rules_of(now):
        raise _other_rules(reader, rules_of(before), rules_of(now), notes)
    else:
        before.setdefault("rules", now["rules"])
    before, now = (_naming_population(each) for each in (_asked(before), now))
    differs = difference(before, now)
    if not differs:
        return Growth()
    added = grown(before, now) if all(name in before for name in _GROWING) else None
    if added is not None and (added[1] == 0 or now["instances"].get("sampling") in ("shuffle", "given")):
        configurations, instances = (now[name].get("list", []) for name in ("configurations", "instances"))
        growth = Growth(
            tuple(instances[len(instances) - added[1] :]), tuple(configurations[len(configurations) - added[0] :])
        )
        check_unlearned(notes, growth.instances, path)
        return growth
    # Favourites are configurations too, and those have the ones that were added since.
    listed = "".join(f"\n  {line}" for line in difference(*map(_without_favourites, (before, now))))
    on_space = now.get("space") is not None
    new = "--ledger NEW"
    if on_space and _can_teach(before, now, notes):
        new += f" --learn-from {path}, so that the model knows what was learnt"
    raise ScenarioDiffers(
        f"{path}: this ledger belongs to another scenario. It differs in:{listed}\nPut that back to resume, or begin a "
        f"new ledger with {new}. ({'Favourites' if on_space else 'Configurations'} and instances may be added at the "
        "end of their lists. None may go, and none may change places.)"
    )


def _other_rules(reader: LedgerReader, before: int, now: int, notes: list[Noted]) -> ScenarioDiffers:
    versions = [reader.captime_version, *(str(note.facts["captime"]) for note in notes if "captime" in note.facts)]
    return ScenarioDiffers(
        f"{reader.path}: this ledger was decided by rules {before} (captime {versions[-1]}), and this captime "
        f"({version('captime')}) decides by rules {now}, so it cannot resume it. What it has certified stays valid: "
        f"`captime verify`, `report`, `best` and `export` read it as before. To resume it, install captime "
        f"{versions[-1]}; to begin anew under the new rules, use --ledger NEW"
    )


def _naming_population(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the identity with the population that is meant where none is named."""
    instances = identity.get("instances")
    if not isinstance(instances, dict):
        return identity
    return {**identity, "instances": {"population": Population.DRAWN.value, **instances}}


def _without_favourites(identity: dict[str, Any]) -> dict[str, Any]:
    space = identity.get("space")
    if not isinstance(space, dict):
        return identity
    return {**identity, "space": {name: value for name, value in space.items() if name != "favourites"}}


def _can_teach(before: dict[str, Any], now: dict[str, Any], notes: list[Noted]) -> bool:
    """Return whether this ledger could be learnt from: same target, and not itself taught by another ledger."""
    same = all(before.get(name) == now.get(name) for name in SAME_TARGET)
    return same and bool(now["space"].get("model")) and not has_learned(notes)


def _asked(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the identity without the options that are goals."""
    goals = GOAL_OPTIONS.get(str(identity.get("procedure")), ())
    options = {name: value for name, value in identity.get("options", {}).items() if name not in goals}
    return {**identity, "options": options} if "options" in identity else identity
