"""What is visible in a container, and the options to start it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import active_disks
from iopstui.model.block.device import BlockDevice
from iopstui.preflight import doctor
from iopstui.preflight import doctor as container
from iopstui.preflight.doctor import inspect_container

STATS = "   8       0 sda 5 0 8 0 0 0 0 0 0 0 0\n   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """A container without devices; it sees /proc/diskstats, which the host shares with all
    containers."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("container", raising=False)
    made = Roots.under(tmp_path)
    (made.proc / "self/ns").mkdir(parents=True)
    (made.proc / "diskstats").write_text(STATS)
    namespaces(made, "1", "2")
    for name in ("dev", "run", "sys"):
        (tmp_path / name).mkdir()
    return made


def namespaces(roots: Roots, pid: str, cgroup: str) -> None:
    for name, number in (("pid", pid), ("cgroup", cgroup)):
        (roots.proc / "self/ns" / name).unlink(missing_ok=True)
        (roots.proc / "self/ns" / name).symlink_to(f"{name}:[{number}]")


def see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str) -> None:
    """Add devices to /sys; those whose name ends in "1" also get a node."""
    disks = {
        name: BlockDevice(name, str(tmp_path / "dev" / name), 8, n, "disk", 1 << 30)
        for n, name in enumerate(names)
    }
    for name in names:
        if name.endswith("1"):
            (tmp_path / "dev" / name).touch()
    monkeypatch.setattr(container, "read_devices", lambda roots: disks)


def test_with_nothing_mounted_everything_is_named(roots: Roots) -> None:
    (roots.run / ".containerenv").touch()
    check = doctor._container(roots)
    assert check is not None and check.state == doctor.LACKS
    assert check.message.startswith(
        "Podman container: 1 disks in /proc/diskstats, 0 devices in /sys, 0 of them in /dev; only "
        "its own programs and only its own cgroup. Not shown: disks' queues"
    )
    for how in ("-v /sys:/sys:ro", "--pid=host", "--cgroupns=host"):
        assert how in check.fix
    assert "--device" not in check.fix, "no node is missing for a device that is not seen"
    with pytest.raises(UsageError) as told:
        active_disks({}, roots)
    assert "/sys:/sys:ro" in told.value.hint


def test_nodes_that_are_missing(
    roots: Roots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch, tmp_path, "sda", "sdb1")
    sight = inspect_container(roots)
    assert sight is not None
    assert (sight.device_count, sight.node_count) == (2, 1)
    assert next(how for _, how in sight.missing_features()).startswith("--device=")


def test_one_that_sees_all_lacks_nothing(
    roots: Roots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch, tmp_path, "sda1")
    namespaces(roots, "4026531836", "4026531835")
    assert inspect_container(roots) is None, "that is as good as the machine itself"
    namespaces(roots, "4026531836", "7")
    check = doctor._container(roots)
    assert check is not None and "--cgroupns=host" in check.fix and "--pid" not in check.fix


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("run/.containerenv", "Podman container"),
        (".dockerenv", "Docker container"),
        ("run/systemd/container", "lxc container"),
        ("else", "container"),
    ],
)
def test_what_it_is(place: str, kind: str, roots: Roots, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("lxc\n")
    sight = inspect_container(roots)
    assert sight is not None and sight.kind == kind


def test_in_kubernetes(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    sight = inspect_container(roots)
    assert sight is not None and sight.kind == "Kubernetes container"
