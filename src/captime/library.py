"""`captime.configure`: a campaign from Python in one call, with a function or a command as its target."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from captime.campaign.earlier import learn_from as lessons_of
from captime.campaign.executors import executor_of
from captime.campaign.from_parts import manner_of, question_of
from captime.campaign.identity import as_begun
from captime.campaign.result import CampaignResult
from captime.campaign.run import run_campaign
from captime.errors import ScenarioError
from captime.report.campaign_view import campaign_view
from captime.scenario import scenario_of
from captime.spaces import Space, section_of
from captime.spaces.formats.toml import scenario_section
from captime.utilities import Utility

Target = Callable[..., Any] | Sequence[str] | Mapping[str, Any]
Configurations = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]
Instances = str | Sequence[Any] | Mapping[str, Any]
SpaceLike = Mapping[str, Any] | str | PathLike[str] | Space
Files = str | PathLike[str] | Sequence[str | PathLike[str]]


def _never() -> bool:
    return False


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
    seed: int = 0,
    sampling: str = "shuffle",
    cpu: float | str | None = None,
    wall: float | str | None = None,
    progress: bool = True,
    client: Any = None,
    interrupted: Callable[[], bool] = _never,
    folder: str | PathLike[str] = ".",
    **more: Any,
) -> CampaignResult:
    """Find the configuration that is worth most, run real runs for it, and certify it.

    Args:
        target: A function, called as `f(settings, instance, seed)` or with the parameters it names; a command, one word
            per argument, with `{instance}`, `{seed}` and the names of settings in braces; or the `[target]` section of
            a scenario as a dictionary.
        instances: A pattern of file names; a list of files or of Python values; or the `[instances]` section.
        configurations: Settings by name, or a list of settings; or, in their place, a space.
        space: What can be set: the `[space]` section of a scenario as a dictionary, a file that has one or that has
            parameters in another format (docs/spaces.md), or a `captime.spaces.Space`.
        utility: What an answer is worth, such as `log-laplace(1, 1)`.
        delta: Allowed probability of a wrong certificate.
        epsilon: Stop once the answer is within this of the best; 0 for never.
        gamma: On a space, the other goal: the share of luckiest configurations that may be missed; 0.1 if it is left
            out, 0 for no such goal.
        learn_from: On a space, ledgers of earlier campaigns with the same target, for the model that proposes
            configurations and nothing else.
        ledger: The file in which every run is recorded, and from which the same call goes on later; a temporary one if
            it is left out, named in the result.
        jobs: How many runs go on at once; as many as there are cores by default.
        seed: Key of everything that is drawn at random.
        sampling: `shuffle`: every instance once, in random order. `replace`: with replacement, without end; "best" then
            means best on exactly these. Where `instances` is a section, it says so itself.
        cpu: CPU time of the whole campaign, in seconds or as `10m`.
        wall: Wall-clock time of this call, likewise.
        progress: Show it, in terminals and notebooks.
        client: A `distributed.Client`: runs happen on the workers of its cluster, and it stays open afterwards.
        interrupted: Asked between decisions; True stops with the certificate held so far.
        folder: Relative names are seen from here.
        more: Any other field of a scenario, such as `procedure`, `options`, `order`.

    Returns:
        The certificate and everything that led to it.
    """
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
        "seed": seed,
        "jobs": "auto" if jobs is None else jobs,
        **({"configurations": configurations} if space is None else {"space": _section(space, folder)}),
        "stop": {name: value for name, value in stop.items() if value is not None},
        **more,
    }
    if client is not None:
        document["executor"] = {"kind": "dask", **document.get("executor", {})}
    function = target if callable(target) else None
    values: Sequence[Any] | None = None
    if isinstance(target, Mapping):
        document["target"] = dict(target)
    elif not callable(target):
        document["target"] = {"command": list(target)}
    if isinstance(instances, Mapping):
        document["instances"] = dict(instances)
    elif isinstance(instances, str):
        document["instances"] = {"files": instances, "sampling": sampling}
    elif function is None:
        document["instances"] = {"files": [_escaped(fspath(each)) for each in instances], "sampling": sampling}
    else:
        values, document["instances"] = list(instances), {"sampling": sampling}
    path = Path(mkdtemp(prefix="captime-")) / "campaign.ledger" if ledger is None else Path(ledger)
    asked = scenario_of(document, folder, function=function, values=values)
    parts = as_begun(asked, path).build()
    question = question_of(parts)
    earlier = lessons_of(_paths(learn_from), question)
    with (
        executor_of(parts, path, client, jobs) as make,
        campaign_view(
            question.names,
            epsilon,
            "captime.configure",
            quiet=not progress,
            ledger=path,
            gamma_goal=question.goal.gamma,
        ) as view,
    ):
        return run_campaign(
            question,
            path,
            manner_of(parts),
            observer=view,
            interrupted=interrupted,
            make_executor=make,
            earlier=earlier,
        )


def _section(space: SpaceLike, folder: str | PathLike[str]) -> dict[str, Any]:
    """What would stand under `[space]`."""
    if isinstance(space, Space):
        return section_of(space)
    if isinstance(space, Mapping):
        return dict(space)
    path = Path(folder).absolute() / space
    # A scenario also says how its space is searched; other files know parameters only.
    return scenario_section(path) if path.suffix.lower() == ".toml" else {"file": str(path)}


def _paths(files: Files) -> list[Path]:
    return [Path(files)] if isinstance(files, str | PathLike) else [Path(each) for each in files]


def _time(value: float | str | None) -> float | str | None:
    if isinstance(value, int | float) and not value > 0:
        raise ScenarioError(f"a budget of {value!r} s buys nothing; say a positive number of seconds, or 10m")
    return value


def _escaped(path: str) -> str:
    """A file name as a pattern that matches just itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
