"""Integer programs among the instances: read back by a small strict reader and solved."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from captime.instances import INSTANCES, auction, cascade, generate

TERM = re.compile(r"([+-]?)\s*(\d+(?:\.\d+)?)?\s*([a-z][a-z0-9_]*)")


@dataclass
class Program:
    """What an LP file says: maximise `goal` subject to rows `terms <= most`, some variables binary, all at most 1."""

    goal: dict[str, float] = field(default_factory=dict)
    rows: list[tuple[dict[str, float], float]] = field(default_factory=list)
    binary: set[str] = field(default_factory=set)
    bounded: set[str] = field(default_factory=set)


def terms(text: str) -> dict[str, float]:
    """The coefficients in a sum; every character has to belong to a term."""
    assert re.fullmatch(rf"(\s*{TERM.pattern}\s*)+", text), text
    return {
        name: (-1.0 if sign == "-" else 1.0) * float(number or 1) for sign, number, name in TERM.findall(text.strip())
    }


def read(text: str) -> Program:
    """A strict reader of the part of the LP format that the generators write."""
    assert all(len(line) < 200 for line in text.splitlines()), "some readers refuse long lines"
    body = re.sub(r"^\\.*$", "", text, flags=re.MULTILINE)
    found = re.fullmatch(
        r"\s*Maximize\s+\w+:(.*)\nSubject To\n(.*?)\n(?:Bounds\n(.*)\n)?Binary\n(.*)\nEnd\n", body, flags=re.DOTALL
    )
    assert found is not None
    goal, rows, bounds, binary = found.groups()
    made = Program(terms(goal.replace("\n", " ")), binary=set(binary.split()))
    for row in re.split(r"\s*\b\w+:", rows.replace("\n", " "))[1:]:
        left, _, right = row.partition("<=")
        made.rows.append((terms(left), float(right)))
    for line in (bounds or "").splitlines():
        name, _, most = line.partition("<=")
        assert float(most) == 1
        made.bounded.add(name.strip())
    return made


def solve(program: Program) -> tuple[float, set[str]]:
    """The optimum and the variables that are 1 there."""
    names = sorted(program.binary | program.bounded)
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(program.rows), len(names)))
    for number, (row, _) in enumerate(program.rows):
        for name, value in row.items():
            matrix[number, place[name]] = value
    goal = np.zeros(len(names))
    for name, value in program.goal.items():
        goal[place[name]] = value
    answer = milp(
        -goal,
        constraints=LinearConstraint(matrix, -np.inf, np.array([most for _, most in program.rows])),
        integrality=np.array([int(name in program.binary) for name in names]),
        bounds=Bounds(0, 1),
    )
    assert answer.success
    return -answer.fun, {name for name in names if answer.x[place[name]] > 0.5}


@pytest.mark.parametrize("name", [name for name, made in INSTANCES.items() if made.SUFFIX == ".lp"])
def test_a_program_names_every_variable_it_uses(name: str) -> None:
    """Whatever stands in the goal or in a row is declared as binary or has bounds."""
    for seed in range(5):
        program = read(generate(name, seed))
        known = program.binary | program.bounded
        assert set(program.goal) <= known
        assert all(set(row) <= known for row, _ in program.rows)


def test_an_auctions_winners_share_no_good_and_bring_what_the_bids_say() -> None:
    """The file's optimum, checked against the auction itself; one bid alone is a plan, and never a better one."""
    for seed in range(3):
        goods, bids, groups = auction.draw(seed, (20, 30), 4.0)
        assert 20 <= goods <= 30
        assert len(bids) >= 4 * goods
        assert len({tuple(region) for _, region in bids}) == len(bids)
        best, chosen = solve(read(generate("auction", seed, size=(20, 30), bids=4.0)))
        winners = sorted(int(name[1:]) for name in chosen)
        sold = [good for winner in winners for good in bids[winner][1]]
        assert len(set(sold)) == len(sold)
        assert all(len(set(group) & set(winners)) <= 1 for group in groups)
        assert best == pytest.approx(sum(bids[winner][0] for winner in winners))
        assert best >= max(price for price, _ in bids)


def test_regions_of_an_auction_hang_together() -> None:
    """Every good of a bid is reached from the first one over neighbours, all in the bid."""
    goods, bids, _ = auction.draw(4, (40, 40), 4.0)
    assert goods == 40
    sizes = [len(region) for _, region in bids]
    assert min(sizes) == 1
    assert max(sizes) > 8
    side = round(40**0.5)
    for _, region in bids:
        reached, waiting = {region[0]}, [region[0]]
        while waiting:
            good = waiting.pop()
            for other in region:
                apart = abs(good // side - other // side), abs(good % side - other % side)
                if other not in reached and max(apart) == 1:
                    reached.add(other)
                    waiting.append(other)
        assert reached == set(region)


def occupied_at_the_end(
    parcels: list[int], costs: list[int], occupied: list[int], scenario: list[cascade.Year], bought: set[int]
) -> int:
    """How many territories have birds in the last year, walking forward year by year."""
    present = set(occupied)
    for year in scenario:
        allowed = {v for v in year if not costs[parcels[v]] or parcels[v] in bought}
        present = {v for v in allowed if present & set(year[v])}
    return len(present)


def test_a_conservation_plan_is_worth_what_walking_it_forward_says() -> None:
    """The file's optimum equals the birds counted year by year under the plan it found, within the budget."""
    for seed in range(3):
        parcels, costs, occupied, drawn = cascade.draw(seed, (14, 18), 4, 3)
        assert 14 <= len(parcels) <= 18
        assert len(drawn) == 3
        assert all(len(scenario) == 4 for scenario in drawn)
        best, chosen = solve(read(generate("cascade", seed, size=(14, 18), years=4, scenarios=3)))
        bought = {int(name[1:]) for name in chosen if name.startswith("y")}
        assert sum(costs[parcel] for parcel in bought) <= round(0.25 * sum(costs))
        counts = [occupied_at_the_end(parcels, costs, occupied, scenario, bought) for scenario in drawn]
        assert best == pytest.approx(sum(counts))
        everything = set(range(len(costs)))
        most = [occupied_at_the_end(parcels, costs, occupied, scenario, everything) for scenario in drawn]
        assert sum(counts) <= sum(most) == sum(len(scenario[-1]) for scenario in drawn)
