"""The scenario that `captime init` writes: every field once, with a word about it; what is optional is behind a #."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from captime.procedures import PROCEDURES
from captime.scenario.models import ScenarioModel

TEMPLATE = """\
# A captime scenario: which configuration of a program is worth most, and how sure can one be?
# Fill in what is not behind a #; everything else has a default, which is shown. Check it with `captime doctor`, start
# it with `captime run`. Times: 90s, 10m, 2h, 1d. Sizes: 500MB, 2GB. Files are seen from the folder of this one.

utility = "log-laplace(60, 1)"    # what an answer is worth: half as much after a minute; see `captime utility`
delta = 0.1                       # the certificate may be wrong with this probability
# seed = 1                        # key of everything that is drawn at random; left out, a fresh one is drawn
# jobs = "auto"                   # runs at once; "auto": one per core
# oversubscribe = false           # allow more jobs than cores, which disturbs measuring
# procedure = "race"              # decides what to run next; left out: race, and pool on a space
# effort = "search"               # on a space; "certify" for a better certificate; left out: balanced
# captime_first = "1s"            # for procedures that raise captimes: where they start
# order = "arrival"               # "fixed": the same outcomes give the same answer, whatever the timing
# window = 8                      # with order = "fixed": how many runs are open at once
# ledger = "scenario.ledger"      # every run is recorded here
# isolation = "subreaper"         # cgroup2, subreaper or posix; left out: the best that works here

# [options]                       # options of the procedure, such as
# boost = 1.25

[target]                          # the program. {seed}, {instance}, {output}, {scratch}, {config}, {here}, {captime},
                                  # {settings} and every setting by its name are filled in word by word; no shell
command = ["minisat", "-rnd-seed={seed}", "-var-decay={var_decay}", "{instance}"]
answer = "^(SATISFIABLE|UNSATISFIABLE)"    # a line of the output of every run that has answered
exit_codes = [10, 20]                      # its exit codes
# until = { pattern = "^o (\\\\S+)", at_most = 105 }    # left out: none; a line with this value ends a run
# kind = "command"                # or "function", with
# function = "solver:solve"       # the function solve(settings, instance, seed) in solver.py
# wrapper = "aclib1"              # or aclib2, irace, smac3: the command is a wrapper made for another configurator
# settings_style = ["-{name}", "{value}"]  # how {settings} writes each of them
# switches = { decay = "--decay=" }        # or what it writes before the value of single ones
# stdin = "{instance}"            # what the program reads from its standard input
# verifier = ["./check", "{instance}", "{stdout}"]  # exit code 0: the answer is right, 1: it is wrong
# verifier_timeout = "1m"
# tolerance = 1e-6                # by which share two numbers may differ and still be the same answer
# compare_answers = true          # stop if two configurations contradict each other
# time = "measured"               # or "reported": what a wrapper tells counts
# clock = "cpu"                   # or "wall"
# ceiling = "1h"                  # no run is given more time; left out: as long as an answer is worth anything
# wall_factor = 5                 # a run that sleeps is stopped after this many times its captime on the wall clock
# memory = "2GB"                  # of a run, with all its processes; left out: no limit
# output_limit = "1GiB"           # what a run may print
# disk_limit = "10GB"             # what a run may write into its own directory; left out: no limit
# processes = 100                 # how many processes a run may have; left out: no limit
# directory = "."                 # where runs take place; left out: a fresh directory each
# repeatable = "auto"             # whether the same run takes the same time again; "auto": trial runs tell

# [target.environment]
# inherit = ["PATH", "HOME"]      # left out: the usual few; ["*"] for all
# set = { OMP_NUM_THREADS = "1" }

[configurations]                  # the candidates: a name and settings each; or file = "configs.csv"
default = { var_decay = 0.95 }
patient = { var_decay = 0.999 }
# another = { command = ["glucose", "{instance}"] }    # a program of its own is a configuration too

# [space]                         # in place of [configurations]: a space too large to list; see docs/spaces.md
# var_decay = { type = "float", low = 0.5, high = 0.999, default = 0.95 }    # left out: the candidates are listed

[instances]                       # exactly one of files, list, csv, values, generator
files = "instances/*.cnf"         # one pattern or a list of them
# list = "instances.txt"          # one path per line
# csv = "instances.csv"           # a column "instance", perhaps "answer" and "group"
# values = [1, 2, 3]              # instances that are not files
# generator = ["./make", "--seed", "{k}"]  # makes instance {k} on its standard output, or in the file {output}
# first = 0                       # for a generator: the first {k}
# suffix = ".cnf"                 # for a generator: how names of files end
# folder = "scenario.instances"   # for a generator: where its files are kept
# timeout = "1m"                  # for a generator: how long it may take
# sampling = "shuffle"            # "given": as listed; "replace": with replacement, "best" is then among these
# population = "drawn"            # left out: the claim is about exactly these; "drawn": about more like them
# seeds = 1                       # runs of each instance with different seeds; needs population = "these"
# allow_duplicates = false        # whether two files may hold the same
# answers = "answers.csv"         # known answers, in columns "instance" and "answer"

# [executor]                      # where runs happen; left out: on this machine
# kind = "local"                  # or "dask": a cluster, see docs/cluster.md, with exactly one of the next three
# address = "tcp://10.0.0.1:8786" # left out: none; the address of a Dask scheduler
# scheduler_file = "scheduler.json"        # left out: none; the file it has written
# cluster = "slurm"               # left out: none; start one: local, slurm, pbs, sge, lsf, htcondor, oar, moab
# workers = 4                     # left out: one job of a queue, or one worker per core; how many to start
# options = { cores = 16, memory = "32GB", walltime = "04:00:00" }    # left out: none; for dask-jobqueue
# transfer = false                # send instance files to the workers, where no folder is shared
# scratch = "/scratch"            # left out: the usual place; where workers make the directories of runs
# machines = "same"               # only equally fast ones; "any": whichever is free; "normalised": convert seconds
# tolerance = 0.1                 # by which share machines may differ and still be the same
# reference = "50ms"              # left out: the first machine; CPU time of the reference where seconds count
# patience = "10m"                # left out: for ever; how long to wait if there is no worker

[stop]                            # whichever comes first
epsilon = 0.1                     # the goal: within this of the best
# gamma = 0.1                     # on a space: the best 10 % of it may be missed; left out: as the procedure says
cpu = "10m"                       # CPU time in all; left out: no limit
# wall = "1h"                     # wall-clock time; left out: no limit
# until = "18:30"                 # a time of day; left out: none
"""


def template() -> str:
    """Return the text of a new scenario file."""
    return TEMPLATE


# The JSON schema of the scenario, for editors: completion, checks and explanations while a file is written.

SCHEMA_FILE = "captime.schema.json"
"""The name under which the schema stands beside a scenario."""
SCHEMA_LINE = f"#:schema ./{SCHEMA_FILE}\n"
"""The first line of a scenario, by which editors with a TOML language server (Taplo) find the schema."""
_PARAMETER_TYPES = ["float", "int", "categorical", "ordinal", "bool", "constant"]
_SETTING = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        {"type": "array", "items": {"type": "string"}, "description": "Words of the command line."},
    ]
}


def scenario_schema() -> dict[str, Any]:
    """Return the schema; it knows every field, and the procedures that are installed."""
    schema = _without_titles(ScenarioModel.model_json_schema())
    fields = schema["properties"]
    fields["procedure"] = {"enum": sorted(PROCEDURES), "description": fields["procedure"]["description"]}
    candidate = {"type": "object", "additionalProperties": _SETTING}
    fields["configurations"] = {
        "description": fields["configurations"]["description"],
        "anyOf": [
            {"type": "array", "items": candidate},
            {"type": "object", "properties": {"file": {"anyOf": [{"type": "string"}, candidate]}},
             "additionalProperties": candidate},
        ],
    }  # fmt: skip
    parameter = {
        "type": "object",
        "properties": {"type": {"enum": _PARAMETER_TYPES, "description": "What kind of parameter it is."}},
    }
    fields["space"] = {
        "type": "object",
        "description": fields["space"]["description"],
        "properties": {
            "file": {"anyOf": [{"type": "string", "description": "A parameter file of another format."}, parameter]},
            "conditions": {"anyOf": [{"type": "array", "items": {"type": "string"}}, parameter]},
            "forbidden": {"anyOf": [{"type": "array"}, parameter]},
            "favourites": {"anyOf": [{"type": "array", "items": {"type": "object"}}, parameter]},
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "captime scenario",
        "description": "Which configuration of a program is worth most, and how sure can one be?",
        **{name: value for name, value in schema.items() if name not in ("description", "title")},
    }


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(folder: Path) -> Path:
    """Write the schema beside a scenario, in place of one that an earlier release has written there."""
    path = folder / SCHEMA_FILE
    path.write_text(schema_text(), encoding="utf-8")
    return path


def _without_titles(value: Any) -> Any:
    """Return the schema without the titles that repeat the names of fields."""
    if isinstance(value, Mapping):
        return {
            name: _without_titles(each) for name, each in value.items() if name != "title" or not isinstance(each, str)
        }
    return [_without_titles(each) for each in value] if isinstance(value, list) else value
