"""Everything there is to tell about a campaign, real or simulated, in one shape: what words and pictures start from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from captime.certificate import Certificate


@dataclass(frozen=True, slots=True)
class Account:
    """What was asked, what came out, and what it rests on.

    Attributes:
        certificate: The statement.
        names: Of the configurations, by index.
        utility: What answers are worth, as text.
        procedure: Who decided.
        options: Its options, as given.
        bound: The bound it used.
        rounds: Decisions taken.
        runs: Executions.
        cost: What it cost, in words.
        left: How many candidates are left.
        stopped: Why it ended, in words.
        rests_on: What the certificate assumes, in words a user can check.
        first_lines: Labelled lines that come before all others, because they change how the rest is to be read.
        more: Further labelled lines.
        pool: How many configurations there are by now, if there may be more than the certificate speaks of.
        seeds: With how many seeds the program runs each instance; 0 if it is given none.
        draws: On a space, how many of those that the certificate speaks of were drawn at random; None if nobody says.
    """

    certificate: Certificate
    names: Sequence[str]
    utility: str
    procedure: str
    options: Mapping[str, object]
    bound: str
    rounds: int
    runs: int
    cost: str
    left: int
    stopped: str
    rests_on: Sequence[str]
    first_lines: Sequence[tuple[str, str]] = ()
    more: Sequence[tuple[str, str]] = ()
    pool: int = 0
    draws: int | None = None
    seeds: int = 0

    @property
    def left_of(self) -> int:
        """Of how many the candidates are left: everybody, also those who came after the certificate's last one."""
        return max(self.pool, self.certificate.n_configs)


def draws_among(origins: Sequence[str], n_configs: int) -> int | None:
    """How many of the first so many were drawn at random; None for a list, where origins do not say it."""
    return sum(origin == "random" for origin in origins[:n_configs]) if "random" in origins else None


def seeds_of(identity: Mapping[str, object]) -> int:
    """Return with how many seeds each instance is run, from what a ledger says was asked; 0 for a program without.

    Of a function nothing is on record but that it repeats itself, so it is taken to be given its seed.
    """
    target, instances = identity.get("target"), identity.get("instances")
    if not isinstance(target, Mapping):
        return 0
    listed = identity.get("configurations")
    entries = listed.get("list") if isinstance(listed, Mapping) else None
    own = [each.get("command") for each in entries or () if isinstance(each, Mapping)]
    words = [word for command in (target.get("command"), *own) if isinstance(command, list | tuple) for word in command]
    given = any("{seed}" in str(word) for word in words) or any(target.get(name) for name in ("function", "wrapper"))
    seeds = instances.get("seeds", 1) if isinstance(instances, Mapping) else 1
    return int(str(seeds)) if given else 0
