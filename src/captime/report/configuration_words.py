"""The table of configurations for people: on the terminal, as plain text, as Markdown and as HTML."""

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from captime.report.charts.nodes import Node, element
from captime.report.configurations import Candidacy, ConfigurationRow, ConfigurationTable, Median, MedianKind, Ratio
from captime.report.words import printable, rounded_down, rounded_up
from captime.utilities.durations import duration_text

ROWS_SHOWN = 12
"""How many configurations are shown unless all are asked for."""
_NOTHING = "–"
_DIGITS = 2
_STYLES = {Candidacy.LEADER: "bold", Candidacy.IN: "", Candidacy.OUT: "dim"}
_SHORT = {Candidacy.LEADER: "best", Candidacy.IN: "in", Candidacy.OUT: "out"}


def headings(table: ConfigurationTable) -> list[str]:
    """Return the titles of the columns of a page; "unfinished" only where there are such runs."""
    unfinished = ["unfinished"] if _has_unfinished(table) else []
    return [
        "configuration",
        "runs",
        *("answered", "capped", "failed", *unfinished),
        "median time",
        "utility",
        "interval",
        "time / best's",
        "",
    ]


def cells(row: ConfigurationRow, *, unfinished: bool) -> list[str]:
    """Return the words of one row, one for each heading."""
    name, runs, _, *rest = _narrow_cells(row, unfinished=unfinished)
    return [name, runs, *(f"{count:,}" for count in _ends(row, unfinished=unfinished)), *rest]


def _narrow_headings(table: ConfigurationTable) -> list[str]:
    """Return titles for a terminal of 80 columns: how runs ended is one column of its own."""
    ends = "answered/\ncapped/\nfailed" + ("/\nunfinished" if _has_unfinished(table) else "")
    return ["configuration", "runs", ends, "median\ntime", "utility", "interval", "time /\nbest's", ""]


def _narrow_cells(row: ConfigurationRow, *, unfinished: bool) -> list[str]:
    return [
        printable(row.name),
        f"{row.runs:,}",
        "/".join(f"{count:,}" for count in _ends(row, unfinished=unfinished)),
        median_words(row.median),
        _NOTHING if math.isnan(row.utility) else f"{row.utility:.{_DIGITS}f}",
        f"{rounded_down(row.lower, _DIGITS)}-{rounded_up(row.upper, _DIGITS)}",
        ratio_words(row.ratio),
        _SHORT[row.candidacy],
    ]


def _ends(row: ConfigurationRow, *, unfinished: bool) -> list[int]:
    return [row.answered, row.capped, row.failed, *([row.unfinished] if unfinished else [])]


def median_words(median: Median) -> str:
    """Return a median time as it is shown: a number, ">= x" if capped runs hide it, or "never"."""
    match median.kind:
        case MedianKind.EXACT:
            return duration_text(median.seconds)
        case MedianKind.AT_LEAST:
            return f">= {duration_text(median.seconds)}"
        case MedianKind.NEVER:
            return "never"
        case MedianKind.UNKNOWN:
            return _NOTHING


def ratio_words(ratio: Ratio | None) -> str:
    """Return how a time compares with the leader's: 2 is twice as slow."""
    if ratio is None:
        return "1"
    low, high = f"{ratio.low:.2f}", f"{ratio.high:.2f}"
    if ratio.low == ratio.high:
        return "never" if math.isinf(ratio.low) else low
    if math.isinf(ratio.high):
        return _NOTHING if ratio.low <= 0.0 else f">= {low}"
    return f"<= {high}" if ratio.low <= 0.0 else low if low == high else f"{low}-{high}"


def caption(table: ConfigurationTable, shown: int) -> str:
    """Return what has to be known to read the table, in one or two sentences."""
    left = len(table) - shown
    more = f"{left:,} more configurations are not shown. " if left > 0 else ""
    about = " about more instances like these" if table.on_set else ""
    return (
        f"{more}Utilities are estimates, with capped runs accounted for; all intervals hold at once{about} with "
        f"probability at least {100 * (1 - table.delta):g} %."
    )


def for_terminal(table: ConfigurationTable, most: int = ROWS_SHOWN) -> Table:
    """Return the table for a console of Rich; it has no markup in it, and fits into 80 columns."""
    unfinished, heads = _has_unfinished(table), _narrow_headings(table)
    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(heads):
        left = place in (0, len(heads) - 1)
        drawn.add_column(heading, justify="left" if left else "right", no_wrap=place > 0, overflow="fold")
    for row in shown_rows(table, most):
        style = _STYLES[row.candidacy]
        drawn.add_row(*(Text(cell, style=style) for cell in _narrow_cells(row, unfinished=unfinished)))
    return drawn


def as_text(table: ConfigurationTable, most: int = ROWS_SHOWN) -> str:
    """Return the table as lines of text, without any colour; no line is cut, however long a name is."""
    unfinished, heads = _has_unfinished(table), [heading.split("\n") for heading in _narrow_headings(table)]
    height = max(map(len, heads))
    above = [[head[line - height] if height - line <= len(head) else "" for head in heads] for line in range(height)]
    words = [*above, *(_narrow_cells(row, unfinished=unfinished) for row in shown_rows(table, most))]
    widths = [max(map(len, column)) for column in zip(*words, strict=True)]
    left = {0, len(widths) - 1}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in words
    )


def as_markdown(table: ConfigurationTable, most: int = ROWS_SHOWN) -> str:
    """Return the table as GitHub and GitLab show it in a comment."""
    heads, *rows = _words(table, most)
    rule = [":--" if place in (0, len(heads) - 1) else "--:" for place in range(len(heads))]
    lines = [heads, rule, *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_html(table: ConfigurationTable, most: int = ROWS_SHOWN) -> Node:
    """Return the table as an element of a page; names are text in it and never markup."""
    heads, *rows = _words(table, most)
    body = [
        element("tr", *(element("td", cell, class_="number" if 0 < at < len(heads) - 1 else "") for at, cell in line))
        for line in (list(enumerate(row)) for row in rows)
    ]
    head = element("tr", *(element("th", heading) for heading in heads))
    return element("table", element("thead", head), element("tbody", *body), class_="configurations")


def shown_rows(table: ConfigurationTable, most: int) -> Sequence[ConfigurationRow]:
    """Return the first rows; all if there is just one more than asked for, whose line a remark would take."""
    return table.rows if len(table) <= most + 1 else table.rows[:most]


def _words(table: ConfigurationTable, most: int) -> list[list[str]]:
    unfinished = _has_unfinished(table)
    return [headings(table), *(cells(row, unfinished=unfinished) for row in shown_rows(table, most))]


def _has_unfinished(table: ConfigurationTable) -> bool:
    return any(row.unfinished for row in table)


def _escaped(cell: str) -> str:
    r"""Return a cell whose characters mean nothing to Markdown: a vertical bar would begin another cell."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]#~" else each for each in cell)
