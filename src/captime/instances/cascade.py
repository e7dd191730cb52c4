"""Conservation as a MIP, of the "rcw" kind: which land to buy so that an endangered bird spreads furthest?

Territories lie in parcels that can be bought. A population spreads from a few occupied territories to near ones by
chance, year after year, but only over land that was bought. What chance might do is drawn beforehand, in several
scenarios; the plan that does best on average within a budget is looked for. This is the network design problem that the
red-cockaded woodpecker made known; the code and the numbers are our own. Nothing but the standard library: see
`captime.instances`.
"""

import random
import sys

SUFFIX = ".lp"
# One year of one scenario: reached[territory] = the territories from which it could be colonised.
Year = dict[int, list[int]]
Land = tuple[list[int], list[int], list[int], list[list[Year]]]


def draw(seed: int, size: tuple[int, int], years: int, scenarios: int) -> Land:
    """Parcel of each territory, cost of each parcel, territories occupied now, and the years of each scenario.

    Only territories that can be reached at all by then are in a year. Parcels of occupied territories cost nothing:
    they are protected already.
    """
    rng = random.Random(f"cascade {seed}")  # noqa: S311 (an instance, not a secret)
    territories = rng.randint(*size)
    places = [(rng.random(), rng.random()) for _ in range(territories)]
    n_parcels = max(2, territories // 2)
    centres = [(rng.random(), rng.random()) for _ in range(n_parcels)]
    parcels = [min(range(n_parcels), key=lambda p: _distance(place, centres[p])) for place in places]
    occupied = sorted(rng.sample(range(territories), max(1, territories // 10)))
    protected = {parcels[territory] for territory in occupied}
    costs = [0 if parcel in protected else rng.randint(10, 50) for parcel in range(n_parcels)]
    # A flight of this length succeeds one time in three; twice as far, hardly ever.
    reach = 0.9 / territories**0.5
    chances = [[0.8 * 2.718281828 ** -((_distance(a, b) / reach) ** 2) for b in places] for a in places]
    return parcels, costs, occupied, [_scenario(rng, chances, occupied, years) for _ in range(scenarios)]


def _scenario(rng: random.Random, chances: list[list[float]], occupied: list[int], years: int) -> list[Year]:
    """Each year every territory sends its young somewhere, whether they arrive is chance; adults may survive."""
    present = set(occupied)
    found = []
    for _ in range(years):
        year: Year = {}
        for to in range(len(chances)):
            # Drawn for all, so that what chance does here does not depend on which territories are reached.
            lucky = [
                start for start in range(len(chances)) if rng.random() < (0.85 if start == to else chances[start][to])
            ]
            sources = [start for start in lucky if start in present]
            if sources:
                year[to] = sources
        found.append(year)
        present = set(year)
    return found


def generate(
    seed: int, *, size: tuple[int, int] = (20, 50), years: int = 8, scenarios: int = 6, budget: float = 0.25
) -> str:
    """Which parcels to buy, so that on average over the scenarios most territories are occupied in the last year.

    Hardness: grows with territories, years and scenarios, and is largest when about a quarter of the land can be
    bought. At the defaults HiGHS takes 10 ms to half a second; 80 territories, 10 years and 10 scenarios take seconds,
    more of any of them minutes.

    Args:
        seed: Which landscape; the same seed and options give the same bytes.
        size: Fewest and most territories; the number is drawn evenly between them.
        years: How far one looks ahead.
        scenarios: How many draws of chance are planned for at once.
        budget: Share of the land's price that may be spent.
    """
    if not (8 <= size[0] <= size[1] and years > 0 and scenarios > 0 and 0 < budget < 1):
        raise ValueError(
            f"size is {size[0]}-{size[1]}, {years} years, {scenarios} scenarios, budget {budget:g}; expected 8 or more "
            "territories, one year and one scenario or more, a budget between 0 and 1"
        )
    parcels, costs, occupied, drawn = draw(seed, size, years, scenarios)
    goal = [f"  + x{k}_{years}_{v}" for k, scenario in enumerate(drawn) for v in scenario[-1]]
    priced = [parcel for parcel, cost in enumerate(costs) if cost]
    rows = [" budget:", *(f"  + {costs[p]} y{p}" for p in priced), f"  <= {round(budget * sum(costs))}"]
    bounds = []
    for k, scenario in enumerate(drawn):
        for t, year in enumerate(scenario, start=1):
            for v, sources in year.items():
                bounds.append(f" x{k}_{t}_{v} <= 1")
                if costs[parcels[v]]:
                    rows.append(f" land{k}_{t}_{v}: x{k}_{t}_{v} - y{parcels[v]} <= 0")
                # In the first year birds come from where they are now, which needs no permission.
                if t > 1:
                    rows += [f" from{k}_{t}_{v}: x{k}_{t}_{v}", *(f"  - x{k}_{t - 1}_{u}" for u in sources), "  <= 0"]
    title = f"\\ cascade: seed {seed}, {len(parcels)} territories, {len(occupied)} occupied, {len(costs)} parcels"
    wanted = goal or ["  + 0 y" + str(priced[0])]
    binary = [f" y{parcel}" for parcel in priced]
    return "\n".join(
        (title, "Maximize", " birds:", *wanted, "Subject To", *rows, "Bounds", *bounds, "Binary", *binary, "End", "")
    )


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return float(((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2) ** 0.5)


if __name__ == "__main__":  # as a plain script; -I leaves the script's own folder out of the path
    from importlib import import_module

    sys.path.insert(0, __file__.rpartition("/")[0])
    sys.exit(import_module("command").run(generate, sys.argv[1:], "cascade"))
