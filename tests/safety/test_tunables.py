"""Settings are changed in a tree of files; what a kernel would refuse is played by hand."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from trees import PCI, Tree, virtio_disk

from iopstui.errors import IopstuiError, Missing, UsageError
from iopstui.linux.devices.sysfs import read_devices
from iopstui.model.block.device import BlockDevice
from iopstui.safety import journal, tunables
from iopstui.safety.tunables import Tunables, read_tunable, restore_abandoned

Kernel = Callable[[Path, str], None]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    disk = virtio_disk(tree)
    (tree.roots.sys / "block").mkdir()
    (tree.roots.sys / "block/vda").symlink_to(disk)
    tree.attributes(disk, queue__nomerges="0", queue__read_ahead_kb="128", queue__iostats="1")
    for irq in range(33, 38):
        tree.proc(f"irq/{irq}/smp_affinity_list", "0-3\n")
    return tree


@pytest.fixture
def disk(tree: Tree) -> BlockDevice:
    return read_devices(tree.roots)["vda"]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """What the kernel does with a written value; the last one given counts."""
    does: list[Kernel] = [lambda path, value: _set(path, value)]
    monkeypatch.setattr(tunables, "_write", lambda path, value: does[-1](path, value))
    return does


def _set(path: Path, value: str) -> None:
    if path.name != "scheduler":
        path.write_text(value + "\n")
        return
    names = [word.strip("[]") for word in path.read_text().split()]
    path.write_text(" ".join(f"[{n}]" if n == value else n for n in names) + "\n")


def refuses(number: int) -> Kernel:
    def write(path: Path, value: str) -> None:
        raise OSError(number, os.strerror(number))

    return write


def queue(tree: Tree, name: str) -> Path:
    return tree.roots.sys / "block/vda/queue" / name


def notes() -> list[Path]:
    return sorted(journal.state_directory().glob("settings-*.json"))


# -- changing


def test_a_change_is_read_back_and_put_back(tree: Tree, disk: BlockDevice) -> None:
    settings = Tunables(tree.roots)
    change = settings.set(disk, "rq_affinity", "2")
    assert (change.before, change.now, change.adjusted) == ("1", "2", False)
    assert queue(tree, "rq_affinity").read_text().startswith("2")
    assert settings.changed and len(notes()) == 1
    assert settings.restore() == []
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"
    assert not settings.changed and notes() == []
    assert settings.restore() == []


def test_the_value_is_on_disk_before_the_first_change(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    seen: list[object] = []
    kernel.append(lambda path, value: seen.append(json.loads(notes()[0].read_text())["settings"]))
    with pytest.raises(UsageError):  # nothing was written, so the value stays
        Tunables(tree.roots).set(disk, "rq_affinity", "2")
    (settings,) = seen
    assert isinstance(settings, list) and settings[0]["value"] == "1"


def test_the_first_value_is_remembered_not_a_later_one(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    settings = Tunables(tree.roots)
    for value in ("2", "0", "2"):
        settings.set(disk, "rq_affinity", value)
    settings.restore()
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"


def test_what_the_kernel_made_of_a_value_is_told(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    kernel.append(lambda path, value: path.write_text("4\n") and None)
    change = Tunables(tree.roots).set(disk, "nr_requests", "2")
    assert (change.asked, change.now, change.adjusted) == ("2", "4", True)


def test_a_value_that_is_accepted_and_ignored_is_a_refusal(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    kernel.append(lambda path, value: None)
    with pytest.raises(UsageError, match="left it at 1"):
        Tunables(tree.roots).set(disk, "rq_affinity", "3")


HOST = "In a container or with a read-only /sys: run iopstui on the host."


@pytest.mark.parametrize(
    ("name", "number", "kind", "says", "hint"),
    [
        ("rq_affinity", errno.EINVAL, UsageError,
         "The kernel refuses rq_affinity=9 for vda: Invalid argument. It takes 0, 1, 2.", ""),
        ("nr_requests", errno.EINVAL, UsageError,
         "The kernel refuses nr_requests=9 for vda: Invalid argument.", ""),
        ("rq_affinity", errno.EIO, UsageError,
         "The kernel refuses rq_affinity=9 for vda: Input/output error. It takes 0, 1, 2.", ""),
        ("irq/34", errno.EINVAL, UsageError,
         "The kernel refuses irq/34=9 for vda: Invalid argument.", ""),
        ("rq_affinity", errno.EROFS, Missing, "{} can't be written: Read-only file system.", HOST),
        ("rq_affinity", errno.EACCES, Missing, "{} can't be written: Permission denied.", HOST),
        ("irq/34", errno.EIO, UsageError,  # Linux 6.1
         "The kernel manages interrupt 34 itself: its CPUs can't be chosen.", ""),
        ("irq/34", errno.EPERM, UsageError,  # Linux 6.12
         "The kernel manages interrupt 34 itself: its CPUs can't be chosen.", ""),
    ],
)  # fmt: skip
def test_refusals_in_words(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel], name: str, number: int,
    kind: type[IopstuiError], says: str, hint: str,
) -> None:  # fmt: skip
    kernel.append(refuses(number))
    settings = Tunables(tree.roots)
    with pytest.raises(kind) as caught:
        settings.set(disk, name, "9")
    assert caught.value.message == says.format(queue(tree, name))
    assert caught.value.hint == hint
    kernel.pop()
    assert settings.restore() == [] and notes() == []


def test_a_managed_interrupt_shows_in_its_mode(
    tree: Tree, disk: BlockDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree.roots.proc / "irq/34/smp_affinity_list"
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda where, mode: False)
    with pytest.raises(UsageError, match="manages interrupt 34 itself"):
        Tunables(tree.roots).set(disk, "irq/34", "1")


def test_not_root_is_told_the_command_that_would_do_it(
    tree: Tree, disk: BlockDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda where, mode: False)
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(Missing) as error:
            Tunables(tree.roots).set(disk, "rq_affinity", "2")
    assert error.value.message == "Changing rq_affinity of vda needs root."
    path = queue(tree, "rq_affinity")
    assert error.value.hint == f"Run iopstui with sudo, or: echo 2 | sudo tee {path}"
    assert notes() == []


def test_root_in_a_container_without_a_writable_sys(
    tree: Tree, disk: BlockDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda where, mode: False)
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(Missing) as error:
            Tunables(tree.roots).set(disk, "rq_affinity", "2")
    path = queue(tree, "rq_affinity")
    told = f"rq_affinity of vda can't be changed: {path} is not writable here."
    assert (error.value.message, error.value.hint) == (told, HOST)


@pytest.mark.parametrize("name", ["nr_zones", "../../../etc/passwd", "discard_max_bytes", ""])
def test_only_known_settings_are_touched(tree: Tree, disk: BlockDevice, name: str) -> None:
    with pytest.raises(UsageError) as error:
        Tunables(tree.roots).set(disk, name, "0")
    assert error.value.message == f"{name} is not a tunable that can be changed."
    assert error.value.hint == (
        "Known: rq_affinity, scheduler, nomerges, nr_requests, wbt_lat_usec, read_ahead_kb, "
        "max_sectors_kb, iostats, irq/NUMBER"
    )


def test_another_device_s_interrupt_is_not_touched(tree: Tree, disk: BlockDevice) -> None:
    with pytest.raises(UsageError, match=r"99 is not one of vda's \(33, 34, 35, 36, 37\)"):
        Tunables(tree.roots).set(disk, "irq/99", "0")


def test_a_device_that_lacks_a_setting(tree: Tree, disk: BlockDevice) -> None:
    queue(tree, "nr_requests").unlink()
    with pytest.raises(UsageError, match="vda has no nr_requests"):
        Tunables(tree.roots).set(disk, "nr_requests", "64")


def test_a_partition_has_its_disk_s_queue(tree: Tree, kernel: list[Kernel]) -> None:
    tree.partition(tree.roots.sys / f"{PCI}7.0/virtio5/block/vda", 1, "254:1")
    part = read_devices(tree.roots)["vda1"]
    Tunables(tree.roots).set(part, "rq_affinity", "2")
    assert queue(tree, "rq_affinity").read_text().strip() == "2"


def test_a_setting_of_a_disk_that_is_gone(tree: Tree, disk: BlockDevice) -> None:
    (tree.roots.sys / "block/vda").unlink()
    with pytest.raises(UsageError, match="vda is gone: the kernel doesn't list it any more"):
        Tunables(tree.roots).set(disk, "rq_affinity", "2")


def test_no_note_no_change(
    tree: Tree, disk: BlockDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    settings = Tunables(tree.roots)
    with pytest.raises(Missing, match="present value can't be saved first") as error:
        settings.set(disk, "rq_affinity", "2")
    assert error.value.hint == "Set XDG_STATE_HOME to a directory of yours."
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"
    assert not settings.changed


# -- putting back


def scheduler_resets(path: Path, value: str) -> None:
    _set(path, value)
    if path.name == "scheduler":
        path.with_name("nr_requests").write_text("64\n" if value == "bfq" else "256\n")
        path.with_name("wbt_lat_usec").write_text("0\n" if value == "bfq" else "2000\n")


def test_the_scheduler_first_then_what_it_reset(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    queue(tree, "nr_requests").write_text("100\n")
    queue(tree, "wbt_lat_usec").write_text("75000\n")
    written: list[str] = []

    def watched(path: Path, value: str) -> None:
        written.append(path.name)
        scheduler_resets(path, value)

    kernel.append(watched)
    settings = Tunables(tree.roots)
    settings.set(disk, "nr_requests", "50")
    settings.set(disk, "scheduler", "bfq")
    del written[:]
    assert settings.restore() == []
    assert written[0] == "scheduler" and set(written[1:]) == {"nr_requests", "wbt_lat_usec"}
    assert read_tunable(disk, "scheduler", tree.roots) == "none"
    assert read_tunable(disk, "nr_requests", tree.roots) == "100"
    assert read_tunable(disk, "wbt_lat_usec", tree.roots) == "75000"


def test_an_interrupt_shared_by_two_disks_gets_its_first_value_back(
    tree: Tree, kernel: list[Kernel]
) -> None:
    second = tree.disk("vdb", f"{PCI}7.0/virtio5/block", "254:16")
    tree.hctx(second, 0, "0")
    settings = Tunables(tree.roots)
    for name in ("vda", "vdb"):
        settings.set(read_devices(tree.roots)[name], "irq/34", "1")
    assert settings.restore() == []
    assert (tree.roots.proc / "irq/34/smp_affinity_list").read_text().strip() == "0-3"


def test_what_can_t_be_put_back_is_told_with_the_command_and_kept(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "rq_affinity", "2")
    kernel.append(refuses(errno.EROFS))
    (problem,) = settings.restore()
    assert problem == (
        "vda: rq_affinity is Read-only file system, not 1 as before; restore it with: "
        f"echo 1 | sudo tee {queue(tree, 'rq_affinity')}"
    )
    assert settings.changed and notes()
    kernel.pop()
    assert settings.restore() == [] and not notes()
    assert not settings.gone


def test_of_a_disk_that_is_gone_nothing_is_put_back(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "rq_affinity", "2")
    shutil.rmtree(queue(tree, "rq_affinity").parent)
    assert settings.restore() == [] and settings.gone
    assert not notes()


def left_by_a_crash(**changes: str) -> None:
    (note,) = notes()
    content = json.loads(note.read_text()) | changes
    content["owner"]["start"] = -1  # the process number belongs to another process now
    note.write_text(json.dumps(content))


def test_a_crash_is_undone_by_the_next_start(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    kernel.append(scheduler_resets)
    Tunables(tree.roots).set(disk, "scheduler", "bfq")
    assert restore_abandoned(tree.roots) == ([], [])  # its owner runs
    left_by_a_crash()
    done, failed = restore_abandoned(tree.roots)
    assert failed == [] and "vda: scheduler is none again" in done
    assert read_tunable(disk, "nr_requests", tree.roots) == "256"
    assert notes() == [] and restore_abandoned(tree.roots) == ([], [])


def test_another_disk_of_that_name_is_left_alone(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    Tunables(tree.roots).set(disk, "rq_affinity", "2")
    tree.sys(f"{PCI}7.0/virtio5/block/vda/diskseq", "7\n")
    left_by_a_crash()
    assert restore_abandoned(tree.roots) == ([], []) and notes() == []
    assert read_tunable(disk, "rq_affinity", tree.roots) == "2"


def test_a_new_start_of_the_machine_has_undone_it(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    Tunables(tree.roots).set(disk, "rq_affinity", "2")
    left_by_a_crash(boot="another")
    assert restore_abandoned(tree.roots) == ([], []) and notes() == []
    assert read_tunable(disk, "rq_affinity", tree.roots) == "2"


def test_a_disk_that_is_gone_is_forgotten(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    Tunables(tree.roots).set(disk, "rq_affinity", "2")
    queue(tree, "rq_affinity").unlink()
    left_by_a_crash()
    assert restore_abandoned(tree.roots)[1] == [] and notes() == []


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "passwd", "path": "/etc/passwd", "value": "x", "device": "vda"},
        {"name": "rq_affinity", "path": "/etc/passwd", "value": "x", "device": "vda"},
        {"name": "irq/3", "path": "/etc/passwd", "value": "x", "device": "vda"},
        {"name": "rq_affinity", "path": "/etc/queue/rq_affinity", "value": 1, "device": "vda"},
        "nonsense",
    ],
)
def test_a_note_is_believed_only_about_settings(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel], entry: object
) -> None:
    touched: list[Path] = []
    kernel.append(lambda path, value: touched.append(path))
    journal.write_note("settings", {"settings": [entry], "boot": journal.boot_id()})
    left_by_a_crash()
    restore_abandoned(tree.roots)
    assert touched == []


def test_two_sessions_do_not_turn_one_knob(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Tunables(tree.roots)
    first.set(disk, "rq_affinity", "2")
    # the other iopstui is this very process by another number
    monkeypatch.setattr(journal.os, "getpid", lambda: 1)
    second = Tunables(tree.roots)
    with pytest.raises(UsageError, match="another iopstui"):
        second.set(disk, "rq_affinity", "0")
    assert not second.changed
    second.set(disk, "nomerges", "2")
    assert second.restore() == [] and first.restore() == []
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"
