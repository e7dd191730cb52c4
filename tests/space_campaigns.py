"""Campaigns that grow, on a list and on a small space, with virtual slots: rows of a table stand for configurations."""

from dataclasses import dataclass, replace
from pathlib import Path

from campaign_stand_ins import question_on, small_table, virtual_slots
from captime.campaign import CampaignQuestion, CampaignResult, RunSettings, run_campaign
from captime.ledger.rows import ConfigRow
from captime.scenario.configurations import canonical, listed_of, space_as_begun
from captime.spaces import Proposer, Space, read_space_section

TABLE = small_table(8)
WIDE = small_table(90, 3000)


def instances_of(count: int) -> dict[str, object]:
    """What a scenario says about the instances of `Numbered`."""
    return {"sampling": "given", "seed": 0, "list": [[f"instance-{position}", ""] for position in range(count)]}


def asked(n: int, begun: int, *, order: list[int] | None = None, **more: object) -> CampaignQuestion:
    """Which of the first n rows is best, asked of a campaign that was begun with fewer?"""
    base = question_on(TABLE, **more)  # type: ignore[arg-type] # whatever a test wants to say
    rows = [replace(base.configs[index], settings={"settings": {}}) for index in order or range(n)]
    described = [{"name": row.name, "settings": {}} for row in rows]
    identity = {
        **base.identity,
        "procedure": base.procedure,
        "options": dict(base.options),
        "configurations": {"list": described},
        "instances": instances_of(TABLE.n_instances),
    }
    return replace(base, configs=rows[:begun], newcomers=tuple(rows[begun:]), identity=identity)


def go(question: CampaignQuestion, path: Path, order: str, **more: object) -> CampaignResult:
    """On with it, or begin."""
    manner = RunSettings(jobs=2, order=order)  # type: ignore[arg-type] # one of two words
    ordered = _in_order(question, manner)
    return run_campaign(ordered, path, manner, make_executor=virtual_slots(TABLE, 2), **more)  # type: ignore[arg-type]


def _in_order(question: CampaignQuestion, manner: RunSettings) -> CampaignQuestion:
    """The question with the order of telling in its identity, as a scenario has it."""
    window = manner.window if manner.order == "fixed" else None
    return replace(question, identity={**question.identity, "order": manner.order, "window": window})


@dataclass(frozen=True)
class Section:
    """A small space with favourites."""

    favourites: int = 1
    model: bool = True

    def space(self) -> Space:
        """As read from a scenario."""
        listed = [{"x": 0.1 * (place + 1)} for place in range(self.favourites)]
        section = {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5}, "favourites": listed}
        return read_space_section(section, "here", Path())


def on_space(favourites: int, *, model: bool = True, begun: int = 1, **more: object) -> CampaignQuestion:
    """Rows of the wide table stand for whatever is drawn, proposed or named."""
    full = Proposer(Section(favourites).space(), 0, model=model)
    proposer = space_as_begun(full, begun + 1)
    listed = listed_of(full)
    rows = [
        ConfigRow(index, each.name, {"settings": dict(each.settings)}, each.origin)  # type: ignore[arg-type] # one of them
        for index, each in enumerate(listed)
    ]
    options = {"gamma": 0.5, **more.pop("options", {})}  # type: ignore[dict-item] # a dict
    base = question_on(WIDE, procedure="pool", options=options, proposer=proposer, **{"epsilon": 0.3, **more})  # type: ignore[arg-type]
    identity = {
        **base.identity,
        "procedure": "pool",
        "options": options,
        "configurations": {"list": [each.describe() for each in listed]},
        "space": canonical(full),
        "space_order": list(full.space.names),
        "instances": instances_of(WIDE.n_instances),
    }
    return replace(base, configs=rows[: begun + 1], newcomers=tuple(rows[begun + 1 :]), identity=identity)


def search(question: CampaignQuestion, path: Path, order: str = "arrival", **more: object) -> CampaignResult:
    """A campaign on the space."""
    manner = RunSettings(jobs=2, order=order)  # type: ignore[arg-type] # one of two words
    ordered = _in_order(question, manner)
    return run_campaign(ordered, path, manner, make_executor=virtual_slots(WIDE, 2), **more)  # type: ignore[arg-type]
