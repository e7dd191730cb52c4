"""The result of `captime.configure` as Python shows it: printed, in a notebook, as a table."""

from dataclasses import dataclass, fields
from functools import cached_property

from captime.campaign.result import CampaignResult
from captime.report.campaigned import summary_and_table
from captime.report.charts.chart import Node, element
from captime.report.configurations import ROWS_SHOWN, ConfigurationTable, as_html, as_text, caption, shown_rows
from captime.report.words import Summary, lines, printable, statement

_SHOWN_LINES = (
    "warning",
    "these instances",
    "more like them",
    "expected utility",
    "cost",
    "candidates left",
    "closest rival",
    "stopped because",
    "next steps",
    "ledger",
)
# A notebook has a style sheet of its own; these few words are all that is added to it.
_LABEL = "text-align: left; font-weight: normal; opacity: .7; vertical-align: top; padding-right: 1em"
_VALUE = "text-align: left; white-space: normal"


@dataclass(frozen=True, repr=False)
class Result(CampaignResult):
    """What a campaign came to; `print(result)` shows certificate and table, a notebook shows both as HTML.

    The fields are those of `captime.CampaignResult`.
    """

    @classmethod
    def of(cls, result: CampaignResult) -> "Result":
        """Return the same result with everything to look at."""
        return cls(**{each.name: getattr(result, each.name) for each in fields(CampaignResult)})

    @property
    def table(self) -> ConfigurationTable | None:
        """The table of configurations; None if the ledger cannot be read any more, which `trouble` says."""
        return self._told[1]

    @cached_property
    def _told(self) -> tuple[Summary, ConfigurationTable | None]:
        return summary_and_table(self)

    def configurations(self) -> dict[str, list[object]]:
        """Return the table of configurations as columns: `pandas.DataFrame(result.configurations())`.

        docs/report.md says what each column means and how utilities are estimated where runs were capped.
        """
        return {} if self.table is None else self.table.columns()

    def __str__(self) -> str:
        """Return the certificate in words, the table of configurations, and the most important numbers."""
        summary = self._told[0]
        told = [(label, value) for label, value in lines(summary) if label in _SHOWN_LINES]
        width = max(len(label) for label, _ in told)
        text = [statement(summary)]
        if self.table is not None:
            text += ["", as_text(self.table), caption(self.table, len(shown_rows(self.table, ROWS_SHOWN))), ""]
        text += [f"{label.ljust(width)}  {printable(value)}" for label, value in told]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        summary = self._told[0]
        whole = element("div", element("p", element("b", statement(summary))))
        if self.table is not None:
            words = caption(self.table, len(shown_rows(self.table, ROWS_SHOWN)))
            whole.add(as_html(self.table), element("p", element("small", words)))
        rows = [_line(label, value) for label, value in lines(summary) if label in _SHOWN_LINES]
        return whole.add(element("table", element("tbody", *rows))).text()


def _line(label: str, value: str) -> Node:
    return element("tr", element("th", label, style=_LABEL), element("td", value, style=_VALUE))
