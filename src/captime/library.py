"""`captime.configure`: a campaign from Python in one call, with a function or a command as its target."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import replace
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeGuard
from warnings import warn

import numpy as np

from captime.campaign.assembly import Assembly
from captime.campaign.identity import as_begun
from captime.campaign.measurement import measured_runs
from captime.campaign.result import CampaignResult
from captime.campaign.transfer import learn_from as lessons_of
from captime.campaign.validation import (
    Validation,
    on_files,
    on_generated,
    on_values,
    only,
    refuse_if_silent,
    usual_captime,
    validation_of,
)
from captime.certificate import check_delta
from captime.errors import ScenarioError
from captime.executors.protocol import ctrl_c_asks
from captime.ledger import ConfigRow, LedgerReader
from captime.live import Observer
from captime.programs.protocol import did_you_mean
from captime.report.campaign_view import shown_progress
from captime.report.shown_result import Result
from captime.runs import never
from captime.scenario import Scenario, scenario_of
from captime.scenario.configurations import SpaceLike, section_for
from captime.scenario.errors import shown
from captime.scenario.models import InstancesSection as InstanceFields
from captime.scenario.models import ScenarioModel
from captime.scenario.models import TargetSection as TargetFields
from captime.spaces import Space
from captime.utilities import Utility
from captime.utilities.formula import parse_duration

Target = Callable[..., Any] | Sequence[str] | Mapping[str, Any]
Configurations = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]
Instances = str | Iterable[Any] | Mapping[str, Any]
Files = str | PathLike[str] | Sequence[str | PathLike[str]]

_REFERENCE = re.compile(r"[\w./]+:[\w.]+")


def configure(
    target: Target,
    instances: Instances,
    configurations: Configurations | None = None,
    *,
    space: SpaceLike | None = None,
    utility: Utility | str,
    delta: float = 0.1,
    epsilon: float = 0.1,
    gamma: float | None = None,
    learn_from: Files = (),
    ledger: str | PathLike[str] | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    sampling: str = "shuffle",
    population: str | None = None,
    cpu: float | str | None = None,
    wall: float | str | None = None,
    progress: bool = True,
    client: Any = None,
    interrupted: Callable[[], bool] = never,
    folder: str | PathLike[str] = ".",
    **more: Any,
) -> Result:
    """Find the configuration that is worth most, run real runs for it, and certify it.

    Args:
        target: A function, called as `f(settings, instance, seed)` or with the parameters it names; a command, one word
            per argument, with `{instance}`, `{seed}` and the names of settings in braces; or the `[target]` section of
            a scenario as a dictionary, in which `function` may be the function itself.
        instances: A pattern of file names; a list of files or of Python values; or the `[instances]` section.
        configurations: Settings by name, or a list of settings; or, in their place, a space.
        space: What can be set: the `[space]` section of a scenario as a dictionary, a file that has one or that has
            parameters in another format (docs/spaces.md), a `captime.spaces.Space`, or a `ConfigurationSpace` of
            ConfigSpace.
        utility: What an answer is worth, such as `log-laplace(1, 1)`.
        delta: Allowed probability of a wrong certificate.
        epsilon: Target epsilon; 0 runs until another limit is reached.
        gamma: On a space, the other goal: the best fraction of it that may be missed; 0.1 if it is left
            out, 0 for no such goal.
        learn_from: On a space, ledgers of earlier campaigns with the same target, for the model that proposes
            configurations and nothing else.
        ledger: The file in which every run is recorded, and from which the same call resumes; a temporary one if
            it is left out, named in the result.
        jobs: How many runs are under way at once; as many as there are cores by default.
        seed: Key of everything that is drawn at random. Left out, a fresh one is drawn and recorded in the ledger; a
            call that resumes uses that one. It must not be chosen after a look at results.
        sampling: `shuffle`: every instance once, in random order. `replace`: with replacement, without end; "best" then
            means best on exactly these. Where `instances` is a section, it says so itself.
        population: What the claim is about: `these`, exactly these instances; `drawn`, the distribution that they are a
            fair sample of. Left out, it is `these` where that is possible (docs/population.md says what it needs), else
            `drawn`. Where `instances` is a section, it says so itself.
        cpu: CPU time of the whole campaign, in seconds or as `10m`.
        wall: Wall-clock time of this call, likewise.
        progress: Show it, in terminals and notebooks.
        client: A `distributed.Client`: runs happen on the workers of its cluster, and it stays open afterwards.
        interrupted: Asked between decisions; True stops with the certificate held so far. The first Ctrl-C does the
            same: the call returns its result, and `result.outcome.stopped` is `interrupted`. The second one raises
            KeyboardInterrupt.
        folder: Relative names are seen from here.
        more: Any other field of a scenario, such as `procedure`, `options`, `order`.

    Returns:
        The certificate and everything that led to it.
    """
    _check_kinds(more, configurations=configurations, space=space, utility=utility, learn_from=learn_from)
    if (configurations is None) == (space is None):
        found = "neither" if space is None else "both"
        raise ScenarioError(
            f"configure was given {found} of configurations and space; expected one of them: a list of candidates, or "
            'a space such as {"steps": {"type": "int", "low": 1, "high": 100}}'
        )
    stop = {"epsilon": epsilon, "gamma": gamma, "cpu": _time(cpu), "wall": _time(wall)}
    document: dict[str, Any] = {
        "utility": str(utility),
        "delta": delta,
        **({} if seed is None else {"seed": seed}),
        "jobs": "auto" if jobs is None else jobs,
        **({"configurations": configurations} if space is None else {"space": section_for(space, folder)}),
        "stop": {name: value for name, value in stop.items() if value is not None},
        **more,
    }
    if client is not None:
        document["executor"] = {"kind": "dask", **document.get("executor", {})}
    function, document["target"] = _target(target)
    values, document["instances"] = _instances(instances, sampling, to_a_function="function" in document["target"])
    if population is not None and not isinstance(instances, Mapping):
        document["instances"]["population"] = population
    if function is not None:
        del document["target"]["function"]
    asked = scenario_of(
        _plain(document),
        folder,
        function=function,
        values=values,
        originals={} if function is None else _originals(configurations),
        name="configure",
    )
    if ledger is not None:
        asked = as_begun(asked, Path(ledger))
    spec = asked.build()
    question = spec.question
    earlier = lessons_of(_paths(learn_from), question)
    with (
        ctrl_c_asks(interrupted, "captime.configure") as interrupted,  # noqa: PLR1704 (whatever was asked for, and Ctrl-C)
        _ledger_at(ledger, "campaign.ledger") as path,
        (campaign := Assembly.of(spec, path, question, jobs=jobs)).slots(interrupted, client) as at_work,
        _progress_of(campaign, "captime.configure", wanted=progress) as view,
    ):
        result = at_work.run(view, earlier)
    if result.trouble is not None:
        # The certificate is worth having all the same, so it is returned.
        warn(str(result.trouble), RuntimeWarning, stacklevel=2)
    return Result.of(replace(result, scenario=asked))


def validate(
    result: CampaignResult,
    instances: Instances | int,
    *,
    configs: Sequence[str] | None = None,
    captime: float | str | None = None,
    delta: float = 0.1,
    ledger: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
    client: Any = None,
    interrupted: Callable[[], bool] = never,
) -> Validation:
    """Run chosen configurations on held-out instances, as `captime validate` does for a scenario.

    Args:
        result: What `configure` has returned.
        instances: A pattern of file names; a list of files, or of values like those that `configure` was given; where
            instances are generated, how many further ones to make.
        configs: Names of the configurations to run; the recommended one and the default (the configuration called
            `default`, or else the first one) if it is left out. The first is compared with all others.
        captime: For every run, in seconds or as `10s`; where an answer is worth 0.01 if it is left out.
        delta: Allowed probability that any of the intervals is wrong.
        ledger: Where these runs are recorded, and from which the same call resumes.
        jobs: How many runs are under way at once; as in `configure` by default.
        progress: Show it.
        client: As in `configure`; a campaign that ran on the workers of a client is validated on those of one.
        interrupted: Asked between runs; True stops.

    Returns:
        What every configuration is worth there, and by how much the first beats each of the others, with intervals.
    """
    if result.scenario is None:
        raise ScenarioError("validate: this result is not of captime.configure; use `captime validate` on its ledger")
    if isinstance(configs, str):
        raise _wrong("configs", configs, f"a list of names, such as [{configs!r}]", "validate")
    check_delta(delta)
    listed = result.question.configs
    wanted = [result.config_name, _default_of(listed)] if configs is None else list(configs)
    rows = [_row_of(name, listed) for name in dict.fromkeys(wanted)]
    tested = only(_held_out(result, instances), rows)
    count = instances if isinstance(instances, int) else None
    spec = tested.build()
    question = replace(spec.question, proposer=None)
    seconds = usual_captime(question) if captime is None else parse_duration(str(captime), "captime")
    n_runs = len(rows) * (count or tested.stream.length or 0)
    with (
        ctrl_c_asks(interrupted, "captime.validate") as interrupted,  # noqa: PLR1704 (whatever was asked for, and Ctrl-C)
        _ledger_at(ledger, "validation.ledger") as path,
        (campaign := Assembly.of(spec, path, question, jobs=jobs)).slots(interrupted, client) as at_work,
        _progress_of(campaign, "captime.validate", n_runs, wanted=progress) as view,
    ):
        measured = at_work.measure(view, captime=seconds, instances=count)
    if measured.trouble is not None:
        # Unlike a certificate, intervals on the runs made so far would look like the answer that was asked for.
        raise measured.trouble
    table, unfinished = measured_runs(path, "held-out", seconds, unbroken=True)
    refuse_if_silent(table, question)
    return validation_of(table, question.utility, delta, unfinished)


@contextmanager
def _ledger_at(given: str | PathLike[str] | None, name: str) -> Iterator[Path]:
    """Give the place of a ledger, a folder of its own if none was named; a call that is refused leaves no folder."""
    if given is not None:
        yield Path(given)
        return
    folder = Path(mkdtemp(prefix="captime-"))
    try:
        yield folder / name
    finally:
        with suppress(OSError):  # not empty: the ledger is in it
            folder.rmdir()


def _held_out(result: CampaignResult, instances: Instances | int) -> Scenario:
    """Return the scenario of a campaign on other instances."""
    scenario, where = result.scenario, "validate: instances"
    assert scenario is not None  # noqa: S101 (the caller has looked)
    if isinstance(instances, int):
        with LedgerReader(result.record) as reader:
            used = 1 + max((sample.position for sample in reader.sample_rows()), default=-1)
        return on_generated(scenario, used, where)
    if isinstance(instances, str | PathLike):
        return on_files(scenario, fspath(instances), where)
    if not _is_list(instances):
        raise _wrong("instances", instances, "file names, values, or how many to make", "validate")
    listed = list(instances)
    if scenario.values is not None or scenario.wishes.instances.values is not None:
        return on_values(scenario, listed, where)
    return on_files(scenario, [_escaped(fspath(each)) for each in listed], where)


def _row_of(name: str, listed: Sequence[ConfigRow]) -> ConfigRow:
    found = next((row for row in listed if row.name == name), None)
    if found is None:
        known = [row.name for row in listed]
        raise ScenarioError(
            f"validate: configs names {name!r}{did_you_mean(name, known) or '; there are ' + ', '.join(known[:8])}"
        )
    return found


def _default_of(listed: Sequence[ConfigRow]) -> str:
    """Return the name of the configuration called default, or else of the first."""
    return next((row.name for row in listed if row.name == "default"), listed[0].name)


def _progress_of(
    campaign: Assembly, title: str, n_runs: int | None = None, *, wanted: bool
) -> AbstractContextManager[Observer | None]:
    return shown_progress(campaign, title, n_runs=n_runs) if wanted else nullcontext()


def _check_kinds(
    more: Mapping[str, Any], *, configurations: object, space: object, utility: object, learn_from: object
) -> None:
    """Refuse keywords that do not exist, and values of a kind that cannot be meant, in the words of Python."""
    for name in more:
        if name not in ScenarioModel.model_fields:
            raise ScenarioError(f"configure: {_unknown(name)}")
    if not (isinstance(utility, str) or hasattr(utility, "inverse")):
        expected = "a text such as 'log-laplace(1, 1)', or what captime.from_callable makes of a function"
        raise _wrong("utility", utility, expected)
    if not (configurations is None or _is_table(configurations) or _is_list_of_tables(configurations)):
        found = "a dict of settings by name, such as {'default': {'steps': 10}}, or a list of such settings"
        raise _wrong("configurations", configurations, found)
    if not (space is None or isinstance(space, Mapping | str | PathLike | Space)):
        raise _wrong("space", space, "a dict such as {'steps': {'type': 'int', 'low': 1, 'high': 100}}, or a file")
    if not (isinstance(learn_from, str | PathLike) or _is_list(learn_from)):
        raise _wrong("learn_from", learn_from, "a ledger, or a list of ledgers")


def _unknown(name: str) -> str:
    """Return what to say of a keyword that does not exist."""
    if name in TargetFields.model_fields:
        return f"{name} is a field of the target; write target={{'function': solve, '{name}': …}}, or 'command'"
    if name in InstanceFields.model_fields:
        return f"{name} is a field of the instances; write instances={{'files': '*.cnf', '{name}': …}}"
    own = [each for each in signature(configure).parameters if each != "more"]
    known = [*own, *(each for each in ScenarioModel.model_fields if each not in own)]
    return f"{name} is no keyword of configure{did_you_mean(name, known) or '; there are ' + ', '.join(known)}"


def _target(target: object) -> tuple[Callable[..., Any] | None, dict[str, Any]]:
    """Return the function that was given as an object, and what would stand under `[target]`."""
    if isinstance(target, Mapping):
        function = target.get("function")
        return (function if callable(function) else None), dict(target)
    if callable(target):
        return target, {"function": target}
    if _is_list(target):
        return None, {"command": [fspath(word) if isinstance(word, PathLike) else word for word in target]}
    expected = "a function, or a command as a list with one word per argument"
    if isinstance(target, str) and _REFERENCE.fullmatch(target):
        section = {"function": target.replace(".py:", ":")}
        raise _wrong("target", target, f"{expected}. A function is named by {section}")
    if isinstance(target, str):
        raise _wrong("target", target, f"{expected}, such as {target.split()!r}")
    raise _wrong("target", target, f"{expected}, such as ['minisat', '{{instance}}']")


def _instances(instances: object, sampling: str, *, to_a_function: bool) -> tuple[Sequence[Any] | None, dict[str, Any]]:
    """Return the instances that were given as objects, and what would stand under `[instances]`."""
    if isinstance(instances, Mapping):
        return None, dict(instances)
    if isinstance(instances, str | PathLike):
        return None, {"files": fspath(instances), "sampling": sampling}
    if not isinstance(instances, Iterable) or isinstance(instances, bytes):
        raise _wrong("instances", instances, "a pattern of file names, a list of files or values, or a dict")
    listed = list(instances)
    if to_a_function:
        return listed, {"sampling": sampling}
    for number, each in enumerate(listed):
        if not isinstance(each, str | PathLike):
            expected = f"a file for a command; values are passed on with instances={{'values': [{each!r}, …]}}"
            raise _wrong(f"instances[{number}]", each, expected)
    return None, {"files": [_escaped(fspath(each)) for each in listed], "sampling": sampling}


def _wrong(name: str, found: object, expected: str, function: str = "configure") -> ScenarioError:
    return ScenarioError(f"{function}: {name} is {shown(found)} ({type(found).__name__}); expected {expected}")


def _is_list(value: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | set | frozenset)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(_is_table, value))


def _plain(value: Any) -> Any:
    """Return a section with Python's own numbers, lists and dicts in place of NumPy's, tuples and other mappings."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _originals(configurations: Configurations | None) -> dict[str, dict[str, Any]]:
    """Return copies of settings by the names of their configurations: what the caller changes later changes no run."""
    if configurations is None:
        return {}
    if isinstance(configurations, Mapping):
        named = list(configurations.items())
    else:
        named = [(str(each.get("name", place)), each) for place, each in enumerate(configurations, start=1)]
    return {
        str(name): {str(key): value for key, value in deepcopy(dict(settings)).items() if key != "name"}
        for name, settings in named
        if isinstance(settings, Mapping)
    }


def _paths(files: Files) -> list[Path]:
    return [Path(files)] if isinstance(files, str | PathLike) else [Path(each) for each in files]


def _time(value: float | str | None) -> float | str | None:
    if isinstance(value, int | float | np.number) and not value > 0:
        raise ScenarioError(f"a budget of {value!r} s buys nothing; use a positive number of seconds, or 10m")
    return value


def _escaped(path: str) -> str:
    """Return a file name as a pattern that matches just itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
