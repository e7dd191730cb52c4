"""The configurators SMAC3, irace and Optuna on a table: `python run_peers.py TABLE` adds their curves to the gap.

Needs the results of `captime experiment gap` on the same table, whose moments it uses, and writes peers-TABLE.csv
beside them. A configurator that is not installed is left out, with the reason. Their own computing time is not counted,
only that of the runs, as for everybody else.
"""

import argparse
import math
import sys
from pathlib import Path

import irace_peer
import optuna_peer
import smac_peer
from on_table import TableTarget

from captime.experiments.gap import NOTHING
from captime.experiments.rows import Row, read_rows, write_rows
from captime.experiments.setting import Setting
from captime.experiments.shipped import table_at

PEERS = {"optuna": optuna_peer, "smac": smac_peer, "irace": irace_peer}


def main() -> None:
    """Every peer that is there, every seed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", help="a shipped table by name, or a path")
    arguments.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--peers", default=",".join(PEERS), help="some of them, with commas")
    wishes = arguments.parse_args()
    setting = Setting(table_at(wishes.table))
    gap = wishes.results / f"gap-{setting.table.name}.csv"
    if not gap.exists():
        sys.exit(f"{gap} is missing; captime experiment gap --data {wishes.table} writes it")
    moments = sorted({row.x for row in read_rows(gap) if not math.isnan(row.x)})
    rows: list[Row] = []
    for name in wishes.peers.split(","):
        peer = PEERS[name]
        reason = peer.missing()
        if reason is not None:
            print(f"{name} is left out: {reason}", file=sys.stderr)
            rows.append(Row(NOTHING, peer.LABEL, 0, math.nan, math.nan, reason))
            continue
        for seed in range(wishes.seeds):
            target = TableTarget(setting, seed, moments[-1])
            peer.search(target)
            rows += target.rows(peer.LABEL, NOTHING, moments)
            spent, runs = target.bench.spent, int(target.bench.runs.sum())
            print(f"{name}, seed {seed}: {spent:.3g} s of CPU time, {runs} runs", file=sys.stderr)
    write_rows(rows, wishes.results / f"peers-{setting.table.name}.csv")


if __name__ == "__main__":
    main()
