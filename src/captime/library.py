"""`captime.configure`: a campaign from Python in one call, with a function or a command as its target."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from captime.campaign.executors import executor_of
from captime.campaign.from_parts import manner_of, question_of
from captime.campaign.identity import as_begun
from captime.campaign.result import CampaignResult
from captime.campaign.run import run_campaign
from captime.errors import ScenarioError
from captime.report.campaign_view import campaign_view
from captime.scenario import scenario_of
from captime.utilities import Utility

Target = Callable[..., Any] | Sequence[str] | Mapping[str, Any]
Configurations = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]
Instances = str | Sequence[Any] | Mapping[str, Any]


def _never() -> bool:
    return False


def configure(
    target: Target,
    instances: Instances,
    configurations: Configurations,
    *,
    utility: Utility | str,
    delta: float = 0.1,
    epsilon: float = 0.1,
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
        configurations: Settings by name, or a list of settings.
        utility: What an answer is worth, such as `log-laplace(1, 1)`.
        delta: Allowed probability of a wrong certificate.
        epsilon: Stop once the answer is within this of the best; 0 for never.
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
    stop = {"epsilon": epsilon, "cpu": _time(cpu), "wall": _time(wall)}
    document: dict[str, Any] = {
        "utility": str(utility),
        "delta": delta,
        "seed": seed,
        "jobs": "auto" if jobs is None else jobs,
        "configurations": configurations,
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
    with (
        executor_of(parts, path, client, jobs) as make,
        campaign_view(question.names, epsilon, "captime.configure", quiet=not progress, ledger=path) as view,
    ):
        return run_campaign(
            question, path, manner_of(parts), observer=view, interrupted=interrupted, make_executor=make
        )


def _time(value: float | str | None) -> float | str | None:
    if isinstance(value, int | float) and not value > 0:
        raise ScenarioError(f"a budget of {value!r} s buys nothing; say a positive number of seconds, or 10m")
    return value


def _escaped(path: str) -> str:
    """A file name as a pattern that matches just itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
