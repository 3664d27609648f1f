"""Settings are changed in a tree of files; functions of the tests refuse values as a kernel
does."""

from __future__ import annotations

import contextlib
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
from iopstui.safety import journal, queue_snapshot
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
    """What the kernel does with a written value; the last function in the list is used."""
    does: list[Kernel] = [lambda path, value: _set(path, value)]
    monkeypatch.setattr(queue_snapshot, "write_current", lambda path, value: does[-1](path, value))
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
    assert (change.requested, change.now, change.adjusted) == ("2", "4", True)


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
         "The kernel refuses rq_affinity=9 for vda: Invalid argument. Allowed: 0, 1, 2.", ""),
        ("nr_requests", errno.EINVAL, UsageError,
         "The kernel refuses nr_requests=9 for vda: Invalid argument.", ""),
        ("rq_affinity", errno.EIO, UsageError,
         "The kernel refuses rq_affinity=9 for vda: Input/output error. Allowed: 0, 1, 2.", ""),
        ("irq/34", errno.EINVAL, UsageError,
         "The kernel refuses irq/34=9 for vda: Invalid argument.", ""),
        ("rq_affinity", errno.EROFS, Missing, "Cannot write {}: Read-only file system.", HOST),
        ("rq_affinity", errno.EACCES, Missing, "Cannot write {}: Permission denied.", HOST),
        ("irq/34", errno.EIO, UsageError,  # Linux 6.1
         "The kernel manages interrupt 34 itself, so its CPUs cannot be changed.", ""),
        ("irq/34", errno.EPERM, UsageError,  # Linux 6.12
         "The kernel manages interrupt 34 itself, so its CPUs cannot be changed.", ""),
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
    told = f"rq_affinity of vda cannot be changed: {path} is not writable here."
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
    with pytest.raises(UsageError, match="The kernel has no device vda any more"):
        Tunables(tree.roots).set(disk, "rq_affinity", "2")


def test_no_note_no_change(
    tree: Tree, disk: BlockDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    settings = Tunables(tree.roots)
    with pytest.raises(
        Missing, match="cannot be changed, because its present value cannot be saved first"
    ) as error:
        settings.set(disk, "rq_affinity", "2")
    assert error.value.hint == "Set XDG_STATE_HOME to a directory of yours."
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"
    assert not settings.changed


# -- restoring


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
        "vda: rq_affinity is 2, not 1 as before (Read-only file system); restore it with: "
        f"echo 1 | sudo tee {queue(tree, 'rq_affinity')}"
    )
    assert settings.changed and notes()
    kernel.pop()
    assert settings.restore() == [] and not notes()
    assert not settings.device_gone


def test_of_a_disk_that_is_gone_nothing_is_put_back(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "rq_affinity", "2")
    shutil.rmtree(queue(tree, "rq_affinity").parent)
    assert settings.restore() == [] and settings.device_gone
    assert not notes()


def left_by_a_crash(**changes: str) -> None:
    (note,) = notes()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}").endswith(("/queue", "/irq/34")):
                # the kernel closes it when the process ends, which releases the lock
                os.close(int(fd))
    content = json.loads(note.read_text()) | changes
    content["owner"]["start"] = -1  # the process number belongs to another process now
    note.write_text(json.dumps(content))


def test_a_crash_is_undone_by_the_next_start(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    kernel.append(scheduler_resets)
    Tunables(tree.roots).set(disk, "scheduler", "bfq")
    assert restore_abandoned(tree.roots) == ([], [])  # the owner still runs
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
    left_by_a_crash()
    shutil.rmtree(queue(tree, "rq_affinity").parent)
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
    tree: Tree, disk: BlockDevice, kernel: list[Kernel], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    first = Tunables(tree.roots)
    first.set(disk, "rq_affinity", "2")
    # for another user, or for root with another home
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    second = Tunables(tree.roots)
    for name in ("rq_affinity", "nomerges"):
        with pytest.raises(UsageError) as error:
            second.set(disk, name, "0")
        assert error.value.message == (
            f"{name} of vda is not changed: another program has locked "
            f"{queue(tree, 'x').parent}, as programs do that change settings of that queue."
        )
    assert not second.changed
    second.set(disk, "irq/34", "1")
    assert first.restore() == []
    second.set(disk, "rq_affinity", "0")
    assert second.restore() == []
    assert read_tunable(disk, "rq_affinity", tree.roots) == "1"


def test_the_other_session_is_named(tree: Tree, disk: BlockDevice, kernel: list[Kernel]) -> None:
    first = Tunables(tree.roots)
    first.set(disk, "rq_affinity", "2")
    info = queue(tree, "x").parent.stat()
    where = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    tree.proc("locks", f"1: FLOCK  ADVISORY  WRITE 77 {where} 0 EOF\n")
    tree.proc("77/cmdline", "/usr/bin/python3\0/usr/bin/iopstui\0live\0")
    tree.proc("77/comm", "iopstui\n")
    with pytest.raises(UsageError) as error:
        Tunables(tree.roots).set(disk, "nomerges", "2")
    assert error.value.message == (
        "nomerges of vda is not changed: another iopstui (process 77) has changed settings "
        "of that queue and restores them when it ends."
    )
    tree.proc("77/cmdline", "flock\0")
    tree.proc("77/comm", "flock\n")
    with pytest.raises(UsageError, match=r"not changed: flock \(process 77\) has locked /"):
        Tunables(tree.roots).set(disk, "nomerges", "2")


def test_what_a_crash_left_waits_for_the_session_that_changes_the_queue_now(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    Tunables(tree.roots).set(disk, "rq_affinity", "2")
    left_by_a_crash()
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        second = Tunables(tree.roots)
        second.set(disk, "rq_affinity", "0")
    done, failed = restore_abandoned(tree.roots)
    assert done == [] and failed[0].startswith("Settings of vda are not restored yet: another ")
    assert read_tunable(disk, "rq_affinity", tree.roots) == "0"
    assert second.restore() == [] and read_tunable(disk, "rq_affinity", tree.roots) == "2"
    assert restore_abandoned(tree.roots) == (["vda: rq_affinity is 1 again"], [])


# -- values that change with others


def derives(path: Path, value: str) -> None:
    """As in Linux 6.12: limits reset the read-ahead, and a scheduler sets its own values."""
    _set(path, value)
    here = path.parent
    if path.name in ("max_sectors_kb", "iostats", "rotational"):
        (here / "read_ahead_kb").write_text("2560\n")
    if path.name == "scheduler":
        scheduler_resets(path, value)
        shutil.rmtree(here / "iosched", ignore_errors=True)
        if value == "mq-deadline":
            (here / "iosched").mkdir()
            (here / "iosched/read_expire").write_text("500\n")
            (here / "iosched/async_depth").write_text("192\n")
    if path.name == "nr_requests" and (here / "iosched").exists():
        (here / "iosched/async_depth").write_text(f"{int(value) * 3 // 4}\n")


@pytest.fixture
def deadline(tree: Tree, kernel: list[Kernel]) -> Path:
    """A queue with mq-deadline, whose values somebody has changed."""
    kernel.append(derives)
    where = queue(tree, "x").parent
    (where / "scheduler").write_text("none [mq-deadline] bfq\n")
    (where / "iosched").mkdir()
    for name, value in {"read_ahead_kb": "8", "max_sectors_kb": "1280", "rotational": "0",
                        "nr_requests": "100", "wbt_lat_usec": "75000", "iosched/read_expire": "123",
                        "iosched/async_depth": "7", "discard_max_bytes": "0"}.items():  # fmt: skip
        (where / name).write_text(value + "\n")
    return where


def contents(where: Path) -> dict[str, str]:
    return {str(p.relative_to(where)): p.read_text() for p in where.rglob("*") if p.is_file()}


def test_a_queue_without_a_scheduler_has_all_its_tags_again(
    tree: Tree, disk: BlockDevice, kernel: list[Kernel]
) -> None:
    tags = ["128"]

    def plays(path: Path, value: str) -> None:
        """As in Linux 6.18: after a scheduler ends, nr_requests shows all tags, but the earlier
        number stays."""
        requests = path.with_name("nr_requests")
        is_news = path.read_text().strip() != value
        _set(path, value)
        if path.name == "scheduler":
            requests.write_text("128\n" if value == "none" else "256\n")
        elif path == requests and is_news and "[none]" in queue(tree, "scheduler").read_text():
            tags.append(value)

    kernel.append(plays)
    queue(tree, "scheduler").write_text("[none] mq-deadline\n")
    queue(tree, "nr_requests").write_text("128\n")
    settings = Tunables(tree.roots)
    settings.set(disk, "nr_requests", "8")
    settings.set(disk, "scheduler", "mq-deadline")
    assert tags[-1] == "8"
    assert settings.restore() == [] and tags[-1] == "128"
    settings.set(disk, "nr_requests", "8")
    settings.set(disk, "scheduler", "mq-deadline")
    settings.set(disk, "scheduler", "none")
    assert tags[-1] == queue(tree, "nr_requests").read_text().strip()
    assert settings.restore() == [] and tags[-1] == "128"


CHANGES = [("max_sectors_kb", "64"), ("iostats", "0"), ("scheduler", "none"), ("scheduler", "bfq"),
           ("nr_requests", "64"), ("read_ahead_kb", "0")]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CHANGES)
@pytest.mark.parametrize("killed", [False, True])
def test_the_whole_queue_is_as_before(
    tree: Tree, disk: BlockDevice, deadline: Path, name: str, value: str, killed: bool
) -> None:
    before = contents(deadline)
    settings = Tunables(tree.roots)
    settings.set(disk, name, value)
    if killed:
        left_by_a_crash()
        done, failed = restore_abandoned(tree.roots)
        assert failed == [] and f"vda: {name} is {before[name].strip()} again".replace(
            "none [mq-deadline] bfq", "mq-deadline") in done  # fmt: skip
    else:
        assert settings.restore() == []
    assert contents(deadline) == before and notes() == []


@pytest.mark.parametrize("name", ["max_sectors_kb", "iostats"])
def test_one_change_is_one_change(tree: Tree, disk: BlockDevice, deadline: Path, name: str) -> None:
    before = contents(deadline)
    Tunables(tree.roots).set(disk, name, "1")
    assert contents(deadline) == before | {name: "1\n"}


def test_the_first_scheduler_again_has_the_values_it_had(
    tree: Tree, disk: BlockDevice, deadline: Path
) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "scheduler", "none")
    settings.set(disk, "scheduler", "mq-deadline")
    assert (deadline / "iosched/read_expire").read_text() == "123\n"
    settings.set(disk, "scheduler", "bfq")
    assert settings.restore() == []


def test_what_cannot_be_written_back_safely_is_never_written(
    tree: Tree, disk: BlockDevice, deadline: Path
) -> None:
    (deadline / "write_cache").write_text("write back\n")
    settings = Tunables(tree.roots)
    settings.set(disk, "iostats", "0")
    (deadline / "discard_max_bytes").write_text("4096\n")
    (deadline / "write_cache").write_text("write through\n")
    assert settings.restore() == []
    assert (deadline / "discard_max_bytes").read_text() == "4096\n"
    assert (deadline / "write_cache").read_text() == "write through\n"


def test_a_scheduler_that_is_gone_is_told_once(
    tree: Tree, disk: BlockDevice, deadline: Path, kernel: list[Kernel]
) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "scheduler", "none")

    def unloaded(path: Path, value: str) -> None:
        if path.name == "scheduler":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        derives(path, value)

    kernel.append(unloaded)
    (problem,) = settings.restore()
    assert problem == (
        "vda: scheduler is none, not mq-deadline as before (Invalid argument); restore it with: "
        f"echo mq-deadline | sudo tee {deadline / 'scheduler'}"
    )
    assert (deadline / "nr_requests").read_text() == "100\n"


def test_a_value_whose_file_is_gone_is_told(tree: Tree, disk: BlockDevice, deadline: Path) -> None:
    settings = Tunables(tree.roots)
    settings.set(disk, "iostats", "0")
    (deadline / "iosched/read_expire").unlink()
    assert settings.restore() == [
        "vda: iosched/read_expire was 123 and cannot be restored: "
        f"{deadline}/iosched/read_expire no longer exists"
    ]


def test_the_note_of_an_older_iopstui_is_read(
    tree: Tree, disk: BlockDevice, deadline: Path
) -> None:
    Tunables(tree.roots).set(disk, "rq_affinity", "2")
    (note,) = notes()
    content = json.loads(note.read_text())
    del content["queues"]
    note.write_text(json.dumps(content))
    left_by_a_crash()
    assert restore_abandoned(tree.roots) == (["vda: rq_affinity is 1 again"], [])


@pytest.mark.parametrize(("path", "values"), [
    ("/etc", {"passwd": "x"}), ("{}/../vda/queue", {"nomerges": "2"}),
    ("{}", {"../../etc": "2"}), ("{}", {"write_cache": "write through"}),
    ("{}", {"discard_max_bytes": "0"}), ("{}", {"nomerges": 2}), ("{}", "nomerges"), (7, {}),
])  # fmt: skip
def test_a_snapshot_is_believed_only_about_a_queue_s_files(
    tree: Tree, deadline: Path, kernel: list[Kernel], path: object, values: object
) -> None:
    touched: list[Path] = []
    kernel.append(lambda path, value: touched.append(path))
    if isinstance(path, str):
        path = path.format(deadline)
    entry = {"device": "vda", "diskseq": None, "path": path, "values": values}
    journal.write_note("settings", {"queues": [entry], "boot": journal.boot_id()})
    left_by_a_crash()
    restore_abandoned(tree.roots)
    assert touched == []
