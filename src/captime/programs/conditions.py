"""Under which conditions runs take place: limits, directory, environment. The same for every configuration."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from captime.supervision.messages import Clock, Fingerprint, FunctionCall, Launch, Preparation, StopValue

INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "JAVA_HOME",
)
"""What a program inherits of the environment by default: enough to be found and to run."""

# Beyond the factor, for programs whose captime is shorter than what starting them takes.
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """Limits and surroundings of a run.

    Attributes:
        clock: The clock of captimes: `cpu`, the CPU time of the whole process tree, or `wall`.
        memory: Bytes for the whole tree; None for no limit.
        output: Bytes of stdout and stderr together.
        disk: Bytes that the run's own directory may hold; None for no limit.
        processes: How many processes the tree may have; None for no limit.
        directory: Where it runs; None for a fresh directory per run.
        environment: The whole environment of the program.
        files: Further files of the program that must not change, by the names they were found under.
        wall_factor: A run is stopped after this many times its captime on the wall clock, and a second.
    """

    clock: Clock = "cpu"
    memory: int | None = None
    output: int = 1 << 30
    disk: int | None = None
    processes: int | None = None
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Fingerprint] = field(default_factory=dict)
    wall_factor: float = 5.0

    def launch(
        self,
        number: int,
        tag: str,
        captime: float,
        *,
        what: tuple[str, ...] | FunctionCall,
        preparation: Preparation | None,
        guarded: tuple[Fingerprint, ...],
        stdin: str | None = None,
        patterns: Mapping[str, str] | None = None,
        output_file: str | None = None,
        verifier: tuple[str, ...] | None = None,
        verifier_timeout: float = 60.0,
        exit_codes: tuple[int, ...] | None = None,
        until: StopValue | None = None,
    ) -> Launch:
        """Return a run of a command or a call under these conditions; the fields are those of `Launch`."""
        return Launch(
            number=number,
            argv=() if isinstance(what, FunctionCall) else what,
            call=what if isinstance(what, FunctionCall) else None,
            environment=self.environment,
            directory=self.directory,
            captime=captime,
            clock=self.clock,
            wall_limit=self.wall_limit(captime),
            memory_limit=self.memory,
            output_limit=self.output,
            disk_limit=self.disk,
            processes_limit=self.processes,
            stdin=stdin,
            patterns=patterns or {},
            output_file=output_file,
            preparation=preparation,
            guarded=(*guarded, *self.files.values()),
            tag=tag,
            verifier=verifier,
            verifier_timeout=verifier_timeout,
            exit_codes=exit_codes,
            until=until,
        )

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the further files, by name."""
        return {name: fingerprint[-1] for name, fingerprint in self.files.items()}

    def wall_limit(self, captime: float) -> float:
        """Wall-clock seconds after which a run with that captime is stopped even if it sleeps."""
        if self.clock == "wall" or math.isinf(captime):
            return math.inf
        return captime * self.wall_factor + _GRACE


def environment_of(inherit: Sequence[str] | None, values: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program: what it inherits by name (None for the usual few), and what is set for it."""
    names = INHERITED if inherit is None else tuple(os.environ) if "*" in inherit else inherit
    return {name: os.environ[name] for name in names if name in os.environ} | dict(values)
