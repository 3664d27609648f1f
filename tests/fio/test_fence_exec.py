"""The fence uses the kernel's numbers: they must be those of the kernel's headers."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iopstui.fio import fence_exec as fence

# linux/landlock.h, linux/mount.h, linux/sched.h, linux/prctl.h, linux/capability.h, linux/fs.h and
# asm-generic/unistd.h, in their own spelling
HEADERS = {
    "CREATE_RULESET": 444, "ADD_RULE": 445, "RESTRICT_SELF": 446,
    "RULESET_VERSION": 1 << 0, "PATH_BENEATH": 1,
    "EXECUTE": 1 << 0, "WRITE_FILE": 1 << 1, "READ_FILE": 1 << 2, "REMOVE_DIR": 1 << 4,
    "REMOVE_FILE": 1 << 5, "MAKE_DIR": 1 << 7, "MAKE_REG": 1 << 8, "MAKE_SYM": 1 << 12,
    "TRUNCATE": 1 << 14,
    "MS_RDONLY": 1 << 0, "MS_NOSUID": 1 << 1, "MS_NODEV": 1 << 2, "MS_NOEXEC": 1 << 3,
    "MS_REMOUNT": 1 << 5, "MS_NOATIME": 1 << 10, "MS_NODIRATIME": 1 << 11, "MS_BIND": 1 << 12,
    "MS_REC": 1 << 14, "MS_PRIVATE": 1 << 18, "MS_RELATIME": 1 << 21,
    "CLONE_NEWNS": 0x00020000, "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000,
    "PR_SET_PDEATHSIG": 1, "PR_CAPBSET_READ": 23, "PR_CAPBSET_DROP": 24, "PR_SET_NO_NEW_PRIVS": 38,
    "PR_CAP_AMBIENT": 47, "PR_CAP_AMBIENT_CLEAR_ALL": 4,
    "CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_SETGID": 6, "CAP_SETUID": 7,
    "CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23, "CAPABILITY_VERSION_3": 0x20080522,
    "BLKFLSBUF": 0x12 << 8 | 97,
}  # fmt: skip


def test_the_numbers_are_the_kernel_s() -> None:
    assert {name: getattr(fence, name) for name in HEADERS} == HEADERS
    # MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM
    assert {bit for bit in range(64) if fence.MAKE_OTHER >> bit & 1} == {6, 9, 10, 11, 12}


def test_what_every_fio_may_read_and_execute_is_the_system_s() -> None:
    """No user's home, nothing that a user may write, no device with data on it."""
    tops = [f"{top}/{lib}" for top in ("", "/usr") for lib in ("lib", "lib32", "lib64")]
    more = ["/usr/libexec", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store"]
    assert sorted(fence.LIBRARIES) == sorted([*tops, *more])
    assert fence.READABLE == ("/etc", "/usr/share", "/proc", "/sys")
    names = ("null", "zero", "full", "random", "urandom")
    assert tuple(f"/dev/{name}" for name in names) == fence.NODES


def test_a_mount_keeps_what_it_forbids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A remount would drop a mount's own options, so they are set again."""
    flags = {
        "rw": 0, "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024,
        "nodiratime": 2048, "relatime": 1 << 21, "ro,nosuid,relatime": 1 | 2 | 1 << 21,
    }  # fmt: skip
    lines = [f"{n} 1 8:1 / /m\\040{n} {one} shared:1 - ext4 /dev/sda rw,nodev\n"
             for n, one in enumerate(flags)]  # fmt: skip
    info = tmp_path / "mountinfo"
    info.write_text("".join(lines))
    monkeypatch.setattr(fence, "open", lambda path, mode: info.open(mode), raising=False)
    expected = [(f"/m {n}", bits) for n, bits in enumerate(flags.values())]
    assert fence._mounts() == expected


def test_every_mount_loses_the_rights_it_is_not_named_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounts become ro, nodev and noexec unless they are granted; their own options stay."""
    keep = fence.MS_NOATIME
    mounts = [(path, keep) for path in ("/", "/data", "/dev/vda", "/usr/lib", "/usr/lib/x")]
    given: dict[str, int] = {}

    def mount(source: object, target: str, kind: object, flags: int) -> None:
        assert (source, kind) == (None, None)
        given[target] = flags

    monkeypatch.setattr(fence, "_mounts", lambda: mounts)
    monkeypatch.setattr(fence, "_mount", mount)
    shut = os.ST_RDONLY | os.ST_NODEV
    seen = {path: shut for path, _ in mounts}
    seen["/data"], seen["/dev/vda"] = os.ST_NODEV, 0
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=seen[path]))
    arguments = {"/data", "/dev/vda"}, {"/dev/vda"}, {"/usr/lib"}
    fence._restrict_mounts(*arguments)
    base = fence.MS_REMOUNT | fence.MS_BIND | keep | fence.MS_NOSUID
    read, nodes, programs = fence.MS_RDONLY, fence.MS_NODEV, fence.MS_NOEXEC
    assert given == {
        "/": base | read | nodes | programs, "/data": base | nodes | programs,
        "/dev/vda": base | programs, "/usr/lib": base | read | nodes,
        "/usr/lib/x": base | read | nodes,
    }  # fmt: skip
    for flag, says in ((os.ST_NODEV, "/ can't be made read-only"),
                       (os.ST_RDONLY, "the devices in / can't be closed")):  # fmt: skip
        seen["/"] = flag
        with pytest.raises(fence.FenceError) as caught:
            fence._restrict_mounts(*arguments)
        assert (caught.value.errno, caught.value.strerror) == (errno.EPERM, says)


def test_a_specification_may_be_in_a_file(tmp_path: Path) -> None:
    """File names are bytes: names that are not valid UTF-8 come back unchanged."""
    spec = {"kind": "none", "own": ["/tmp/\udcff"]}
    assert fence.parse_specification(fence.specification_text(spec)) == spec
    file = tmp_path / "spec"
    file.write_bytes(b"kind none\nown /tmp/\xff")
    assert fence.parse_specification(f"@{file}") == spec


_PATHS = st.binary(min_size=1).filter(lambda path: b"\0" not in path).map(os.fsdecode)
_GRANTS = st.lists(st.tuples(_PATHS, *[st.integers(0, 1 << 64)] * 3).map(list), min_size=1)


@given(
    st.fixed_dictionaries(
        {"kind": st.sampled_from([fence.LANDLOCK, fence.NAMESPACE, fence.NONE])},
        optional={
            **dict.fromkeys(("read", "write"), _GRANTS),
            **dict.fromkeys(("own", "open", "execute"), st.lists(_PATHS, min_size=1)),
            "fsize": st.integers(0, 1 << 64),
        },
    )
)
@example({"kind": "none", "own": ["/a\nwrite 1 2 0 /b", "/\\", "/\\n", "/\\\n", "/\r", "/ "]})
def test_what_a_specification_names_comes_back_whatever_it_is_called(spec: fence.Spec) -> None:
    """A name that could end its line would grant another file."""
    text = fence.specification_text(spec)
    assert fence.parse_specification(text) == spec
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        assert fence.parse_specification(f"@{file.name}") == spec


@pytest.mark.parametrize(
    "text",
    ["", "kind", "kind all", "own /tmp", "kind none\n", "kind none\nkind landlock",
     "kind none\nfsize x", "kind none\nread /tmp", "kind none\nread 1 /tmp",
     "kind none\nread 1 2 /tmp",
     "kind none\nall /tmp", '{"kind": "none"}'],
)  # fmt: skip
def test_what_is_no_specification_is_no_fence(text: str) -> None:
    with pytest.raises(ValueError):
        fence.parse_specification(text)


def test_what_is_below_a_program_s_directory() -> None:
    tops = {"/usr/lib"}
    found = [fence._is_below(path, tops) for path in ("/usr/lib", "/usr/lib/x", "/usr/lib64", "/")]
    assert found == [True, True, False, False]


def test_a_grant_is_for_the_very_file_and_never_for_a_link(tmp_path: Path) -> None:
    """A link put in a file's place would grant any file."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("x")
    link.symlink_to(file)
    held = file.stat()
    fence.Grants({"write": [(str(file), held.st_dev, held.st_ino, 0)]}).close()
    own = link.lstat()
    for path, info, number in ((link, own, 0), (link, held, 0), (file, own, 0), (file, held, 1792)):
        with pytest.raises(fence.FenceError, match="was replaced by another file") as told:
            fence.Grants({"read": [(str(path), info.st_dev, info.st_ino, number)]})
        assert told.value.errno == errno.ESTALE


def test_a_directory_of_one_s_own_is_a_directory_and_one_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    fence.Grants({"own": [str(tmp_path)]}).close()
    with pytest.raises(fence.FenceError, match="is not the directory created for this run"):
        fence.Grants({"own": [str(file)]})
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(fence.FenceError, match="is not the directory created for this run"):
        fence.Grants({"own": [str(tmp_path)]})
