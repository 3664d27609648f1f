"""The doctor's report about rights."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iopstui.errors import Missing
from iopstui.linux.kernel_files import Roots
from iopstui.linux.probe.bpf_probe import ProbeUnusable
from iopstui.model.block.device import BlockDevice
from iopstui.model.metrics.probe import PARTS
from iopstui.preflight import doctor
from iopstui.safety import locks

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """A machine whose disks are files; opening one fails with the given error."""
    real = os.open

    def make(euid: int, hidden: tuple[str, ...] = (), **errors: int) -> None:
        disks = {}
        for name in ("loop0", "vda", *hidden):
            (tmp_path / name).touch()
            disks[name] = BlockDevice(name, str(tmp_path / name), 0, 0, "disk", 1 << 30,
                                      hidden=name in hidden)  # fmt: skip

        def opened(path: Any, *words: Any, **more: Any) -> int:
            number = errors.get(Path(os.fspath(path)).name)
            if number is not None:
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *words, **more)

        monkeypatch.setattr(doctor, "read_devices", lambda roots: disks)
        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(os, "geteuid", lambda: euid)

    return make


def raw_reading() -> doctor.Check:
    found = doctor._raw_reading(Roots())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((1, 1), "2 found"),
        ((1, 0, 0), "3 found, 2 of them without a size (iopstui devices --all)"),
    ],
)
def test_devices_that_the_list_leaves_out_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], says: str
) -> None:
    disks = {str(n): BlockDevice(str(n), f"/dev/{n}", 0, 0, "disk", size)
             for n, size in enumerate(sizes)}  # fmt: skip
    monkeypatch.setattr(doctor, "read_devices", lambda roots: disks)
    assert doctor._block_devices(Roots()).message == says


def test_all_can_be_opened(machine: Machine) -> None:
    machine(0)
    assert raw_reading().state == doctor.OK


def test_one_that_opens_says_nothing_of_the_others(machine: Machine) -> None:
    machine(1000, vda=errno.EACCES)
    check = raw_reading()
    assert check.state == doctor.LACKS
    assert "vda (Permission denied)" in check.message and "loop0" not in check.message
    assert "sudo" in check.fix


def test_root_is_not_told_to_become_root(machine: Machine, tmp_path: Path) -> None:
    machine(0, vda=errno.EPERM)
    check = raw_reading()
    assert "vda (Operation not permitted)" in check.message
    assert "sudo" not in check.fix and "--device=" in check.fix
    with pytest.raises(Missing) as told:
        locks.require_rights(str(tmp_path / "vda"), write=False)
    assert "sudo" not in told.value.hint and "--device=" in told.value.hint


def test_a_hidden_path_lacks_nothing(machine: Machine) -> None:
    machine(0, hidden=("nvme1c1n1",), nvme1c1n1=errno.ENOENT)
    assert raw_reading().state == doctor.OK


def test_an_empty_drive_lacks_nothing(machine: Machine) -> None:
    machine(0, vda=errno.ENOMEDIUM)
    assert raw_reading().state == doctor.OK


def test_a_node_that_is_not_there_is_told(machine: Machine) -> None:
    machine(0, vda=errno.ENOENT)
    check = raw_reading()
    assert "vda (No such file or directory)" in check.message
    assert check.fix.startswith("In a container: pass it the device")


@pytest.mark.parametrize(
    ("lacks", "own", "status", "words"),
    [
        (None, PARTS, doctor.OK, "--probe works: latencies"),
        (
            None,
            PARTS[:2],
            doctor.OK,
            "this kernel refuses the programs that count: matrix",
        ),
        (None, "no BTF", doctor.LACKS, "no BTF: no device latencies"),
        (("only root may", "sudo"), PARTS, doctor.LACKS, "only root may: no device latencies"),
    ],
)
def test_what_counts_inside_the_kernel(
    lacks: tuple[str, str] | None,
    own: str | tuple[str, ...],
    status: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "why_no_probe", lambda roots: lacks)

    def loadable_parts(roots: Roots) -> tuple[str, ...]:
        if isinstance(own, str):
            raise ProbeUnusable(own)
        return own

    monkeypatch.setattr(doctor, "loadable_parts", loadable_parts)
    found = doctor._probe(Roots())
    assert found.state == status and words in found.message
    assert found.fix.startswith(
        "sudo" if lacks else "Linux 5.15 or newer" if own == "no BTF" else ""
    )


def test_mounts_that_do_not_answer_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roots = Roots.under(tmp_path)
    assert doctor._shares(roots) is None
    lines = [
        f"{number} 1 0:{number} / {where} rw - {kind} {source} rw"
        for number, (where, kind, source) in enumerate([
            ("/", "ext4", "/dev/vda"), ("/a", "nfs4", "one:/x"), ("/b", "cifs", "//two/y"),
            ("/c", "autofs", "systemd-1"), (str(tmp_path), "fuse.sshfs", "three:"),
        ])
    ]  # fmt: skip
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("\n".join(lines))
    monkeypatch.setattr(doctor, "find_hung_paths", lambda paths: [])
    found = doctor._shares(roots)
    assert found is not None
    assert (found.state, found.message[:8]) == (doctor.OK, "3 found ")
    monkeypatch.setattr(doctor, "find_hung_paths", lambda paths: paths[:2])
    found = doctor._shares(roots)
    assert found is not None
    assert found.state == doctor.LACKS
    assert found.message == "no answer from /a (nfs4 of one:/x), /b (cifs of //two/y) within 5 s"
    assert found.fix.endswith("umount -f -l /a")
    monkeypatch.chdir(tmp_path)
    mount = doctor.read_own_mounts(roots)[-1]
    monkeypatch.setattr(doctor, "find_hung_mount", lambda path, roots: mount)
    direct = doctor._direct(roots)
    assert direct.message == f"{tmp_path}: {tmp_path} (fuse.sshfs of three:) does not answer"


def test_smb_mounts_say_what_can_be_measured(root: Path, tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    assert doctor._smb(roots) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("2 1 0:2 / /a rw - cifs //10.9.0.1/share/x rw")
    lacks = doctor._smb(roots)
    assert lacks is not None and lacks.state == doctor.LACKS
    assert lacks.message.startswith("//10.9.0.1/share/x: /proc/fs/cifs/Stats cannot be read")
    (tmp_path / "proc/fs/cifs").mkdir(parents=True)
    stats = (root / "tests/fixtures/proc/smb-6.12-after.stats").read_bytes()
    (tmp_path / "proc/fs/cifs/Stats").write_bytes(stats)
    found = doctor._smb(roots)
    assert found is not None
    assert (found.state, found.message) == (doctor.OK, "1 share: operations and latencies")
