"""The recommended settings on a page: what differs from the default first; of many, the rest is folded away."""

from collections.abc import Mapping, Sequence

from captime.report.charts.nodes import Node, element
from captime.report.numbers.parameters import INACTIVE, parameter_order, value_text
from captime.report.story import Story

_FEW = 12
"""So many are shown as they are: nobody has to look for what matters among them."""


def are_few(settings: Mapping[str, object]) -> bool:
    """Whether they fit into a short list."""
    return len(settings) <= _FEW


def all_rows(story: Story, config: int) -> list[tuple[str, str]]:
    """Every setting, in the order of its space."""
    settings = story.settings[config]
    return [(name, value_text(settings[name])) for name in parameter_order(story, settings)]


def many_settings(story: Story, config: int) -> Node:
    """Those that differ from the default, each beside it, and the others behind a click."""
    default = _default(story)
    rows = all_rows(story, config)
    if default is None:
        return element("div", element("h3", "Recommended settings"), _listed(rows))
    settings, usual = story.settings[config], story.settings[default]
    names = parameter_order(story, {**usual, **settings})
    changed = [name for name in names if value_text(settings.get(name)) != value_text(usual.get(name))]
    # A parameter that a condition switches off has no value; that is a difference too.
    beside = [(name, _worded(settings, name), _worded(usual, name)) for name in changed]
    same = [row for row in rows if row[0] not in set(changed)]
    title = f"Recommended settings: {len(changed)} of {len(names)} differ from the default"
    block = element("div", element("h3", title))
    if changed:
        block.add(_listed([(name, f"{own} (default {other})") for name, own, other in beside]))
    if same:
        words = f"{len(same)} as in the default" if changed else f"all {len(same)}"
        block.add(element("details", element("summary", f"The settings that stay: {words}"), _listed(same)))
    return block


def _default(story: Story) -> int | None:
    return next((config for config, origin in enumerate(story.origins) if origin == "default"), None)


def _worded(settings: Mapping[str, object], name: str) -> str:
    return value_text(settings[name]) if name in settings else INACTIVE


def _listed(rows: Sequence[tuple[str, str]]) -> Node:
    return element("ul", *(element("li", element("span", name), " ", value) for name, value in rows), class_="settings")
