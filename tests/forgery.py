"""A forger: changes the rows of a ledger as he likes, then numbers and hashes all of them anew.

And real ledgers for him, small ones: of a program that answers at once, crashes or runs for ever.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from captime.campaign import run_campaign
from captime.ledger.rows import to_json
from captime.ledger.schema import TABLES, Chain
from captime.scenario import load_scenario
from report_ledgers import shared_memory

Change = str | Callable[[sqlite3.Connection], object]
"""SQL, or something that is given the open file."""

PAID = "UPDATE certificate SET cpu_seconds = (SELECT total(cost) FROM outcome WHERE outcome.seq < certificate.seq)"
"""All certificates say what the runs before them cost: for a forger who deletes some."""

_SOLVER = """#!/bin/sh
# solver SHARE SEED INSTANCE: answers at once on SHARE percent of all seeds; else it crashes, or runs for ever.
luck=$(( ($2 / 7) % 100 ))
if [ "$luck" -lt "$1" ]; then echo "answer $(cat "$3")"; exit 0; fi
if [ $(( luck % 2 )) -eq 0 ]; then exit 1; fi
while :; do :; done
"""
_COMMON = """
utility = "uniform(0.05)"
delta = 0.1
seed = 5
jobs = 1
{head}
[target]
command = ["./solver", "{{share}}", "{{seed}}", "{{instance}}"]
answer = "^answer (.*)"
repeatable = true
ceiling = "40ms"
{candidates}
[instances]
csv = "instances.csv"
{population}
[stop]
epsilon = {epsilon}
cpu = "20s"
"""
_LIST = """
[configurations]
default = { share = 60 }
better = { share = 97 }
worse = { share = 20 }
"""
_SPACE = """
[space]
share = { type = "int", low = 1, high = 99, default = 50 }
"""
_DRAWN = 'population = "drawn"'
KINDS = {
    "race": {"head": "", "candidates": _LIST, "epsilon": "0.5"},
    "in fixed order": {"head": 'order = "fixed"\nwindow = 3', "candidates": _LIST, "epsilon": "0.5"},
    "fixed-captimes": {"head": 'procedure = "fixed-captimes"', "candidates": _LIST, "epsilon": "0.7"},
    "drawn": {"head": "", "candidates": _LIST, "epsilon": "0.5", "population": _DRAWN},
    "drawn in fixed order": {
        "head": 'order = "fixed"\nwindow = 3',
        "candidates": _LIST,
        "epsilon": "0.5",
        "population": _DRAWN,
    },
    "pool": {"head": "", "candidates": _SPACE, "epsilon": "0.7\ngamma = 0.6", "population": _DRAWN},
}
"""Real campaigns: a list in order of arrival and in fixed order, with a claim about exactly these instances and with
one about more like them; another procedure, a parameter space."""


@lru_cache(maxsize=len(KINDS))
def _recorded(kind: str) -> Path:
    folder = shared_memory()
    solver = folder / "solver"
    solver.write_text(_SOLVER, encoding="utf-8")
    solver.chmod(0o755)
    lines = ["instance,answer"]
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(f"{number}\n", encoding="utf-8")
        lines.append(f"{number:02}.txt,{number if number % 2 else ''}")
    (folder / "instances.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    scenario = folder / "scenario.toml"
    scenario.write_text(_COMMON.format(**{"population": "", **KINDS[kind]}), encoding="utf-8")
    spec = load_scenario(scenario).build()
    run_campaign(spec.question, spec.ledger, spec.settings)
    return spec.ledger


def real_ledger(kind: str, folder: Path) -> Path:
    """A copy of a real ledger to do harm to; the campaign is run once."""
    return Path(shutil.copyfile(_recorded(kind), folder / "copy.ledger"))


def scenario_changed(edit: Callable[[dict[str, Any]], object]) -> Change:
    """A change of the scenario, with its SHA-256."""

    def change(connection: sqlite3.Connection) -> None:
        scenario = json.loads(connection.execute("SELECT scenario FROM campaign").fetchone()[0])
        edit(scenario)
        text = to_json(scenario)
        connection.execute(
            "UPDATE campaign SET scenario = ?, scenario_hash = ?", (text, sha256(text.encode()).hexdigest())
        )

    return change


def notes_changed(kind: str, edit: Callable[[dict[str, Any]], object]) -> Change:
    """A change of all notes of one kind."""

    def change(connection: sqlite3.Connection) -> None:
        for row, text in connection.execute("SELECT seq, facts FROM note WHERE kind = ?", (kind,)).fetchall():
            facts = json.loads(text)
            edit(facts)
            connection.execute("UPDATE note SET facts = ? WHERE seq = ?", (to_json(facts), row))

    return change


def forge(path: Path, *changes: Change, rechain: bool = True) -> None:
    """Change a ledger behind captime's back; with the hashes made to fit again, if so wished."""
    with sqlite3.connect(path) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for change in changes:
            connection.execute(change) if isinstance(change, str) else change(connection)
        if rechain:
            _rechain(connection)
    connection.close()
    path.with_name(path.name + ".lock").unlink(missing_ok=True)


def _rechain(connection: sqlite3.Connection) -> None:
    """Number all rows anew in their order, and hash them as if they had always been so."""
    rows = [(row, table) for table in TABLES for row in connection.execute(f"{table.select()} ORDER BY seq")]
    rows.sort(key=lambda each: each[0][0])
    moved = {row[0]: place for place, (row, _) in enumerate(rows, start=1)}
    for table in TABLES:
        connection.execute(f"DELETE FROM {table.name}")  # noqa: S608 (names of ours)
    chain = Chain()
    for row, table in rows:
        values = list(row[1:-1])
        if "call" in table.names:
            values[table.names.index("call")] = min(moved.get(values[-1], chain.sequence + 1), chain.sequence + 1)
        if "head" in table.names:
            values[table.names.index("head")] = chain.head
        connection.execute(table.insert(), chain.link(table, values))
