import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from captime.errors import ScenarioError
from captime.runs import RunRequest
from captime.scenario import load_scenario, scenario_of, template
from captime.scenario.models import ScenarioModel, bytes_of, seconds_of
from captime.scenario.spec import StopRules

PYTHON = sys.executable
SMALLEST = """\
utility = "log-laplace(1, 1)"
delta = 0.1
[target]
command = ["minisat", "-rnd-seed={seed}", "-var-decay={var_decay}", "{instance}"]
answer = "^(SATISFIABLE|UNSATISFIABLE)"     # what a right answer looks like in the output
exit_codes = [10, 20]
[configurations]
default = { var_decay = 0.95 }
patient = { var_decay = 0.999 }
[instances]
files = "instances/*.cnf"
[stop]
epsilon = 0.1
cpu = "10m"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three instances and a program called minisat."""
    (tmp_path / "instances").mkdir()
    for number in range(3):
        (tmp_path / "instances" / f"{number}.cnf").write_text(f"p cnf 1 {number}\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "minisat"
    program.write_text("#!/bin/sh\necho SATISFIABLE\nexit 10\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def written(folder: Path, text: str, name: str = "scenario.toml") -> Path:
    """A scenario file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_smallest_scenario_works_as_written(folder: Path) -> None:
    """Names, meanings and defaults of what is written first."""
    spec = load_scenario(written(folder, SMALLEST)).build()
    assert [row.name for row in spec.question.configs] == ["default", "patient"]
    assert spec.question.configs[1].settings == {"settings": {"var_decay": 0.999}}
    assert (spec.question.problem().n_configs, spec.question.problem().n_instances, spec.question.problem().delta) == (
        2,
        3,
        0.1,
    )
    assert (spec.question.problem().epsilon, spec.settings.stop) == (0.1, StopRules(cpu=600.0))
    assert (spec.question.procedure, spec.settings.order, spec.question.clock, spec.ledger.name) == (
        "race",
        "arrival",
        "cpu",
        "scenario.ledger",
    )
    launch = spec.question.program.launch(RunRequest(1, 0, 2.5), 9, "tag")
    element = spec.question.stream.at(0)
    program = str(folder / "bin" / "minisat")
    assert launch.argv == (program, f"-rnd-seed={element.seed}", "-var-decay=0.999", element.instance.path)
    assert launch.patterns == {"answer": "^(SATISFIABLE|UNSATISFIABLE)"}
    assert (launch.captime, launch.wall_limit, launch.directory) == (2.5, 13.5, None)
    assert {entry[0] for entry in launch.guarded} >= {program, element.instance.path}
    assert spec.question.program.repeatable


def test_the_template_is_valid_and_shows_every_field(folder: Path) -> None:
    """As written, and with every line behind a # taken out one by one."""
    load_scenario(written(folder, template())).build()
    shown = set(re.findall(r"^(?:# )?(\w+) =", template(), flags=re.MULTILINE))
    shown |= set(re.findall(r"^(?:# )?\[([\w.]+)\]", template(), flags=re.MULTILINE))
    assert [
        name for name in field_names(ScenarioModel) if name.rpartition(".")[2] not in shown and name not in shown
    ] == []
    for line in re.findall(r"^# (\w+ = .*)$", template(), flags=re.MULTILINE):
        tomllib.loads(line)


def test_the_template_names_the_real_defaults() -> None:
    """What stands behind a # is the default, unless it says "left out"."""
    text = re.sub(r"^(?:# )(\w+ = (?!.*left out).*)$", r"\1", template(), flags=re.MULTILINE)
    text = re.sub(r"^# (\[[\w.]+\].*)$", r"\1", text, flags=re.MULTILINE)
    shown = tomllib.loads(
        re.sub(
            r"^(?:list|csv|values|generator|function|another|wrapper|stdin|verifier) =.*$", "", text, flags=re.MULTILINE
        )
    )
    document = dict(shown, options={}, space=None)
    document["target"] = {
        k: v for k, v in document["target"].items() if k not in ("settings_style", "switches", "environment", "kind")
    }
    document["instances"] = {k: v for k, v in document["instances"].items() if k not in ("suffix", "folder", "answers")}
    told, plain = (
        ScenarioModel.model_validate(dict(document, ledger=None)),
        ScenarioModel.model_validate(tomllib.loads(template())),
    )
    assert told == plain


def field_names(model: type[BaseModel], before: str = "") -> list[str]:
    """Every field, with the sections it is in."""
    found = []
    for name, field in model.model_fields.items():
        found.append(before + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += field_names(field.annotation, f"{before}{name}.")
    return found


def test_every_field_is_documented_and_nothing_else_is() -> None:
    """docs/scenario.md has a row for each field of each section."""
    page = (Path(__file__).parents[2] / "docs" / "scenario.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \|", page, flags=re.MULTILINE)
    assert sorted(rows) == sorted(field_names(ScenarioModel))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("delta = 0.1", 'delta = "small"', "line 2: delta is 'small'; expected a number"),
        ("delta = 0.1", "delta = 1.5", "line 2: delta is 1.5; expected less than 1"),
        ("delta = 0.1", "detla = 0.1", "line 2: detla is unknown; did you mean 'delta'?"),
        ('utility = "log-laplace(1, 1)"', "seed = 1", "scenario.toml: utility is missing"),
        ("log-laplace(1, 1)", "log-laplas(1, 1)", "line 1: utility: .*log-laplace"),
        ("[target]", '[target]\nmemory = "2XB"', "line 4: target.memory is '2XB'; expected a size such as"),
        ("[target]", '[target]\nclock = "cpus"', "line 4: target.clock is 'cpus'; expected 'cpu' or 'wall'"),
        (
            "exit_codes = [10, 20]",
            'exit_codes = ["ten"]',
            "line 6: target.exit_codes.0 is 'ten'; expected a whole number",
        ),
        (
            "exit_codes = [10, 20]",
            "exit_code = [10]",
            "line 6: target.exit_code is unknown; did you mean 'exit_codes'?",
        ),
        ('"^(SATISFIABLE|UNSATISFIABLE)"', '"^(SATISFIABLE"', "is no regular expression"),
        ('"^(SATISFIABLE|UNSATISFIABLE)"', '".*"', "matches an empty line"),
        ('"minisat"', '"minisad"', "there is no program 'minisad'; did you mean 'minisat'"),
        ("{var_decay}", "{var_decai}", "needs {var_decai}.*it has 'var_decay'"),
        ("{instance}", "{instances}", "needs {instances}.*'instance'"),
        (
            "patient = { var_decay = 0.999 }",
            "patient = { var_decays = 1 }",
            "configuration 'patient': .*needs {var_decay}",
        ),
        (
            "patient = { var_decay = 0.999 }",
            "patient = { var_decay = 1, luby = 2 }",
            "'luby' is not used by the command",
        ),
        ("patient = { var_decay = 0.999 }", "patient = 3", "line 9: configurations.patient is 3; expected a table"),
        ("patient = { var_decay = 0.999 }", "patient = { var_decay = nan }", "configurations.patient.var_decay is nan"),
        ("patient = { var_decay = 0.999 }", "patient = { var_decay = 1979-05-27 }", "expected a text, a finite number"),
        (
            "instances/*.cnf",
            "instances/*.cfn",
            r"line 11: instances.files: no file matches 'instances/\*.cfn'.*'0.cnf'",
        ),
        ('files = "instances/*.cnf"', "", "line 10: instances does not say where instances come from"),
        (
            'files = "instances/*.cnf"',
            'files = "instances/*.cnf"\nlist = "x"',
            "says files and list; expected exactly one",
        ),
        ('files = "instances/*.cnf"', 'list = "x.txt"', "instances.list: .*x.txt.* cannot be looked at"),
        ('files = "instances/*.cnf"', 'generator = ["minisat"]', "makes the same instance every time"),
        ('files = "instances/*.cnf"', 'generator = ["minisat", "{q}"]', "nothing is called {q}"),
        ('cpu = "10m"', 'cpu = "10x"', "stop.cpu is '10x'; .*not a unit of time"),
        ('cpu = "10m"', 'until = "soon"', "stop.until is 'soon'; expected a time of day"),
        ("epsilon = 0.1", "epsilon = 2", "stop.epsilon is 2; expected less than 1"),
        ("[stop]", "[stops]", "stops is unknown; did you mean 'stop'"),
        ("delta = 0.1", 'delta = 0.1\nprocedure = "rase"', "line 3: procedure is 'rase'; did you mean 'race'"),
        (
            "delta = 0.1",
            "delta = 0.1\noptions = { bost = 2 }",
            "options.bost is no option of race; did you mean 'boost'",
        ),
        ("delta = 0.1", "delta = 0.1\njobs = 9999", "line 3: jobs is 9999, but there are"),
        ("delta = 0.1", "delta = 0.1 x", "is no TOML file: .*line 2"),
        ("delta = 0.1", "delta = 0.1\ndelta = 0.2", "is no TOML file"),
        ("[target]", '[target]\ntime = "reported"', "reports no time"),
        ("[target]", '[target]\ndirectory = "nowhere"', "target.directory is 'nowhere', which is no folder"),
        ("[target]", '[target]\nkind = "function"', "target.function is missing"),
        ("[target]", '[target]\nfunction = "a:b"', "target.command means nothing for a function"),
        ("[instances]", "[instances]\nfirst = 3", "instances.first means nothing for listed instances"),
        ("[target]", '[target]\nverifier = ["minisat", "{answer}"]', "nothing is called {answer}"),
    ],
)
def test_mistakes_are_named_with_file_line_field_and_remedy(folder: Path, old: str, new: str, complaint: str) -> None:
    """One mistake each; the message says where."""
    assert old in SMALLEST
    path = written(folder, SMALLEST.replace(old, new, 1))
    with pytest.raises(ScenarioError, match=complaint) as caught:
        load_scenario(path).build()
    assert "scenario.toml" in str(caught.value)


def test_several_mistakes_are_told_at_once(folder: Path) -> None:
    """One line each."""
    text = SMALLEST.replace("delta = 0.1", 'delta = "x"').replace("epsilon = 0.1", 'epsilon = "y"')
    with pytest.raises(ScenarioError, match="2 fields are wrong") as caught:
        load_scenario(written(folder, text))
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_file_is_told_with_how_to_begin(tmp_path: Path) -> None:
    """No traceback, and the command that writes one."""
    with pytest.raises(ScenarioError, match="captime init"):
        load_scenario(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("1.5m", 90), ("90s", 90), ("2h", 7200), ("1d", 86400), (5, 5), ("100ms", 0.1)]
)
def test_m_means_minutes_here(text: Any, seconds: float) -> None:
    """Nothing else could be meant by ten m of CPU time."""
    assert seconds_of(text) == seconds


def test_sizes_have_units() -> None:
    """Thousands and their binary cousins."""
    assert [bytes_of(each) for each in ("2GB", "1 KiB", "500mb", 7)] == [2 * 10**9, 1024, 5 * 10**8, 7]


def document(folder: Path, **changes: Any) -> dict[str, Any]:
    """The smallest scenario as a dictionary, with other sections."""
    return tomllib.loads(SMALLEST) | changes


def test_configurations_can_be_a_list_or_a_table_in_a_file(folder: Path) -> None:
    """The same candidates, written in three ways; cells are the values they look like."""
    listed = [{"name": "default", "var_decay": 0.95}, {"var_decay": 0.999}]
    as_list = scenario_of(document(folder, configurations=listed), folder)
    assert [each.name for each in as_list.configurations] == ["default", "2"]
    (folder / "c.csv").write_text("name,var_decay,x\ndefault,0.95,\npatient,0.999,yes\n", encoding="utf-8")
    as_file = scenario_of(document(folder, configurations={"file": "c.csv"}), folder)
    assert [dict(each.settings) for each in as_file.configurations] == [
        {"var_decay": 0.95},
        {"var_decay": 0.999, "x": "yes"},
    ]
    named_file = scenario_of(document(folder, configurations={"file": {"var_decay": 1}}), folder)
    assert [each.name for each in named_file.configurations] == ["file"]
    with pytest.raises(ScenarioError, match="two configurations are called 'a'"):
        scenario_of(document(folder, configurations=[{"name": "a"}, {"name": "a"}]), folder).configurations  # noqa: B018 (asking is the test)


def test_choosing_among_programs_is_choosing_a_configuration(folder: Path) -> None:
    """Each may have its own command, answer and exit codes."""
    configurations = {
        "ours": {"var_decay": 1},
        "other": {"command": ["true", "{instance}"], "answer": "^yes", "exit_codes": [0]},
    }
    spec = scenario_of(document(folder, configurations=configurations), folder).build()
    other = spec.question.program.launch(RunRequest(1, 0, 1.0), 1, "t")
    assert other.argv[0].endswith("true")
    assert other.patterns == {"answer": "^yes"}
    assert spec.question.configs[1].settings["command"] == ["true", "{instance}"]
    assert not scenario_of(document(folder, configurations=configurations), folder).program.seeded


def test_files_beside_the_scenario_are_found_and_watched(folder: Path) -> None:
    """Scripts named in a command become full paths, because runs take place elsewhere; {here} is the folder."""
    (folder / "solver.py").write_text("print('SATISFIABLE')", encoding="utf-8")
    target = {"command": [PYTHON, "solver.py", "--options={here}/x", "{instance}"], "answer": "^SAT"}
    scenario = scenario_of(document(folder, target=target, configurations={"only": {}}), folder)
    launch = scenario.build().question.program.launch(RunRequest(0, 0, 1.0), 1, "t")
    assert launch.argv[1:3] == (str(folder / "solver.py"), f"--options={folder}/x")
    assert str(folder / "solver.py") in [entry[0] for entry in launch.guarded]
    assert "solver.py" in scenario.canonical()["target"]["programs"]


def test_only_what_is_named_of_the_environment_reaches_the_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual few, or those named; secrets are set but never stored."""
    monkeypatch.setenv("SECRET_OF_MINE", "hush")
    target = tomllib.loads(SMALLEST)["target"]
    plain = scenario_of(document(folder), folder)
    assert "SECRET_OF_MINE" not in plain.program.launch(RunRequest(0, 0, 1.0), 1, "t").environment
    named = target | {"environment": {"inherit": ["PATH", "SECRET_OF_MINE"], "set": {"KEY": "value-of-key"}}}
    chosen = scenario_of(document(folder, target=named), folder)
    environment = chosen.program.launch(RunRequest(0, 0, 1.0), 1, "t").environment
    assert {name: environment[name] for name in ("SECRET_OF_MINE", "KEY")} == {
        "SECRET_OF_MINE": "hush",
        "KEY": "value-of-key",
    }
    assert set(environment) == {"PATH", "SECRET_OF_MINE", "KEY"}
    assert "value-of-key" not in str(chosen.canonical())


def test_generated_streams_are_endless(folder: Path) -> None:
    """The generator's program is found and is part of what the answer depends on."""
    (folder / "gen.py").write_text("print('p cnf')", encoding="utf-8")
    instances = {"generator": [PYTHON, "gen.py", "{k}"], "suffix": ".cnf"}
    scenario = scenario_of(document(folder, instances=instances), folder)
    spec = scenario.build()
    made = spec.question.stream.at(5).instance.preparation
    assert made is not None
    assert made.argv == (PYTHON, str(folder / "gen.py"), "5")
    assert spec.question.problem().n_instances is None
    assert not Path(made.output).parent.exists()  # the generator's first call makes it
    assert "gen.py" in scenario.canonical()["instances"]["programs"]


@pytest.mark.parametrize(
    ("command", "settings", "complaint"),
    [
        (["minisat", "-x={flags}"], {"flags": ["a"]}, "a word of its own"),
        (["minisat", "--all={settings}"], {"a": 1}, "a word of its own"),
        (["minisat", "{a}"], {"a": "{scratch}"}, "cannot be passed on unchanged"),
        (["{a}", "x"], {"a": "minisat"}, "expected its name without placeholders"),
    ],
)
def test_what_cannot_be_passed_on_is_refused_before_anything_runs(
    folder: Path, command: list[str], settings: dict[str, Any], complaint: str
) -> None:
    """Not in the middle of the night."""
    changed = document(folder, target={"command": command}, configurations={"only": settings})
    with pytest.raises(ScenarioError, match=complaint):
        scenario_of(changed, folder).build()


def test_wrappers_get_no_value_that_would_be_changed_on_its_way(folder: Path) -> None:
    """Settings of wrappers are passed on in any case, so they are looked at too."""
    target = {"command": ["minisat"], "wrapper": "aclib1"}
    with pytest.raises(ScenarioError, match="cannot be passed on unchanged"):
        scenario_of(document(folder, target=target, configurations={"a": {"x": "{output}"}}), folder).build()


def test_folders_may_have_braces_in_their_names(folder: Path) -> None:
    """They are no placeholders there."""
    odd = folder / "{seed} {x}"
    odd.mkdir()
    (odd / "solver.py").write_text("", encoding="utf-8")
    target = {"command": [PYTHON, "solver.py", "{instance}"]}
    instances = {"files": "../instances/*.cnf"}
    scenario = scenario_of(document(folder, target=target, configurations={"a": {}}, instances=instances), odd)
    assert scenario.program.launch(RunRequest(0, 0, 1.0), 1, "t").argv[1] == str(odd / "solver.py")


def test_instances_whose_names_are_placeholders_are_refused(folder: Path) -> None:
    """The supervisor would fill them in."""
    (folder / "{scratch}.cnf").write_text("x", encoding="utf-8")
    with pytest.raises(ScenarioError, match="cannot be passed on unchanged"):
        scenario_of(document(folder, instances={"files": "*.cnf"}), folder).build()


def test_the_command_line_shown_can_be_pasted(folder: Path) -> None:
    """With the program's full path, and with paths that no program takes for options."""
    target = {"command": ["minisat", "{settings}", "-t={captime}", "{instance}", "{output}", "{scratch}"]}
    program = scenario_of(document(folder, target=target), folder).program
    words = program.command_line(0, "-nasty.cnf", 5)
    assert words == [
        str(folder / "bin" / "minisat"),
        "-var_decay",
        "0.95",
        "-t=2147483647",
        "./-nasty.cnf",
        "output",
        ".",
    ]
    launch = program.launch(RunRequest(0, 0, 2.5), 1, "t")
    # log-laplace(1, 1) is worth 0.00004 after 12500 s: the captime of this run is not told.
    assert "-t=12500" in launch.argv
    assert launch.output_file == "output"


def test_whether_a_program_repeats_itself_is_seen_from_the_seed_or_said(folder: Path) -> None:
    """Without {seed} trial runs tell where instances are a set; else it does not, unless the user says."""
    target = {"command": ["minisat", "{instance}", "{var_decay}"]}
    asked = document(folder, target=target)
    assert scenario_of(asked, folder).program.repeatable
    assert scenario_of(asked, folder).build().settings.check_repeatability
    asked["instances"] = {**asked["instances"], "population": "drawn"}
    assert not scenario_of(asked, folder).program.repeatable
    assert scenario_of(document(folder, target=target | {"repeatable": True}), folder).program.repeatable
    assert scenario_of(document(folder), folder).program.repeatable


def test_a_command_without_any_settings_can_be_a_scenario_of_one(folder: Path) -> None:
    """And known answers need a pattern to be compared with."""
    (folder / "answers.csv").write_text("instance,answer\n0.cnf,SAT\n", encoding="utf-8")
    instances = {"files": "instances/*.cnf", "answers": "answers.csv"}
    spec = scenario_of(document(folder, instances=instances), folder).build()
    assert sorted(spec.question.stream.at(position).instance.answer or b"" for position in range(3)) == [
        b"",
        b"",
        b"SAT",
    ]
    target = {"command": ["minisat", "{instance}"]}
    with pytest.raises(ScenarioError, match=r"target\.answer is missing, but right answers are known"):
        scenario_of(document(folder, instances=instances, target=target, configurations={"a": {}}), folder).build()
