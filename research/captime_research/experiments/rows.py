"""Results as rows: one number each, written as CSV, and gathered over seeds into curves with bands."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from captime.errors import ScenarioError


@dataclass(frozen=True, slots=True)
class Row:
    """One number of an experiment.

    Attributes:
        panel: Which part of the picture.
        label: Which curve.
        seed: Seed of the sampling.
        x: Where.
        y: The number; NaN where there is none.
        why: Why there is none.
    """

    panel: str
    label: str
    seed: int
    x: float
    y: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A curve over seeds: their middle and their extremes; NaN where not even half of the seeds have a number."""

    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """A CSV file with a heading; an empty field is a number that does not exist."""
    names = [each.name for each in fields(Row)]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                told = asdict(row)
                writer.writerow(told | {axis: _text(told[axis]) for axis in ("x", "y")})
    except OSError as error:
        raise ScenarioError(f"{path} cannot be written ({error.strerror}); choose a folder that is yours") from error


def read_rows(path: Path) -> list[Row]:
    """What `write_rows` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(row["panel"], row["label"], int(row["seed"]), _number(row["x"]), _number(row["y"]), row["why"])
            for row in csv.DictReader(file)
        ]


def bands(rows: Iterable[Row], *, mean: bool = False) -> dict[str, dict[str, Band]]:
    """Panels, curves, and their bands over seeds, in the order in which they first occur.

    Args:
        rows: Of all seeds.
        mean: Whether the middle of a band is the mean; otherwise it is the median.
    """
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row in rows:
        found.setdefault(row.panel, {}).setdefault(row.label, {}).setdefault(row.x, []).append(row.y)
    return {
        panel: {label: _band(points, mean=mean) for label, points in curves.items()} for panel, curves in found.items()
    }


def _band(points: dict[float, list[float]], *, mean: bool) -> Band:
    x = sorted(points)
    middle, low, high = [], [], []
    for place in x:
        values = np.array(points[place])
        known = values[~np.isnan(values)]
        enough = 2 * len(known) > len(values)
        middle.append(float(known.mean() if mean else np.median(known)) if enough else math.nan)
        low.append(float(known.min()) if enough else math.nan)
        high.append(float(known.max()) if enough else math.nan)
    return Band(x, middle, low, high)


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _number(text: str) -> float:
    return float(text) if text else math.nan
