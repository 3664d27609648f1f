"""Start fio under kernel-enforced limits on the files it may read, write and execute.

Run as a program (``python -I -S fence_exec.py SPEC -- COMMAND...``) it fences itself in and becomes
COMMAND; ``guard`` does the same in the child that it forks. To be small and quick, it imports
nothing of iopstui and little of Python (importing json, signal and contextlib would take longer
than everything it does). SPEC is the text that ``specification_text`` makes of a dictionary, or
``@FILE`` for a file with that text:

``kind``     "landlock", "namespace" or "none" (see ``available_fence``)
``read``     [[path, st_dev, st_ino, st_rdev]...] files and devices that may be read
``write``    the same, that may be read and written
``own``      directories this run has made: anything may be made, written and removed in them
``open``     directories and files that may be read, beside the system's own
``system``   the system's own, with Landlock (default: ``READABLE``)
``execute``  programs that may be executed, and directories with libraries
``fsize``    the longest a file may become in bytes, or null (setrlimit(2), RLIMIT_FSIZE, the soft
             limit; what would make it longer fails with EFBIG)

Two fences give the same promise. **Landlock** (landlock(7), Linux 5.13): a file that is not named
can be neither opened nor executed, whatever path leads to it. **Namespaces** (mount_namespaces(7),
pid_namespaces(7)): every mount is read-only, nodev and noexec, except for the named paths; /proc
shows only fio's own processes; and only these capabilities are left: CAP_IPC_LOCK (locked and
registered buffers), CAP_SYS_NICE (nice=, prio=), CAP_SETUID and CAP_SETGID (uid=, gid=),
CAP_DAC_READ_SEARCH (root reads files of other users); CAP_DAC_OVERRIDE only if fio writes a file of
another user and reads no device. A device that fio may only read gets a node of its own without the
right to write.

NVMe's generic character devices accept any command from a process with CAP_SYS_ADMIN, however they
were opened. Without it (Linux 6.2) the kernel accepts only commands that the descriptor's mode
allows. So if such a device is named, fio does not have that capability with either fence."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take as long as all the rest
    from typing import Any

    Spec = dict[str, Any]

LANDLOCK, NAMESPACE, NONE = "landlock", "namespace", "none"

# linux/landlock.h; the system call numbers are the same on every architecture
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULESET_VERSION, PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, TRUNCATE = 1, 1 << 1, 1 << 2, 1 << 14
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_SYM = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 12
MAKE_OTHER = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | MAKE_SYM

# linux/mount.h, linux/sched.h, linux/prctl.h, linux/capability.h, linux/fs.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE = 1024, 2048, 4096, 16384, 1 << 18
MS_RELATIME = 1 << 21
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
PR_SET_PDEATHSIG, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 23, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID = 1, 2, 6, 7
CAP_IPC_LOCK, CAP_SYS_ADMIN, CAP_SYS_NICE = 14, 21, 23
CAPABILITY_VERSION_3 = 0x20080522
SIGKILL = 9
BLKFLSBUF = 0x1261

LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
             "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store")  # fmt: skip
READABLE = ("/etc", "/usr/share", "/proc", "/sys")
NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_MOUNT_FLAGS = (("nosuid", MS_NOSUID), ("nodev", MS_NODEV), ("noexec", MS_NOEXEC),
         ("noatime", MS_NOATIME), ("nodiratime", MS_NODIRATIME),
         ("relatime", MS_RELATIME))  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


class FenceError(OSError):
    """The fence could not be set up, so fio is not started."""


# -- which kind of fence there is


def landlock_abi() -> int:
    """The version of Landlock this kernel has; 0: none, or switched off."""
    return max(0, _landlock(CREATE_RULESET, None, 0, RULESET_VERSION))


def available_fence() -> str:
    """The kind of fence that this process can set up: "landlock", "namespace" or "none". Whether
    "namespace" works is tried in a child."""
    if landlock_abi() > 0:
        return LANDLOCK
    pid = os.fork()
    if pid == 0:
        try:
            spec = {"kind": NAMESPACE}
            before_fork(spec)
            if (inner := os.fork()) == 0:
                enter(spec)
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
        finally:  # whatever the error is, in either process
            os._exit(1)
    return NAMESPACE if os.waitpid(pid, 0)[1] == 0 else NONE


# -- entering the fence


def before_fork(spec: Spec) -> None:
    """Prepare the parent of the fenced process: its children are then in a PID namespace of their
    own. Raises Closed."""
    if spec["kind"] != NAMESPACE:
        return
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _call("unshare", CLONE_NEWPID) == 0:
        return
    _call_or_fail("unshare", CLONE_NEWUSER | CLONE_NEWPID)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"),
                       ("gid_map", f"{group} {group} 1")):  # fmt: skip
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(spec: Spec) -> None:
    """Fence in this process and everything that it will start. Raises OSError if a file is gone or
    is not the one that was examined, or if the kernel refuses the fence; then nothing may be
    started."""
    _limit_file_size(spec.get("fsize"))
    if spec["kind"] == NAMESPACE:
        # must come before anything is opened: files of another mount namespace can't be mounted
        # here
        _call_or_fail("unshare", CLONE_NEWNS)
        _mount(None, "/", None, MS_REC | MS_PRIVATE)
    grants = Grants(spec)
    try:
        if spec["kind"] == LANDLOCK:
            _enter_landlock(spec, grants)
        elif spec["kind"] == NAMESPACE:
            _enter_mounts(spec, grants)
        if any(map(_is_generic, (*grants.read, *grants.write))):
            _drop_administration()
    finally:
        grants.close()
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


class Grants:
    """The paths in the specification, opened and compared with the examined ones."""

    def __init__(self, spec: Spec) -> None:
        self._fds: list[int] = []
        try:
            self.read = [self._checked(*entry) for entry in spec.get("read", ())]
            self.write = [self._checked(*entry) for entry in spec.get("write", ())]
            self.run_directories = [self._checked(path) for path in spec.get("own", ())]
        except BaseException:
            self.close()
            raise

    def _checked(self, path: str, *examined: int) -> int:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._fds.append(fd)
        info = os.fstat(fd)
        link = stat.S_ISLNK(info.st_mode)
        if examined and (link or (info.st_dev, info.st_ino, info.st_rdev) != examined):
            raise FenceError(errno.ESTALE, f"{path} was replaced by another file")
        if not examined and (not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid()):
            raise FenceError(errno.ESTALE, f"{path} is not the directory created for this run")
        return fd

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


def _limit_file_size(fsize: int | None) -> None:
    # SIGXFSZ would end a process without a message. Python ignores the signal from its start on
    # (PyConfig.install_signal_handlers), and fio inherits that: write(2) fails with EFBIG instead.
    if fsize is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limits = [value for value in (fsize, soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(limits), hard))


# -- Landlock


def _enter_landlock(spec: Spec, grants: Grants) -> None:
    abi = landlock_abi()
    if abi == 0:
        raise FenceError(errno.ENOSYS, "this kernel has no Landlock")
    write = WRITE_FILE | READ_FILE | (TRUNCATE if abi >= 3 else 0)
    below = write | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG
    handled = struct.pack("=Q", below | MAKE_OTHER | EXECUTE)
    rules = _checked(_landlock(CREATE_RULESET, handled, len(handled), 0))
    system = spec.get("system", READABLE)
    for path in _existing(*system, *LIBRARIES, *NODES, *spec.get("open", ())):
        _allow_path(rules, path, READ_FILE)
    for path in _existing(*LIBRARIES, *spec.get("execute", ())):
        _allow_path(rules, path, READ_FILE | EXECUTE)
    _allow_path(rules, os.devnull, write)
    for fd in grants.read:
        _allow(rules, fd, READ_FILE)
    for fd in grants.write:
        _allow(rules, fd, write)
    for fd in grants.run_directories:
        _allow(rules, fd, below)
    _call_or_fail("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _checked(_landlock(RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow_path(rules: int, path: str, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _allow(rules, fd, access)
    finally:
        os.close(fd)


def _allow(rules: int, fd: int, access: int) -> None:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        access &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
    _checked(_landlock(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", access, fd), 0))


def _landlock(number: int, *arguments: int | bytes | None) -> int:
    """Make a Landlock system call; return its result, or minus the errno."""
    wide = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    answer = int(_libc.syscall(ctypes.c_long(number), *wide))
    return answer if answer >= 0 else -ctypes.get_errno()


def _checked(answer: int) -> int:
    if answer < 0:
        raise FenceError(-answer, f"the kernel refuses the sandbox ({os.strerror(-answer)})")
    return answer


# -- namespaces


def _enter_mounts(spec: Spec, grants: Grants) -> None:
    """Make everything read-only, without devices and programs, except for the named paths."""
    cwd = os.getcwd()
    for fd in (*grants.read, *grants.write):
        _flush(fd)
    programs = set(_existing(*LIBRARIES, *spec.get("execute", ())))
    writable = {_bind_fd(fd) for fd in (*grants.write, *grants.run_directories)}
    nodes = {_bind(path) for path in _existing(*NODES)}
    nodes |= {_read_only_node(fd) for fd in grants.read if _is_device(fd)}
    for path in sorted(programs):
        _bind(path)
    nodes |= {_name(fd) for fd in grants.write if _is_device(fd)}
    _mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _restrict_mounts(writable, nodes, {os.path.realpath(path) for path in programs})
    os.chdir(cwd)
    _drop_capabilities(grants)


def _name(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def _bind_fd(fd: int) -> str:
    """Bind-mount the open file or directory over itself by its descriptor, so that nobody can swap
    the path before that."""
    path = _name(fd)
    _mount(f"/proc/self/fd/{fd}", f"/proc/self/fd/{fd}", None, MS_BIND)
    return path


def _bind(path: str) -> str:
    real = os.path.realpath(path)
    _mount(real, real, None, MS_BIND)
    return real


def _is_device(fd: int) -> bool:
    return stat.S_ISBLK(os.fstat(fd).st_mode) or _is_generic(fd)


def _is_generic(fd: int) -> bool:
    return stat.S_ISCHR(os.fstat(fd).st_mode)


def _read_only_node(fd: int) -> str:
    """Cover a device that may only be read with a node of the same number that nobody may write to,
    because a read-only mount does not prevent writes to a device. Only root can create such a node;
    other users depend on the original node's rights and on fio's --readonly."""
    path = _name(fd)
    if os.geteuid() != 0:
        return _bind_fd(fd)
    directory = f"/dev/iopstui-node-{os.getpid()}"
    os.mkdir(directory, 0o700)
    try:
        _mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NOEXEC)
        node = os.path.join(directory, "node")
        try:
            info = os.fstat(fd)
            os.mknod(node, stat.S_IFMT(info.st_mode) | 0o400, info.st_rdev)
        except PermissionError:
            return _bind_fd(fd)
        _mount(node, f"/proc/self/fd/{fd}", None, MS_BIND)
    finally:
        _call("umount2", directory.encode(), 2)
        os.rmdir(directory)
    return path


def _flush(fd: int) -> None:
    """Drop a device's cache for fio, because invalidate=1 requires CAP_SYS_ADMIN, which fio will
    not have."""
    if not _is_device(fd) or _is_generic(fd):
        return
    try:
        device = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, BLKFLSBUF)
        finally:
            os.close(device)
    except OSError:
        pass


def _restrict_mounts(writable: set[str], nodes: set[str], programs: set[str]) -> None:
    """Remove from every mount the rights that the specification does not give it, then verify that
    they are gone."""
    for path, flags in _mounts():
        new_flags = flags | MS_NOSUID
        if path not in writable:
            new_flags |= MS_RDONLY
        if path not in nodes:
            new_flags |= MS_NODEV
        if not _is_below(path, programs):
            new_flags |= MS_NOEXEC
        try:
            _mount(None, path, None, MS_REMOUNT | MS_BIND | new_flags)
        except OSError:
            pass  # hidden below another mount; that one is looked at next
    for path, flags in _mounts():
        if flags & MS_RDONLY and flags & MS_NODEV:
            continue  # not checked: if its server is gone, it would never answer
        try:
            flag = os.statvfs(path).f_flag
        except OSError:
            continue  # a mount that can't be reached can't be opened
        if path not in writable and not flag & os.ST_RDONLY:
            raise FenceError(errno.EPERM, f"{path} can't be made read-only")
        if path not in nodes and not flag & os.ST_NODEV:
            raise FenceError(errno.EPERM, f"the devices in {path} can't be closed")


def _is_below(path: str, tops: set[str]) -> bool:
    return any(path == top or path.startswith(top + "/") for top in tops)


def _mounts() -> list[tuple[str, int]]:
    """Every mount of this process as (mount point, flags to keep) (proc_pid_mountinfo(5))."""
    mounts = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split()
            path = fields[4].decode("unicode_escape").encode("latin-1")
            options = fields[5].decode().split(",")
            mount_flags = sum(bit for name, bit in _MOUNT_FLAGS if name in options)
            read_only = MS_RDONLY if "ro" in options else 0
            mounts.append((os.fsdecode(path), mount_flags | read_only))
    return mounts


def _drop_capabilities(grants: Grants) -> None:
    needed = {CAP_IPC_LOCK, CAP_SYS_NICE, CAP_SETUID, CAP_SETGID, CAP_DAC_READ_SEARCH}
    foreign = [os.fstat(fd).st_uid != os.geteuid() for fd in grants.write if not _is_device(fd)]
    if any(foreign) and not any(_is_device(fd) for fd in grants.read):
        needed.add(CAP_DAC_OVERRIDE)
    for number in range(64):
        if number not in needed:
            _call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)  # EINVAL beyond the last capability
    _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, (effective, permitted, *_) = _capabilities()
    mask = sum(1 << number for number in needed)
    masks = (effective & mask, permitted & mask, 0, 0, 0, 0)
    _call_or_fail("capset", header, struct.pack("=6I", *masks))


def _drop_administration() -> None:
    """Remove only CAP_SYS_ADMIN from this process and whatever it executes. Raises OSError if root
    still has it afterwards."""
    header, masks = _capabilities()
    bit = 1 << CAP_SYS_ADMIN
    # an ordinary user does not have it and can't get it from the bounding set
    if os.geteuid() == 0 or (masks[0] | masks[1] | masks[2]) & bit:
        in_bounding_set = _call("prctl", PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 1
        if in_bounding_set:
            _call_or_fail("prctl", PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)
        _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        reduced = (*(mask & ~bit for mask in masks[:3]), *masks[3:])
        _call_or_fail("capset", header, struct.pack("=6I", *reduced))


def _capabilities() -> tuple[bytes, tuple[int, ...]]:
    """The result of capget(2): its header, and the effective, permitted and inheritable
    capabilities, first the low then the high 32 bits."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    _call_or_fail("capget", header, data)
    return header, struct.unpack("=6I", data.raw)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    texts = [text if text is None else os.fsencode(text) for text in (source, target, kind)]
    if _libc.mount(*texts, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise FenceError(number, f"{target} can't be mounted ({os.strerror(number)})")


def _call(name: str, *arguments: object) -> int:
    wide = [
        ctypes.c_ulong(argument) if isinstance(argument, int) else argument
        for argument in arguments
    ]
    return int(getattr(_libc, name)(*wide))


def _call_or_fail(name: str, *arguments: object) -> None:
    if _call(name, *arguments) != 0:
        number = ctypes.get_errno()
        raise FenceError(number, f"{name}: {os.strerror(number)}")


def _existing(*paths: str) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


# -- as a program


_FILES, _PLACES = ("read", "write"), ("own", "open", "execute")


def specification_text(spec: Spec) -> str:
    """The text of a specification, as ``parse_specification`` takes it: a line for each entry."""
    lines = [f"kind {spec['kind']}"]
    for name in _FILES:
        lines += [f"{name} {device} {inode} {number} {_escape(path)}"
                  for path, device, inode, number in spec.get(name, ())]  # fmt: skip
    for name in _PLACES:
        lines += [f"{name} {_escape(path)}" for path in spec.get(name, ())]
    if spec.get("fsize") is not None:
        lines.append(f"fsize {spec['fsize']}")
    return "\n".join(lines)


def parse_specification(text: str) -> Spec:
    """Parse the specification, from the argument or the file it names. Raises ValueError if
    invalid."""
    if text.startswith("@"):
        with open(text[1:], encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            text = file.read()
    spec: Spec = {}
    for line in text.split("\n"):
        name, _, value = line.partition(" ")
        if name in _FILES:
            device, inode, number, path = value.split(" ", 3)
            checked = [_unescape(path), int(device), int(inode), int(number)]
            spec.setdefault(name, []).append(checked)
        elif name in _PLACES:
            spec.setdefault(name, []).append(_unescape(value))
        elif name in ("kind", "fsize") and name not in spec:
            spec[name] = int(value) if name == "fsize" else value
        else:
            raise ValueError(f"{line!r} does not describe a fence")
    if spec.get("kind") not in (LANDLOCK, NAMESPACE, NONE):
        raise ValueError(f"there is no such fence: {spec.get('kind')!r}")
    return spec


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace("\n", "\\n")


def _unescape(path: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in path.split("\\\\"))


def main(argv: list[str]) -> int:
    """Handle SPEC -- COMMAND: become COMMAND, or for a PID namespace wait for it. With ``--kind``,
    print which fence there is. Exit code 126: the fence can't be set up; 127: COMMAND can't be
    executed."""
    if argv == ["--kind"]:
        print(available_fence(), landlock_abi())
        return 0
    spec, command = parse_specification(argv[0]), argv[2:]
    try:
        before_fork(spec)
        pid = os.fork() if spec["kind"] == NAMESPACE else 0
        if pid:
            return _follow(pid)
        if spec["kind"] == NAMESPACE:
            _call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        enter(spec)
    except OSError as error:
        sys.stderr.write(f"iopstui: no fence for {command[0]}: {error.strerror}\n")
        return 126
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"iopstui: {command[0]} can't be executed: {error.strerror}\n")
    return 127


def _follow(pid: int) -> int:
    """Wait for the child, which is killed if this process dies. Returns its exit code, as a shell
    would."""
    import signal  # an import of signal would take as long as all the rest

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, frame: os.kill(pid, SIGKILL))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
