"""Which node a job with NVMe commands opens, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import Refused, UsageError
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECTORY, Target, TargetPath
from iopstui.model.fio.jobfile import effective_sections, with_overrides
from iopstui.preflight import in_place
from iopstui.preflight.in_place import passthrough_options
from iopstui.safety import refusals
from iopstui.safety.refusals import WriteVerdict, check_write

COMMANDS = "[a]\nioengine=io_uring_cmd\nrw=randread\n"
BLOCK = Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1",))
GENERIC = Target(DEVICE, "/dev/ng0n1", "nvme0n1", ("nvme0n1",), passthrough=True)
DISK = BlockDevice(name="nvme0n1", path="/dev/nvme0n1", major=259, minor=0, kind="nvme",
                   size=1 << 30)  # fmt: skip


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {"nvme0n1": "/dev/ng0n1", "nvme1n1": "/dev/ng1n1"}
    monkeypatch.setattr(in_place, "generic_of", lambda _, name: nodes.get(name))


def files(text: str, where: Target) -> dict[int, dict[str, str]]:
    return {n: dict(one) for n, one in passthrough_options(text, where, Roots()).items()}


def test_a_section_that_sends_commands_opens_the_generic_device() -> None:
    opened = {"filename": "/dev/ng0n1", "direct": "0"}
    assert files(COMMANDS, BLOCK) == files(COMMANDS, GENERIC) == {0: opened}
    mixed = "[global]\nioengine=io_uring_cmd\n[a]\n[b]\nioengine=io_uring\n[c]\n"
    assert files(mixed, BLOCK) == {0: opened, 1: {}, 2: opened}
    assert files("[a]\nioengine=io_uring\n", BLOCK) == {}


def test_a_generic_device_is_not_opened_with_o_direct_and_other_sections_keep_theirs() -> None:
    """open(2) refuses O_DIRECT for a character device."""
    text = "[global]\ndirect=1\n[a]\nioengine=io_uring_cmd\n[b]\nioengine=libaio\n"
    given = with_overrides(
        text, {"filename": "/dev/nvme0n1"}, passthrough_options(text, BLOCK, Roots())
    )
    a, b = effective_sections(given)
    assert (a.options["direct"], b.options["direct"]) == ("0", "1")
    assert (a.options["filename"], b.options["filename"]) == ("/dev/ng0n1", "/dev/nvme0n1")


def test_of_several_namespaces_each_generic_device() -> None:
    parts = tuple(TargetPath(DEVICE, f"/dev/nvme{n}n1", f"nvme{n}n1") for n in (0, 1))
    several = Target(DEVICE, "/dev/nvme0n1:/dev/nvme1n1", "nvme0n1", parts=parts)
    assert files(COMMANDS, several) == {0: {"filename": "/dev/ng0n1:/dev/ng1n1", "direct": "0"}}


@pytest.mark.parametrize("where", [
    Target(DEVICE, "/dev/sda", "sda"), Target(DEVICE, "/dev/nvme0n1p1", "nvme0n1p1"),
    Target(DIRECTORY, "/srv", "nvme0n1"), Target(DIRECTORY, "/tmp", None),
])  # fmt: skip
def test_what_is_no_namespace_takes_no_commands(where: Target) -> None:
    with pytest.raises(UsageError) as caught:
        files(COMMANDS, where)
    assert where.path in caught.value.message and "io_uring" in caught.value.hint


@pytest.mark.parametrize("text", ["[a]\nioengine=io_uring\n", "[a]\nrw=read\n", COMMANDS + "[b]\n"
                                  "ioengine=libaio\n"])  # fmt: skip
def test_a_generic_device_takes_nothing_but_commands(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        files(text, GENERIC)
    assert "--set ioengine=io_uring_cmd" in caught.value.hint
    assert "/dev/nvme0n1" in caught.value.hint


# -- writing


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """The devices checked for uses, and the node of each."""
    asked: list[tuple[str, str | None]] = []

    def reasons(device: str, *_: object, path: str | None = None, **__: object) -> WriteVerdict:
        asked.append((device, path))
        return WriteVerdict(path or "/dev/nvme0n1", USES)

    monkeypatch.setattr(refusals, "write_reasons", reasons)
    return asked


USES: tuple[str, ...] = ()


def test_uses_are_those_of_the_block_device(
    looked_at: list[tuple[str, str | None]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(globals(), "USES", ("it is mounted at /srv",))
    for word in ("/dev/ng0n1", "/dev/nvme0n1", None):
        with pytest.raises(Refused, match="/dev/ng0n1: it is in use: it is mounted at /srv"):
            check_write(GENERIC, {"nvme0n1": DISK}, Roots.under(tmp_path), word)
    # the block device is also opened exclusively, and its signatures are read
    assert set(looked_at) == {("nvme0n1", None)}


@pytest.mark.parametrize(("word", "may"), [
    ("/dev/ng0n1", True), (None, False), ("", False), ("/dev/ng1n1", False), ("/dev/sda", False),
])  # fmt: skip
def test_writing_needs_the_word(
    looked_at: object, tmp_path: Path, word: str | None, may: bool
) -> None:
    roots = Roots.under(tmp_path)
    if may:
        assert not check_write(GENERIC, {"nvme0n1": DISK}, roots, word).in_use
        return
    with pytest.raises(Refused):
        check_write(GENERIC, {"nvme0n1": DISK}, roots, word)


def test_the_word_may_name_the_block_device(
    looked_at: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named target is the block device; here a file stands for its node."""
    node, other = tmp_path / "node", tmp_path / "other"
    node.write_bytes(b"")
    other.write_bytes(b"")
    from dataclasses import replace

    disk = replace(DISK, path=str(node))
    check_write(GENERIC, {"nvme0n1": disk}, Roots.under(tmp_path / "x"), str(node))
    with pytest.raises(Refused):
        check_write(GENERIC, {"nvme0n1": disk}, Roots.under(tmp_path / "x"), str(other))
