"""The scratch directory: the place for writes if no device or file is named. It is created
exclusively (mkdtemp), accessible only to its owner, and always removed: by ``close``, by the guard
of fio if iopstui dies, and after a crash of both by the next start, which finds its path in the
state directory."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_text import count_of, expand_variables, largest_block
from iopstui.format import counted
from iopstui.linux.devices.usage.mounts import kernel_file_system, read_own_mounts, removal_lock
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.limits import hint_for_limit
from iopstui.linux.process.programs import new_directory, random_name
from iopstui.linux.shares import find_hung_mount, mount_text
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import flag
from iopstui.model.sizes import size_bytes
from iopstui.safety import journal
from iopstui.safety.journal import Note
from iopstui.text import printable

PREFIX = ".iopstui-"
# a name that mkdtemp makes
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
DEFAULT_BYTES = 512 << 20
FREE_SHARE = 0.05
MIN_SPARE = 64 << 10
MIB = 1 << 20
# directories that could not be removed so far
_LEFTOVERS: list[Path] = []
_STAYING: dict[Path, str] = {}
"""Directories that must not be touched now, with the reason: a mount that does not answer, or a
mount inside them."""


@dataclass(slots=True)
class Scratch:
    """A scratch directory and the note of it in the state directory (``None``: no note). ``fd`` is
    the directory held open (O_PATH), -1 if it isn't.

    With several target directories there is one in each: ``parts`` are all of them, this one first.
    ``path`` has links 0, 1 ... to them; fio spreads a job's files over these."""

    path: Path
    note: Note | None
    parts: tuple[Scratch, ...] = ()
    fd: int = -1

    @property
    def paths(self) -> tuple[Path, ...]:
        """All directories, the first one first."""
        return tuple(scratch.path for scratch in self.parts) or (self.path,)

    def used_bytes(self) -> int:
        """Bytes allocated so far below this directory (below all of them, if there are several)."""
        total = sum(scratch.used_bytes() for scratch in self.parts[1:])
        for place, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(place, name)).st_blocks * 512
        return total

    def close(self) -> None:
        """Remove the directory, even if it was moved, then the note; likewise all others. May be
        called twice. If there is a mount in it, or it is on a mount that does not answer, both stay
        for a later iopstui."""
        for scratch in self.parts[1:]:
            scratch.close()
        if _must_stay(self.path):
            return
        _remove(self.path)
        if self.fd >= 0:
            # a directory above it may have been renamed
            moved = Path(os.readlink(f"/proc/self/fd/{self.fd}"))
            os.close(self.fd)
            self.fd = -1
            # try again: with the descriptor just closed, another one can be opened
            _remove(moved if moved != self.path and _is_ours(moved) else self.path)
        if os.path.lexists(self.path):
            _LEFTOVERS.append(self.path)
        elif self.note is not None:
            self.note.remove()


def leftover_messages() -> list[str]:
    """A sentence on each directory that could not be removed and still exists."""
    return pop_staying_messages() + [
        f"cannot remove {printable(str(path))}: its directory is append-only or "
        "immutable now. Change that, then: iopstui doctor"
        for path in dict.fromkeys(_LEFTOVERS)
        if os.path.lexists(path)
    ]


def pop_staying_messages() -> list[str]:
    """A sentence on each directory that was not removed because of a mount; each is returned only
    once."""
    messages = [
        f"cannot remove {printable(str(path))}: {printable(reason)}: iopstui doctor"
        for path, reason in _STAYING.items()
    ]
    _STAYING.clear()
    return messages


def _must_stay(path: Path) -> bool:
    """Whether a mount prevents the removal of the directory; the reason is remembered. Files of
    another file system are not ours, wherever they are mounted."""
    roots = Roots()
    mount = find_hung_mount(path, roots)
    if mount is not None:
        _STAYING[path] = f"{mount_text(mount)} does not answer. When it does"
        return True
    real = os.path.realpath(path)
    for entry in read_own_mounts(roots):
        if entry.mountpoint == real or entry.mountpoint.startswith(f"{real}/"):
            _STAYING[path] = f"{entry.mountpoint} is mounted there. Unmount it, then"
            return True
    return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    if not _is_ours(path):
        return
    # rmtree needs two descriptors for a directory and may fail at the limit; there are only files
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            os.unlink(path / name)
        os.rmdir(path)


def make_scratches(directories: Sequence[Path]) -> Scratch:
    """Create a scratch directory in each of the directories. UsageError if one fails; then none is
    left."""
    scratches: list[Scratch] = []
    try:
        for directory in directories:
            scratches.append(make_scratch(directory))
        if len(scratches) == 1:
            return scratches[0]
        for index, scratch in enumerate(scratches):
            os.symlink(scratch.path, scratches[0].path / str(index))
    except BaseException as error:
        for scratch in scratches:
            scratch.close()
        if isinstance(error, OSError):
            raise UsageError(
                f"Cannot create a link in {scratches[0].path}: {error.strerror}."
            ) from error
        raise
    return Scratch(scratches[0].path, scratches[0].note, tuple(scratches), scratches[0].fd)


def make_scratch(directory: Path) -> Scratch:
    """Create a scratch directory inside ``directory``; UsageError if that fails."""
    path = None
    if flag := removal_lock(directory):
        kind = "immutable" if flag == "i" else "append-only"
        raise UsageError(
            f"Refusing to create a scratch file in {directory}: the directory is {kind}, so "
            "the file could not be removed.",
            f"Choose another directory, or: chattr -{flag} {shlex.quote(str(directory))}",
        )
    if kernel := kernel_file_system(directory):
        raise UsageError(
            f"Refusing to create a scratch file in {directory}: it belongs to a kernel file "
            f"system ({kernel}).",
            "Choose a directory you can write to, or a block device: iopstui run TARGET ...",
        )
    try:
        path = new_directory(directory, PREFIX)
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if path is not None:
            with contextlib.suppress(OSError):
                path.rmdir()
        hint = "Choose a directory you can write to, or a block device: iopstui run TARGET ..."
        raise UsageError(f"Cannot create a scratch file in {directory}: {error.strerror}.",
                         hint_for_limit(error, hint)) from error  # fmt: skip
    note = None
    # without a state directory, the scratch file is left behind only if both processes crash at
    # once
    with contextlib.suppress(OSError):
        note = journal.write_note("scratch", {"scratch": str(path)})
    return Scratch(path, note, fd=fd)


def abandoned_scratches() -> Iterator[Scratch]:
    """Scratch directories whose iopstui no longer runs (it was killed together with its guard)."""
    for note in journal.abandoned_notes("scratch"):
        path = Path(str(note.content.get("scratch", "")))
        if path.is_absolute() and is_scratch_name(path.name) and not _must_stay(path):
            if not _is_ours(path):
                continue
            yield Scratch(path, note)


def is_scratch_name(name: str) -> bool:
    """Whether this can be the name of a scratch directory."""
    return _NAME.fullmatch(name) is not None


def _is_ours(path: Path) -> bool:
    """Whether the path is a scratch directory of this user: otherwise a note that names it is not
    believed."""
    if not is_scratch_name(path.name) or not path.is_absolute():
        return False
    try:
        info = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not path.is_symlink() and path.is_dir() and info.st_uid == os.getuid()


def usable_bytes(directory: Path) -> int:
    """Bytes available on this file system with 5 % left free. UsageError if the directory can't
    be examined."""
    try:
        space = os.statvfs(directory)
    except OSError as error:
        raise UsageError(
            f"Cannot determine the free space of {directory}: {error.strerror}.",
            "Choose a directory you can write to, or a block device: iopstui run TARGET ...",
        ) from error
    free_bytes = space.f_bavail * space.f_frsize - int(FREE_SHARE * space.f_blocks * space.f_frsize)
    return max(0, free_bytes)


def usable_bytes_for_all(directories: Sequence[Path]) -> int:
    """Bytes that may be used in all directories together if each gets the same share, as fio
    divides a job's size. Directories in one file system share its space."""
    spaces = [usable_bytes(directory) for directory in directories]
    # leave room for what files need besides their data; else a file as large as this would leave no
    # more than the 5 % at which a run is ended
    spaces = [max(0, space - max(MIN_SPARE, space >> 6)) for space in spaces]
    systems = [os.stat(directory).st_dev for directory in directories]
    shares = (space // systems.count(system) for space, system in zip(spaces, systems, strict=True))
    return len(directories) * min(shares)


def supports_direct(directory: Path) -> bool:
    """Whether files here can be opened with O_DIRECT (open(2)); tmpfs before Linux 6.6 can't."""
    name = os.path.join(directory, random_name(PREFIX))
    try:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return True
    os.close(fd)
    try:
        os.close(os.open(name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    finally:
        os.unlink(name)
    return True


# Choose the size of a job's scratch files.


SMALLEST = 4 << 20


def shared_name(job: Section) -> str:
    """The name of the file that a job's threads share; "" if each has its own file."""
    parts = [
        Path(part).name for part in expand_variables(job.options.get("filename", "")).split(":")
    ]
    return ":".join(part for part in parts if part)


def last_offset(job: Section) -> int:
    """The byte at which the last of a section's clones begins; fio adds size= to it. 0 if it is a
    percentage of the file."""
    count = count_of(job.options.get("numjobs"))
    first = size_bytes(expand_variables(job.options.get("offset", ""))) or 0
    increment = size_bytes(expand_variables(job.options.get("offset_increment", ""))) or 0
    return first + increment * (count - 1)


def bytes_by_file(
    sections: Sequence[SectionFiles], sizes: Sequence[int], begin: Sequence[int] | None = None
) -> dict[str, int]:
    """Size of each file in bytes: a section's ``size=`` is split over the files of each clone
    (fio(1)), after the bytes before its offset; a shared file counts once."""
    total: dict[str, int] = {}
    for section, size, skipped in zip(sections, sizes, begin or [0] * len(sizes), strict=True):
        file_bytes = -(-size * section.sets // max(1, len(section.paths))) + skipped
        for path in section.paths:
            total[path] = max(total.get(path, 0), file_bytes)
    return total


def scratch_sizes(
    jobs: Sequence[Section],
    files: Sequence[SectionFiles],
    requested: str | None,
    space: int,
    most: int | None = None,
    spread: int = 1,
) -> list[int]:
    """The ``size=`` of each section, so that all ``files`` together fit into ``space``.

    With ``requested`` it is exactly that for every section, or UsageError is raised. Otherwise it
    is the job's size, at most an equal share of 512 MiB (and ``most``), less if the disk is nearly
    full. With ``spread`` directories each file has a part in every one, and its size is the sum of
    all parts (fio divides size= among a job's files); ``requested`` is the size of each part. Bytes
    before a section's offset= are part of the file and count, too."""
    shares = _shares(files)
    if requested is not None:
        size = size_bytes(requested)
        if not size:
            raise UsageError(f"--size {requested!r} is not a size.", "For example: --size 512m")
        size *= spread
        if size * shares > space:
            files_of = f"{counted(shares * spread, 'scratch file')} of {requested}"
            raise UsageError(
                f"{files_of} would need {_mib(size * shares)} MiB, but only {_mib(space)} MiB "
                "may be used here (5 % of the file system stays free).",
                "Give a smaller --size or another directory.",
            )
        return [_from_offset(job, size, size, spread) for job in jobs]
    share = min(DEFAULT_BYTES, space) // shares
    largest = spread * max((largest_block(job) for job in jobs), default=4096)
    if share < max(SMALLEST // shares, largest):
        raise UsageError(
            f"Only {_mib(space)} MiB of this file system may be used (5 % stays free), too little "
            "for a scratch file.",
            "Choose a directory on another disk: iopstui run DIRECTORY ...",
        )
    return [_share(job, min(share, most or share), largest, spread) for job in jobs]


def _shares(files: Sequence[SectionFiles]) -> int:
    """The size of all files together, in multiples of a ``size=`` that all sections share."""
    unit = 1 << 40
    sizes = bytes_by_file(files, [unit] * len(files))
    # because each size is rounded up by less than a byte
    return max(1, -(-(sum(sizes.values()) - len(sizes)) // unit))


def time_based_values(jobs: Sequence[Section], sizes: Sequence[int]) -> list[str]:
    """The value of ``time_based`` for each section, whose files have ``sizes`` bytes. It is 1 if
    the job sets it, or if the section's file is smaller than the job says: fio would reach its end
    long before the job's runtime is over."""
    return [
        "1" if flag(job.options, "time_based") or _ends_early(job, size) else "0"
        for job, size in zip(jobs, sizes, strict=True)
    ]


def _ends_early(job: Section, size: int) -> bool:
    limited = {"io_size", "io_limit", "number_ios"} & job.options.keys()
    if limited or not {"runtime", "timeout"} & job.options.keys():
        return False
    declared = size_bytes(expand_variables(job.options.get("size", "")))
    return declared is None or declared > size


def files_of(text: str) -> int:
    """The number of a job's files, from its text alone, for the points of an experiment."""
    total: dict[str, int] = {}
    for index, job in enumerate(jobfile.effective_sections(text)):
        name = shared_name(job)
        key, count = (name, 1) if name else (f"/{index}", count_of(job.options.get("numjobs")))
        total[key] = max(total.get(key, 0), count)
    return max(1, sum(total.values()))


def scratch_total(
    text: str,
    files: Sequence[SectionFiles],
    requested: str | None,
    space: int,
    most: int | None,
    spread: int = 1,
) -> int:
    """Bytes of all scratch files of a job; raises UsageError as ``scratch_sizes`` does."""
    jobs = jobfile.effective_sections(text)
    sizes = scratch_sizes(jobs, files, requested, space, most, spread)
    return sum(bytes_by_file(files, sizes, [last_offset(job) for job in jobs]).values())


def _share(job: Section, share: int, largest: int, spread: int) -> int:
    declared = size_bytes(expand_variables(job.options.get("size", ""))) or share
    size = min(declared, _from_offset(job, share, largest, spread))
    return max(size - size % max(4096 * spread, largest), largest)


def _from_offset(job: Section, size: int, least: int, spread: int) -> int:
    """Bytes of a file of ``size`` bytes behind this section's offset."""
    skipped = last_offset(job) * spread
    remaining = size - skipped
    if skipped and remaining < min(least, largest_block(job) * spread):
        raise UsageError(
            f"[{printable(job.name)}] starts at {_mib(skipped)} MiB of each scratch file "
            f"(offset=), but scratch files have only {_mib(size)} MiB here.",
            "Give a larger --size, or a smaller offset=",
        )
    return remaining


def _mib(size: int) -> int:
    return size >> 20
