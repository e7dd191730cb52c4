"""Runs during which the machine swapped, or slowed its cores down, are flagged."""

from pathlib import Path

import pytest

from captime.campaign.result import disturbing
from captime.supervision import launcher
from captime.supervision.fitness import MachineHealth
from captime.supervision.messages import Launch, Report
from captime.supervision.run import is_idle
from supervised import launch

SWAPS = "Filename Type Size Used Priority\n/dev/vda2 partition 1048572 0 -2\n"


def write(path: Path, text: str) -> None:
    """A file, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


class FakeMachine:
    """A machine whose counters can be turned."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        write(self.proc / "swaps", SWAPS)
        self.swapped(0, 0)
        write(self.proc / "self/cgroup", "0::/user/captime\n")
        for core in range(2):
            self.heated(core, 5)

    def swapped(self, pages_in: int, pages_out: int) -> None:
        """This many pages were swapped since the machine was started."""
        write(self.proc / "vmstat", f"nr_free_pages 100\npswpin {pages_in}\npswpout {pages_out}\npgfault 7\n")

    def heated(self, core: int, times: int, package: int = 0) -> None:
        """A core was slowed down so often."""
        folder = self.sys / f"devices/system/cpu/cpu{core}"
        write(folder / "topology/physical_package_id", f"{package}\n")
        write(folder / "thermal_throttle/core_throttle_count", f"{times}\n")
        write(folder / "thermal_throttle/package_throttle_count", "0\n")

    def health(self, *cores: int) -> MachineHealth:
        """Its counters, as a supervisor reads them."""
        return MachineHealth(cores or (0, 1), self.proc, self.sys)


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """One with two cores."""
    return FakeMachine(tmp_path)


def test_a_quiet_machine_raises_no_flag(machine: FakeMachine) -> None:
    """What happened before a run is not its trouble."""
    machine.swapped(12, 40)
    health = machine.health()
    assert health.since(health.read()) == ()


@pytest.mark.parametrize(("pages_in", "pages_out"), [(1, 0), (0, 1), (30, 40)])
def test_pages_that_were_swapped_during_the_run_are_told(machine: FakeMachine, pages_in: int, pages_out: int) -> None:
    """C10: in either direction."""
    health = machine.health()
    before = health.read()
    machine.swapped(pages_in, pages_out)
    assert health.since(before) == ("swapping",)


def test_a_core_that_was_too_hot_is_told(machine: FakeMachine) -> None:
    """C10: the count of any core that runs may use."""
    health = machine.health()
    before = health.read()
    machine.heated(1, 6)
    assert health.since(before) == ("throttled",)


def test_the_heat_of_a_core_on_which_nothing_runs_is_none_of_our_business(machine: FakeMachine) -> None:
    """A slot that is tied to a core looks at that one."""
    health = machine.health(0)
    before = health.read()
    machine.heated(1, 6)
    assert health.since(before) == ()


def test_on_many_cores_the_packages_are_looked_at(machine: FakeMachine) -> None:
    """Reading 64 counters around every run would cost more than it tells."""
    for core in range(64):
        machine.heated(core, 0, package=core // 32)
    health = machine.health(*range(64))
    before = health.read()
    machine.heated(3, 9)
    assert health.since(before) == ()
    write(machine.sys / "devices/system/cpu/cpu32/thermal_throttle/package_throttle_count", "1\n")
    assert health.since(before) == ("throttled",)


@pytest.mark.parametrize(
    ("own", "counted_in"),
    [
        ("0::/user/captime\n", "user/captime"),
        ("0::/user/captime\n", "user"),
        ("0::/\n", "."),
        ("3:cpu,cpuacct:/docker/abc\n0::/\n", "cpu,cpuacct/docker/abc"),
    ],
    ids=["our group", "the group above", "a container's", "version 1"],
)
def test_a_container_that_used_up_its_share_is_told(machine: FakeMachine, own: str, counted_in: str) -> None:
    """Wherever the limit was set."""
    write(machine.proc / "self/cgroup", own)
    place = machine.sys / "fs/cgroup" / counted_in / "cpu.stat"
    write(place, "usage_usec 9\nnr_periods 3\nnr_throttled 2\nthrottled_usec 0\n")
    health = machine.health()
    before = health.read()
    assert health.since(before) == ()
    write(place, "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 10\n")
    assert health.since(before) == ("throttled",)


def test_a_machine_without_such_counters_is_asked_nothing(tmp_path: Path) -> None:
    """No swap space, no counters of heat, no limit."""
    write(tmp_path / "proc/swaps", SWAPS.splitlines(keepends=True)[0])
    health = MachineHealth((0, 1), tmp_path / "proc", tmp_path / "sys")
    assert health.read() == {}
    assert health.since({}) == ()


def test_a_run_on_a_machine_in_trouble_carries_the_flag(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those that it has anyway."""
    monkeypatch.setattr(launcher, "MachineHealth", lambda _cores: machine.health())
    runner = launcher.Launcher(launcher.SlotPlace("posix", str(tmp_path)), None, None)  # type: ignore[arg-type]  # unused

    def while_it_swaps(wanted: Launch, _folder: str, **_: object) -> Report:
        machine.swapped(0, 3)
        return Report(wanted.number, "exit", exit_code=0, flags=("idle",))

    monkeypatch.setattr(runner, "_run", while_it_swaps)
    assert runner.perform(launch("true")).flags == ("idle", "swapping")
    assert runner.perform(launch("true")).flags == ("idle",)


@pytest.mark.parametrize("flag", ["contended", "swapping", "throttled"])
def test_times_are_doubtful_if_many_runs_were_disturbed(flag: str) -> None:
    """Clearly more than 1 % of them, by more than chance explains; sleeping programs do not count."""
    assert disturbing({flag: 1, "idle": 56}, 56) == []
    assert disturbing({flag: 2}, 56) == []
    assert disturbing({flag: 4}, 56) == [flag]
    assert disturbing({flag: 1}, 2) == []
    assert disturbing({flag: 2}, 2) == [flag]
    assert disturbing({flag: 100}, 10_000) == []
    assert disturbing({flag: 130}, 10_000) == [flag]
    assert disturbing({}, 0) == []


def test_waiting_for_a_core_neither_makes_a_run_idle_nor_hides_that_it_is() -> None:
    """On a busy machine a run that sleeps waits for a core as well, now and then."""
    assert is_idle(5, 100, 0)
    assert is_idle(5, 118, 15)
    assert not is_idle(5, 100, 90)
    assert not is_idle(5, 100, 300)
    assert not is_idle(50, 100, 10)
