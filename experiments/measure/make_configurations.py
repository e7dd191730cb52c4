"""The configurations of the measured tables: `python make_configurations.py` writes minisat.csv, highs.csv, cplex.csv.

The first is the solver's default. Of the others a third differ from it in one setting, the rest in two to five, drawn
by seed. Names tell what differs, as words of a command line, so that searchers can read which ones are neighbours.
"""

import csv
import random
from pathlib import Path

HERE = Path(__file__).parent
COUNT = 42
MINISAT: dict[str, list[str]] = {
    "var-decay": ["0.95", "0.6", "0.75", "0.85", "0.99", "0.999"],
    "cla-decay": ["0.999", "0.9", "0.99"],
    "rnd-freq": ["0", "0.01", "0.05", "0.2", "0.6"],
    "rfirst": ["100", "10", "30", "300", "1000"],
    "rinc": ["2", "1.2", "1.5", "4"],
    "luby": ["yes", "no"],
    "ccmin-mode": ["2", "0", "1"],
    "phase-saving": ["2", "0", "1"],
    "elim": ["yes", "no"],
    "pre": ["yes", "no"],
    "asymm": ["no", "yes"],
}
HIGHS: dict[str, list[str]] = {
    "presolve": ["choose", "off"],
    "mip_detect_symmetry": ["true", "false"],
    "mip_allow_restart": ["true", "false"],
    "mip_allow_cut_separation_at_nodes": ["true", "false"],
    "mip_heuristic_effort": ["0.05", "0", "0.2", "0.5"],
    "mip_heuristic_run_feasibility_jump": ["true", "false"],
    "mip_heuristic_run_rins": ["true", "false"],
    "mip_heuristic_run_rens": ["true", "false"],
    "mip_lp_age_limit": ["10", "1", "50"],
    "mip_pool_age_limit": ["30", "3", "200"],
    "mip_pool_soft_limit": ["10000", "100", "1000"],
    "mip_pscost_minreliable": ["8", "1", "32"],
    "simplex_dual_edge_weight_strategy": ["-1", "0", "1"],
    "simplex_price_strategy": ["3", "0"],
}
CPLEX: dict[str, list[str]] = {
    "emphasis.mip": ["0", "1", "2", "3"],
    "preprocessing.presolve": ["1", "0"],
    "preprocessing.symmetry": ["-1", "0", "3"],
    "mip.strategy.probe": ["0", "-1", "1", "3"],
    "mip.strategy.variableselect": ["0", "-1", "2", "3", "4"],
    "mip.strategy.nodeselect": ["1", "0", "2"],
    "mip.strategy.heuristicfreq": ["0", "-1", "5", "50"],
    "mip.strategy.rinsheur": ["0", "-1", "20"],
    "mip.cuts.cliques": ["0", "-1", "2"],
    "mip.cuts.covers": ["0", "-1", "2"],
    "mip.cuts.zerohalfcut": ["0", "-1", "2"],
    "mip.cuts.gomory": ["0", "-1", "2"],
    "mip.limits.cutpasses": ["0", "-1", "5"],
    "lpmethod": ["0", "1", "2", "4"],
}
Configuration = dict[str, str]


def drawn(values: dict[str, list[str]], seed: int) -> list[Configuration]:
    """The default, then draws, all different."""
    rng = random.Random(seed)  # noqa: S311 (configurations, not secrets)
    default = {name: options[0] for name, options in values.items()}
    found = [default]
    while len(found) < COUNT:
        changes = 1 if len(found) <= COUNT // 3 else rng.randint(2, 5)
        names = rng.sample(sorted(values), changes)
        made = default | {name: rng.choice(values[name][1:]) for name in names}
        if made not in found:
            found.append(made)
    return found


def named(found: list[Configuration], dash: str) -> dict[str, Configuration]:
    """By what differs from the first one."""
    default = found[0]
    return {
        " ".join(f"{dash}{name}={value}" for name, value in each.items() if value != default[name]) or "default": each
        for each in found
    }


def write(path: Path, found: dict[str, Configuration]) -> None:
    """A column per setting, a row per configuration."""
    with path.open("w", newline="", encoding="utf-8") as file:
        columns = list(next(iter(found.values())))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", *(column.replace("-", "_").replace(".", "_") for column in columns)))
        writer.writerows((name, *each.values()) for name, each in found.items())


def flags(each: Configuration) -> Configuration:
    """Switches of minisat are written `-luby` and `-no-luby`."""
    return {
        name: {"yes": f"-{name}", "no": f"-no-{name}"}.get(value, f"-{name}={value}") for name, value in each.items()
    }


def words(each: Configuration) -> Configuration:
    """Settings of HiGHS and CPLEX are words `name=value`."""
    return {name: f"{name}={value}" for name, value in each.items()}


def main() -> None:
    """Write all files."""
    write(HERE / "minisat.csv", {name: flags(each) for name, each in named(drawn(MINISAT, 1), "-").items()})
    for solver, values, seed in (("highs", HIGHS, 2), ("cplex", CPLEX, 3)):
        write(HERE / f"{solver}.csv", {name: words(each) for name, each in named(drawn(values, seed), "").items()})


if __name__ == "__main__":
    main()
