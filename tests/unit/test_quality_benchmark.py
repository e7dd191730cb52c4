"""The bookkeeping of benchmarks/quality.py: who was the incumbent when, who is ahead, what is on record."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import quality
from quality_methods import METHODS
from quality_report import Point, incumbent_at, points_of, verdict


def cell(method: str, seed: int, story: list[list[Any]], budget: float = 120.0) -> dict[str, Any]:
    """A search on record."""
    return {"example": "toy", "method": method, "seed": seed, "budget": budget, "spent": budget, "story": story}


def test_the_incumbent_is_the_last_one_named_by_then() -> None:
    """And the default before any was named."""
    searched = cell("captime", 1, [[0.0, {"x": 0}], [30.0, {"x": 1}], [90.0, {"x": 2}]])
    assert [incumbent_at(searched, spent) for spent in (0.0, 29.0, 60.0, 120.0)] == [
        {"x": 0},
        {"x": 0},
        {"x": 1},
        {"x": 2},
    ]


def test_methods_are_compared_on_the_same_instances_and_seeds() -> None:
    """A clear difference is seen through instances that vary far more."""
    scores = {
        ("toy", json.dumps({"x": 1})): [0.1, 0.9, 0.5, 0.7, 0.3],
        ("toy", json.dumps({"x": 2})): [0.0, 0.8, 0.4, 0.61, 0.2],
    }
    cells = {
        ("toy", "captime", 1): cell("captime", 1, [[0.0, {"x": 2}], [70.0, {"x": 1}]]),
        ("toy", "random", 1): cell("random", 1, [[0.0, {"x": 2}]]),
        ("toy", "optuna", 1): cell("optuna", 1, [[0.0, {"x": 1}]], budget=60.0),
    }
    points = {(point.method, point.minutes): point for point in points_of(cells, scores, [1.0, 2.0])}
    assert points["random", 1.0].ahead == 0.0
    assert points["random", 2.0].ahead == pytest.approx(0.098)
    assert points["random", 2.0].noise < 0.01 < points["random", 2.0].error
    assert ("optuna", 2.0) not in points  # it was not searched for so long
    lines = verdict(list(points.values()))
    assert lines[0] == "behind by more than noise: 1 of 3 comparisons"
    assert "optuna" in lines[1]
    assert "2 min: +0.0980" in lines[2]


def test_a_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    """Of two searches of a kind the longer one counts, and a torn line is no line."""
    lines = [cell("random", 1, [[0.0, {}]], budget) for budget in (60.0, 600.0, 120.0)]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"example": "to'
    (tmp_path / "searches.jsonl").write_text(text, encoding="utf-8")
    assert {key: found["budget"] for key, found in quality.searched(tmp_path).items()} == {("toy", "random", 1): 600.0}
    assert quality.evaluated(tmp_path) == {}


def test_a_new_incumbent_has_all_of_its_example_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of one example are always of one day: a slower machine would look like a worse configuration."""
    days: list[float] = []

    def evaluate(example: str, configurations: list[dict[str, Any]], first: int, last: int) -> dict[str, Any]:
        scores = [[days[-1] + position for position in range(first, last)] for _ in configurations]
        return {"example": example, "first": first, "scores": scores}

    def backwards(work: Any, arguments: list[tuple[Any, ...]], jobs: int) -> list[dict[str, Any]]:
        assert jobs == 1
        return [work(*each) for each in reversed(arguments)]  # blocks come back in any order

    monkeypatch.setattr(quality, "evaluate", evaluate)
    monkeypatch.setattr(quality, "_in_parallel", backwards)
    monkeypatch.setattr(quality, "default_of", lambda _: {"x": 0})
    searches = [cell("random", 1, [[0.0, {"x": 1}]]), {**cell("random", 1, [[0.0, {"x": 5}]]), "example": "other"}]
    for day in (0.25, 0.5, 0.75):
        days.append(day)
        if day == 0.75:
            searches.append(cell("captime", 1, [[0.0, {"x": 2}]]))
        text = "".join(json.dumps(line) + "\n" for line in searches)
        (tmp_path / "searches.jsonl").write_text(text, encoding="utf-8")
        quality._evaluate(tmp_path, [1.0, 2.0], 25, 1)
    known = quality.evaluated(tmp_path)
    toy, other = (
        {key: scores for (example, key), scores in known.items() if example == name} for name in ("toy", "other")
    )
    assert sorted(toy) == ['{"x": 0}', '{"x": 1}', '{"x": 2}']
    assert list(toy.values()) == [[0.75 + position for position in range(25)]] * 3
    assert list(other.values()) == [[0.25 + position for position in range(25)]] * 2


def test_nothing_is_said_about_nothing() -> None:
    """No searches, no points; ours alone has nothing to be compared with."""
    assert points_of({}, {}, [1.0]) == []
    alone = Point("toy", "captime", 1.0, 1, 0.5, 0.1, 0.0, 0.0)
    assert verdict([alone]) == ["behind by more than noise: 0 of 0 comparisons"]
    assert next(iter(METHODS)) == "captime"
