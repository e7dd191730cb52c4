"""The page of a report: one file of HTML that holds everything it needs."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from captime.report.charts.chart import Cell, Chart, Child, FigureTable, Node, Raw, Versus, View, element
from captime.report.charts.svg import Frame, draw
from captime.report.configurations import as_html, caption, configuration_table, shown_rows
from captime.report.ledger_data import LedgerData
from captime.report.ledger_words import decisions, quality, summary_of_story
from captime.report.validated import Validated, validation_section
from captime.report.views.parameters import INACTIVE, parameter_order, value_text
from captime.report.words import (
    UNCERTIFIED,
    Assumption,
    gamma_words,
    left_words,
    lines,
    rounded_down,
    rounded_up,
    statement,
    time_word,
)
from captime.utilities.formula import duration_text

# The report: certificate, figures and tables in one file.

_FEW = 12
"""At most this many are shown as they are; what matters among them is found at a glance."""


def are_few(settings: Mapping[str, object]) -> bool:
    """Whether they fit into a short list."""
    return len(settings) <= _FEW


def all_rows(story: LedgerData, config: int) -> list[tuple[str, str]]:
    """Every setting, in the order of its space."""
    settings = story.settings[config]
    return [(name, value_text(settings[name])) for name in parameter_order(story, settings)]


def many_settings(story: LedgerData, config: int) -> Node:
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


def _default(story: LedgerData) -> int | None:
    return next((config for config, origin in enumerate(story.origins) if origin == "default"), None)


def _worded(settings: Mapping[str, object], name: str) -> str:
    return value_text(settings[name]) if name in settings else INACTIVE


def _listed(rows: Sequence[tuple[str, str]]) -> Node:
    return element("ul", *(element("li", element("span", name), " ", value) for name, value in rows), class_="settings")


_ROWS_SHOWN = 400
# Charts up to this width fit any window; of wider ones there is a narrow copy, in pixels.
_SMALL, _NARROW, _TALLEST = 400.0, 350.0, 400.0
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
)


def report_page(story: LedgerData, views: Sequence[View], held_out: Sequence[Validated] = ()) -> str:
    """Return the whole file.

    Args:
        story: The campaign.
        views: Its figures.
        held_out: Its validations.
    """
    style, script = asset("chart.css") + asset("report.css"), asset("report.js")
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Node("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"captime report: {story.path.name}"),
        element("style", Raw(source=style)),
    )
    shown = (_figure(number, view) for number, view in enumerate(views, start=1))
    main = element("main", _certificate(story), *_configurations(story), *validation_section(held_out), *shown)
    body = element("body", _header(story, views), main, _footer(story), element("div", id="tip", hidden=True))
    body.add(element("script", Raw(source=script)))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en").text() + "\n"


def asset(name: str) -> str:
    """A style sheet or script of this package."""
    return files("captime.report.page").joinpath(name).read_text(encoding="utf-8")


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


def _header(story: LedgerData, views: Sequence[View]) -> Node:
    # The names that `captime plot` knows: eleven questions in full are wider than any screen.
    links = [element("a", view.name, href=f"#{view.name}", title=view.title) for view in views]
    title = element("div", element("b", "captime"), element("span", f" {story.path.name}"), class_="brand")
    return element("header", title, element("nav", *links))


# ------------------------------------------------------------------ the certificate


def _certificate(story: LedgerData) -> Node:
    summary = summary_of_story(story)
    held = summary.certificate
    section = element("section", class_="certificate", id="certificate")
    if story.missing:
        section.add(element("p", f"This is an older state of the campaign. {story.missing}."))
    if held is None:
        why = (
            "This is a trace: it has decisions, but no runs and no certificate. A report of a ledger has all figures."
            if story.runs is None
            else UNCERTIFIED
        )
        last = f"Last decision: epsilon {story.progress.epsilon[-1]:.4f}. " if len(story.progress.epsilon) else ""
        return section.add(element("p", last + why, class_="statement"))
    section.add(element("p", statement(summary), class_="statement"))
    section.add(
        element(
            "dl",
            *(_tile("epsilon", rounded_up(held.epsilon, 3)), _tile("probability", f"{100 * (1 - held.delta):g} %")),
            *([] if held.gamma is None else [_tile("gamma", gamma_words(held, 3))]),
            _tile("expected utility", f"{rounded_down(held.utility_low, 3)} to {rounded_up(held.utility_high, 3)}"),
            _tile("candidates left", left_words(summary)),
            _tile(time_word(story.clock), _spent(story)),
            class_="tiles",
        )
    )
    details = element("div", class_="columns")
    details.add(_list("In numbers", lines(summary)))
    details.add(
        element(
            "div",
            element("h3", "This rests on"),
            element("ul", *(_assumption(each) for each in summary.rests_on), class_="rests"),
            _list("Measurement quality", quality(story)),
        )
    )
    settings = story.settings[held.config] if story.settings else {}
    if settings and are_few(settings):
        details.add(_list("Recommended settings", all_rows(story, held.config)))
    section.add(details)
    return section if are_few(settings) else section.add(many_settings(story, held.config))


def _configurations(story: LedgerData) -> list[Node]:
    """Return the table of configurations as a section of its own; nothing for a trace, which has no runs."""
    table = configuration_table(story)
    if table is None or not len(table):
        return []
    words = caption(table, len(shown_rows(table, _ROWS_SHOWN)))
    scroll = element("div", as_html(table, _ROWS_SHOWN), class_="scroll")
    return [element("section", element("h2", "Configurations"), scroll, element("p", words), id="configurations")]


def _spent(story: LedgerData) -> str:
    """Return the time of all runs, without a word that the label has already."""
    seconds = 0.0 if story.runs is None else float(story.runs.cost.sum())
    return f"{seconds / 86400:,.1f} days" if seconds >= 86400 else duration_text(seconds)


def _tile(label: str, value: str) -> Node:
    return element("div", element("dt", label), element("dd", value))


def _assumption(assumed: Assumption) -> Node:
    standing = assumed.standing or ""
    return element("li", element("span", standing, class_=f"standing {standing}"), " ", assumed.words)


def _list(title: str, rows: Sequence[tuple[str, str]]) -> Node:
    body = [element("tr", element("th", label), element("td", value)) for label, value in rows]
    return element("div", element("h3", title), element("table", element("tbody", *body), class_="facts"))


# ------------------------------------------------------------------ the figures


def _figure(number: int, view: View) -> Node:
    section = element("section", element("h2", view.title), id=view.name, class_="figure")
    section.add(*(_charts(view) if view.versus is None else _any_two(view.versus)))
    section.add(element("p", element("b", f"Figure {number}. "), view.caption, class_="caption"))
    if view.table is not None and view.table.rows:
        section.add(_table(view.name, view.table))
    return section


def _charts(view: View) -> list[Node]:
    """All charts; those of the first choice are shown."""
    small = len(view.charts) > 1 and all(chart.width <= _SMALL for chart in view.charts)
    holder = element("div", class_="charts small" if small else "charts")
    chosen = view.chosen or range(len(view.charts))
    for chart, choice in zip(view.charts, chosen, strict=True):
        box = _chart_box(chart)
        if view.choices:
            box.attributes = {**box.attributes, "data-choice": str(choice)}
            if choice > 0:
                box.attributes = {**box.attributes, "class": "chart-box later"}
        holder.add(box)
    if not view.choices:
        return [holder]
    select = element("select", *_options(view.choices, 0), class_="choose", data_for=view.name)
    return [element("p", element("label", "Show ", select), class_="chooser"), holder]


def _any_two(versus: Versus) -> list[Node]:
    """One chart, and two lists to choose from; a reader without scripts sees the first two."""
    narrow = _narrowed(versus.chart)
    frames = [Frame(chart, chart.width) for chart in (versus.chart, narrow)]
    boxes = [[round(each, 1) for each in (frame.left, frame.bottom, frame.right, frame.top)] for frame in frames]
    first = element("select", *_options(versus.names, versus.first), class_="versus", aria_label="one of them")
    second = element("select", *_options(versus.names, versus.second), class_="versus", aria_label="the other one")
    data = json.dumps({**versus.data, "boxes": boxes}, separators=(",", ":"))
    return [
        element("p", element("label", "Compare ", first), element("label", " with ", second), class_="chooser"),
        element("div", _chart_box(versus.chart), class_="charts", data_versus=data),
    ]


def _options(names: Sequence[str], chosen: int) -> list[Node]:
    return [element("option", name, value=str(place), selected=place == chosen) for place, name in enumerate(names)]


def _chart_box(chart: Chart) -> Node:
    """The chart, and once more for narrow windows: text keeps its size, so a picture cannot just be made smaller."""
    words = chart.title[:1].upper() + chart.title[1:]
    if chart.width <= _SMALL:
        return element("figure", element("h3", words), element("div", draw(chart)), class_="chart-box")
    wide = element("div", draw(chart), class_="wide")
    narrow = element("div", draw(_narrowed(chart)), class_="narrow")
    return element("figure", element("h3", words), wide, narrow, class_="chart-box")


def _narrowed(chart: Chart) -> Chart:
    """For a phone; not much higher than wide, unless every row has a name."""
    return replace(chart, width=_NARROW, height=min(chart.height, _TALLEST) if chart.y.label else chart.height)


def _table(name: str, table: FigureTable) -> Node:
    """All rows are in the file, for copying and saving; the page shows a window of them."""
    head = element("tr", *(element("th", column.replace("_", " "), data_name=column) for column in table.columns))
    rows = [element("tr", *(_cell(cell) for cell in row)) for row in table.rows[:_ROWS_SHOWN]]
    left = len(table.rows) - len(rows)
    note: list[Child] = [f"{len(table.rows):,} rows"]
    if left > 0:
        note.append(f"; the first {len(rows):,} are here, `captime report --json` has all of them")
    return element(
        "details",
        element("summary", "The numbers"),
        element(
            "p",
            element("button", "Copy", type="button", data_copy=name),
            element("button", "Save as CSV", type="button", data_save=name),
            element("span", *note, class_="note"),
            class_="buttons",
        ),
        element(
            "div",
            element("table", element("thead", head), element("tbody", *rows), id=f"table-{name}"),
            class_="scroll",
        ),
    )


def _cell(value: Cell) -> Node:
    if value is None:
        return element("td", "", data_value="")
    if isinstance(value, int):
        return element("td", f"{value:,}", class_="number", data_value=str(value))
    if isinstance(value, float):
        return element("td", f"{value:.4g}", class_="number", data_value=repr(value))
    return element("td", value)


def _footer(story: LedgerData) -> Node:
    log = [
        element("tr", element("td", _moment(at_ns)), element("td", kind), element("td", words))
        for at_ns, kind, words in decisions(story)
    ]
    notes = [
        element("h3", "Log"),
        element("div", element("table", element("tbody", *log), class_="log"), class_="scroll"),
    ]
    made = datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    return element(
        "footer",
        *(notes if log else []),
        element(
            "p",
            f"Made by captime {version('captime')} on {made} from {story.path.name}, head {story.head[:16] or 'none'}.",
        ),
    )


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")


def write_report(page: str, path: Path) -> None:
    """Write the file; a neighbour is made first, so that there is never half a report."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(page, encoding="utf-8")
    partial.replace(path)
