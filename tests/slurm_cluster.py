"""A Slurm of one node on this machine, in a folder and on ports of its own, that ends with the test."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "scontrol")
PATIENCE = 120.0
# docs/cluster.md shows these lines.
CONFIGURATION = """\
ClusterName=captime
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=30
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=closed Nodes={host} MaxTime=INFINITE State=DOWN
"""


def missing() -> str:
    """What a Slurm of our own would need and this machine does not have; empty if nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None and not Path("/usr/sbin", name).exists()]
    if absent:
        return f"{', '.join(absent)} not installed (on Debian: apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "needs root, for its daemons"


class Slurm:
    """Three daemons.

    Args:
        folder: For all their files; others must be able to enter it.

    Attributes:
        folder: Likewise.
        configuration: The file `slurm.conf`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = folder / "slurm.conf"
        self._daemons: list[subprocess.Popen[bytes]] = []
        folder.chmod(0o755)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        host = socket.gethostname().partition(".")[0]
        controller, node = _free_ports(2)
        self.configuration.write_text(
            CONFIGURATION.format(host=host, folder=folder, controller=controller, node=node), encoding="ascii"
        )

    @property
    def environment(self) -> dict[str, str]:
        """With which all commands of Slurm mean this one."""
        return {"SLURM_CONF": str(self.configuration), "PATH": f"{os.environ['PATH']}:/usr/sbin"}

    def start(self) -> None:
        """Start the daemons, and wait until the node takes jobs."""
        name = f"{self.folder}/munge"
        self._start(
            "munged",
            "--foreground",
            f"--key-file={name}.key",
            f"--socket={name}.socket",
            f"--pid-file={name}.pid",
            f"--log-file={name}.log",
            f"--seed-file={name}.seed",
            "--num-threads=1",
        )
        assert _eventually(Path(f"{name}.socket").exists), "munged does not listen"
        self._start("slurmctld", "-D", "-f", str(self.configuration))
        self._start("slurmd", "-D", "-f", str(self.configuration))
        assert _eventually(lambda: "idle" in self.call("sinfo", "-h", "-o", "%T")), self.said()

    def _start(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("wb") as output:
            self._daemons.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self.environment},
                    start_new_session=True,
                )
            )

    def said(self) -> str:
        """What the daemons have printed, for the message of a test that fails."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.out"))

    def call(self, *command: str, folder: Path | None = None) -> str:
        """What a command of Slurm prints; nothing if it fails."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout if done.returncode == 0 else ""

    def jobs(self, state: str = "") -> list[str]:
        """Numbers of the jobs that are there, in this state if one is named."""
        which: Sequence[str] = ("-t", state) if state else ()
        return self.call("squeue", "-h", "-o", "%i", *which).split()

    def close(self) -> None:
        """Cancel everything and end the daemons."""
        if self._daemons:
            self.call("scancel", "-u", str(os.getuid()))
            _eventually(lambda: not self.jobs(), 60.0)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextmanager
def slurm() -> Iterator[Slurm]:
    """A Slurm, just for this."""
    # Not one of pytest's folders: munge wants to be found by all users.
    folder = Path(mkdtemp(prefix="captime-slurm-", dir="/tmp"))
    made = Slurm(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _eventually(happened: Callable[[], bool], patience: float = PATIENCE) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if happened():
            return True
        time.sleep(0.2)
    return False
