"""Describe the access rights of one fio and start it under kernel enforcement (``fence_exec``)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from iopstui.fio import fence_exec
from iopstui.fio.fence_exec import LANDLOCK, NAMESPACE, NONE
from iopstui.linux.kernel_files import list_names
from iopstui.linux.process.private import write
from iopstui.linux.process.programs import which

__all__ = ["LANDLOCK", "NAMESPACE", "NONE", "Fence", "Grant", "fence_kind", "fenced_command",
           "grant", "isolated_command", "start_fenced"]  # fmt: skip

_SPEC = "fence"
_MORE_LIBRARIES = "/etc/ld.so.conf.d"
# directories to allow beside the bin directory of a program outside of the system's own directories
_PREFIX_DIRECTORIES = ("lib", "lib64", "lib/fio", "libexec", "share", "bin", "pyvenv.cfg")


@dataclass(frozen=True, slots=True)
class Grant:
    """Access to a single examined file or device; a replacement at the same path gets no access.

    ``number`` is the device's own number (st_rdev), 0 for a file."""

    path: str
    device: int
    inode: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class Fence:
    """Access rights of fio in addition to reading system files. ``run_directories`` are directories
    created by this run; ``fsize`` is the maximum file size in bytes."""

    read: tuple[Grant, ...] = ()
    write: tuple[Grant, ...] = ()
    run_directories: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    fsize: int | None = None


def grant(path: str) -> Grant:
    """Grant access to the file that the path leads to now, with links followed. Raises OSError."""
    real = os.path.realpath(path)
    info = os.stat(real)
    return Grant(real, info.st_dev, info.st_ino, info.st_rdev)


@lru_cache(maxsize=1)
def fence_kind() -> str:
    """The kind of fence that this machine has for this user: "landlock", "namespace" or "none"."""
    if fence_exec.landlock_abi() > 0:
        return LANDLOCK
    answer = subprocess.run(
        [*isolated_command(fence_exec), "--kind"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return NAMESPACE if answer.stdout.startswith(NAMESPACE.encode()) else NONE


def fenced_command(fence: Fence, command: Sequence[str]) -> list[str]:
    """The command that sets up the fence and then becomes ``command``, whose first word is a
    path."""
    return [*isolated_command(fence_exec), specification(fence, command[0]), "--", *command]


def start_fenced(
    fence: Fence, command: Sequence[str], cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start ``command`` within the fence, in its own session, without input, with its outputs in
    pipes. Raises OSError. Landlock fences a thread and what it starts (landlock_restrict_self(2)).
    So a thread starts fio and then ends. A program in between would take longer to start than fio
    takes to answer."""
    if fence.fsize is not None or fence_kind() != LANDLOCK:
        return _popen(fenced_command(fence, command), cwd)
    spec = _specification_data(fence, command[0])
    result: list[subprocess.Popen[bytes] | BaseException] = []

    def start() -> None:
        try:
            fence_exec.enter(spec)
            result.append(_popen(command, cwd))
        except BaseException as error:
            # any error, also MemoryError, is raised again in the caller's thread
            result.append(error)

    thread = threading.Thread(target=start)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    thread.join()
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


def _popen(command: Sequence[str], cwd: Path | None) -> subprocess.Popen[bytes]:
    # signals that Python ignores stay ignored in fio, as in all other ways to start it
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        restore_signals=False,
        start_new_session=True,  # so that the caller can end it with all its children
    )


def write_specification(fence: Fence, program: str, private: Path) -> str:
    """Write the specification to a file in the private directory, because it may be too long for an
    argument. Returns the argument for the guard."""
    data = specification(fence, program).encode("utf-8", "surrogateescape")
    return f"@{write(private, _SPEC, data)}"


def specification(fence: Fence, program: str) -> str:
    return fence_exec.specification_text(_specification_data(fence, program))


def _specification_data(fence: Fence, program: str) -> dict[str, object]:
    return {
        "kind": fence_kind(),
        "read": [[grant.path, grant.device, grant.inode, grant.number] for grant in fence.read],
        "write": [[grant.path, grant.device, grant.inode, grant.number] for grant in fence.write],
        "own": list(fence.run_directories),
        "open": list(fence.open),
        "execute": list(_programs(program)),
        "fsize": fence.fsize,
    }


# appended at the end, because Python's own variables come first
_RUN = (
    "import sys; place, _, name = sys.argv[1].rpartition('/'); sys.path.append(place); "
    "sys.exit(__import__(name.removesuffix('.py')).main(sys.argv[2:]))"
)


def isolated_command(module: ModuleType) -> list[str]:
    """The command that runs ``main`` of ``module`` in a Python without settings or files of the
    user; the words that follow are the arguments of ``main``. The module is imported, because
    Python would compile a script again at each start, which would take longer than all the rest."""
    keeps = ["-B"] if sys.dont_write_bytecode else []
    path = str(Path(str(module.__file__)).resolve())
    return [sys.executable, "-I", "-S", *keeps, "-c", _RUN, path]


@lru_cache(maxsize=8)
def _programs(program: str) -> tuple[str, ...]:
    """The program, its libraries and engines; if it is a script, also its interpreter with the
    libraries beside that."""
    paths = [program, os.path.realpath(program), *_library_directories()]
    paths += _beside_bin(program, ("lib", "lib64", "lib/fio"))
    for interpreter in _interpreters(program):
        paths += [interpreter, os.path.realpath(interpreter), "/bin", "/usr/bin"]
        paths += _beside_bin(interpreter, _PREFIX_DIRECTORIES)
    return tuple(path for path in dict.fromkeys(paths) if os.path.exists(path))


def _beside_bin(program: str, names: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys((program, os.path.realpath(program))):
        directory = os.path.dirname(path)
        if os.path.basename(directory) in ("bin", "sbin"):
            top = os.path.dirname(directory)
            yield from (os.path.join(top, name) for name in names)


def _interpreters(program: str) -> Iterator[str]:
    """The interpreter that the first line of a script names (execve(2)); with env(1) also the
    program that env looks up."""
    try:
        with open(program, "rb") as file:
            line = file.read(256).split(b"\n")[0]
    except OSError:
        return
    words = os.fsdecode(line.removeprefix(b"#!")).split() if line.startswith(b"#!") else []
    if words:
        yield words[0]
    if words and os.path.basename(words[0]) == "env":
        yield from filter(None, (which(word) for word in words[1:2]))


def _library_directories() -> Iterator[str]:
    """Library directories of the system (ld.so(8)) and of this user's environment."""
    more = (
        name for name in list_names(_MORE_LIBRARIES) if name.endswith(".conf") and name[0] != "."
    )
    for file in ("/etc/ld.so.conf", *(f"{_MORE_LIBRARIES}/{name}" for name in more)):
        try:
            lines = Path(file).read_text(errors="replace").split("\n")
        except OSError:
            continue
        yield from (line.strip() for line in lines if line.strip().startswith("/"))
    for path in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if os.path.isabs(path):
            yield path
