"""Settings in a report: what differs from the default comes first, in the order and the words of the space."""

from dataclasses import replace

from captime.report.known_runs import ScoreIntervals
from captime.report.ledger_data import LedgerData, read_story
from captime.report.page import many_settings, report_page
from captime.report.views.parameters import columns, effects, value_text
from report_ledgers import raced_ledger

NAMES = [f"p{each:03d}" for each in range(40)]


def on_space(**more: object) -> LedgerData:
    """A race, told as if its first three configurations had come from a space of forty parameters."""
    story = read_story(raced_ledger())
    usual: dict[str, object] = dict.fromkeys(reversed(NAMES), 1)
    tried = {**usual, "p003": 7, "p001": True}
    del tried["p002"]
    settings = [usual, tried, *[dict(usual) for _ in story.names[2:]]]
    held = story.certificate
    assert held is not None
    scenario = {**story.scenario, "space_order": NAMES}
    origins = ["default", "model", *["random" for _ in story.names[2:]]]
    plain = replace(story, settings=settings, origins=origins, scenario=scenario, certificate=replace(held, config=1))
    return replace(plain, **more)  # type: ignore[arg-type] # whatever a test wants to say


def test_of_many_settings_those_that_differ_come_first_and_the_rest_is_folded() -> None:
    """In the order of the space, each beside the default; a parameter that is switched off differs too."""
    text = many_settings(on_space(), 1).text()
    shown, _, folded = text.partition("<details>")
    assert "3 of 40 differ from the default" in shown
    assert shown.index("p001") < shown.index("p002") < shown.index("p003")
    assert "true (default 1)" in shown
    assert "inactive (default 1)" in shown
    assert "p004" not in shown
    assert "37 as in the default" in folded
    assert folded.index("p000") < folded.index("p004") < folded.index("p039")
    assert text in report_page(on_space(), [])


def test_the_default_itself_has_nothing_to_show_first() -> None:
    """All is folded."""
    shown, _, folded = many_settings(on_space(), 0).text().partition("<details>")
    assert "0 of 40 differ" in shown
    assert "p001" not in shown
    assert "all 40" in folded


def test_without_a_default_all_settings_are_listed() -> None:
    """And few of them stand in a table, as they did."""
    unknown = on_space(origins=())
    assert "<details>" not in many_settings(unknown, 1).text()
    few = [{"a": True, "b": "x"} for _ in unknown.names]
    page = report_page(on_space(settings=few), [])
    assert "Recommended settings</h3>" in page
    assert "<td>true</td>" in page


def test_values_stand_in_the_order_of_their_parameter() -> None:
    """An ordinal parameter's groups and ticks go from its first value to its last, in whatever order they were met."""
    assert [value_text(True), value_text(False)] == ["true", "false"]
    story = read_story(raced_ledger())
    choices = ["low", "middle", "high"]
    met = [{"effort": choices[(2 - place) % 3], "x": place} for place in range(len(story.names))]
    assert isinstance(story.scores, ScoreIntervals)
    space = {"effort": {"type": "ordinal", "choices": choices}}
    told = replace(story, settings=met, scenario={**story.scenario, "space": space})
    effort = next(effect for effect in effects(told) if effect.name == "effort")
    assert list(effort.groups) == choices
    axis = next(column for column in columns(told) if column.name == "effort")
    assert [label for _, label in axis.ticks] == choices
    assert axis.place[0] == 1.0
