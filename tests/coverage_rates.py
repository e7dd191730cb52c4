"""The table of observed error rates of the statistical suites, from what they recorded.

Part of `make coverage`. By hand: pytest -m slow tests/coverage/test_race_covers.py -o junit_family=xunit1
--junitxml=rates.xml, then: python tests/coverage_rates.py rates.xml
"""

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from race_harness import DELTA, SHARE


def rates_of(paths: list[Path]) -> dict[str, dict[str, list[float]]]:
    """By suite and kind of statement, the rates of all its cases."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        for case in ET.parse(path).iter("testcase"):  # noqa: S314 (see above)
            name, _, words = case.attrib["name"].partition("[")
            # Cases of the parallel suite are told apart by engine and number of workers, and counted over all laws.
            place = words.rstrip("]").split("-") if "many_workers" in name else []
            suite = (
                f"{place[1]}, {place[2]} workers" if len(place) == 3 else name.replace("_", " ").removeprefix("test ")
            )
            for told in case.iter("property"):
                found[suite][told.attrib["name"]].append(float(told.attrib["value"]))
    return found


def main(paths: list[Path]) -> None:
    """Mean and largest rate per suite and kind, beside what is allowed."""
    shown = Table(title=f"observed error rates, delta = {DELTA}: mean over cases, largest case", title_justify="left")
    for heading in ("suite", "cases", "kind", "mean", "largest", "allowed"):
        shown.add_column(heading, justify="left" if heading == "suite" else "right")
    for suite, kinds in rates_of(paths).items():
        for kind, rates in kinds.items():
            allowed = DELTA * SHARE.get(kind, 1.0)
            shown.add_row(suite, f"{len(rates)}", kind, f"{np.mean(rates):.4f}", f"{max(rates):.4f}", f"{allowed:.3f}")
    Console(highlight=False, width=160).print(shown)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
