"""New files of a job beside their final paths, and scratch directories for several runs.

fio removes a file before it recreates it, and creates files that it does not find. So it never gets
the right to create anything in a directory that has other people's files. It works in iopstui's own
directory inside that one, on the same file system, in which every name of the job is either still
free or a symbolic link to the existing file. The files that fio created are then moved to their
final names, which must still be free.

During a run fio's guard removes the directory if iopstui is killed. Between two runs fio has no
guard, so ``SharedScratch`` starts its own guard for the whole time."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.fio import guard as fio_guard
from iopstui.fio.fence import isolated_command
from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_text import join_paths, split_paths
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.fio import jobfile
from iopstui.safety.scratch import Scratch, make_scratch, make_scratches
from iopstui.text import printable

_RENAME_NOREPLACE = 1


@dataclass(slots=True)
class _StagingDirectory:
    """A scratch directory inside ``parent``. Both directories are kept open, so that nobody can
    replace them."""

    scratch: Scratch
    parent: int

    def move(self, name: str) -> None:
        """Rename a file to the parent, where the name must be free (RENAME_NOREPLACE). If the file
        system does not support that, make a second link(2), which fails as well if the name is
        taken. Raises OSError."""
        libc = ctypes.CDLL(None, use_errno=True)
        raw = os.fsencode(name)
        if libc.renameat2(self.scratch.fd, raw, self.parent, raw, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number), name)
        os.link(
            name, name, src_dir_fd=self.scratch.fd, dst_dir_fd=self.parent, follow_symlinks=False
        )
        os.unlink(name, dir_fd=self.scratch.fd)

    def close(self) -> None:
        self.scratch.close()
        os.close(self.parent)


class Staging:
    """Directories in which the missing files of a job are created.

    ``sections`` are the job's sections with their files, relative to ``cwd``; ``text`` is the job
    on the staged files. ``close`` removes the ``directories`` with everything left in them. Raises
    UsageError if a directory cannot be created."""

    def __init__(self, text: str, sections: Sequence[SectionFiles], cwd: Path) -> None:
        self._directories: dict[str, _StagingDirectory] = {}
        # links to existing files, if the job also names new ones; nothing is made in their own
        # directories
        self.link_directory: Path | None = None
        """The directory with links only, if there is one."""
        # path that the user means -> path where fio works
        self._staged_paths: dict[str, str] = {}
        self._links: dict[str, str] = {}
        try:
            self.text = self._stage_text(text, sections, cwd)
        except BaseException:
            self.close()
            raise

    @property
    def directories(self) -> tuple[Scratch, ...]:
        """Directories that this run has made for fio's files."""
        return tuple(directory.scratch for directory in self._directories.values())

    @property
    def new_paths(self) -> tuple[str, ...]:
        """The names of files that do not exist yet."""
        return tuple(self._staged_paths)

    def used_bytes(self) -> int:
        """Bytes allocated so far in the staged files."""
        return sum(scratch.used_bytes() for scratch in self.directories)

    def publish(self) -> list[str]:
        """Move the files that fio has made to their final paths. Return a sentence on each that
        could not be moved."""
        messages = []
        for path in self._staged_paths:
            parent, name = os.path.split(path)
            try:
                self._directories[parent].move(name)
            except FileNotFoundError:
                continue  # fio has not made this file
            except FileExistsError:
                messages.append(f"{printable(path)} was created by another program in the "
                                "meantime and is not touched; the job's own file is "
                                "removed")  # fmt: skip
            except OSError as error:
                messages.append(f"cannot create {printable(path)}: {error.strerror}")
        return [*messages, *self._replaced_files()]

    def _replaced_files(self) -> Iterator[str]:
        """Sentences on existing files that fio has replaced: it recreates a file that is too small
        for the job."""
        for path, staged in self._links.items():
            if os.path.lexists(staged) and not os.path.islink(staged):
                yield (
                    f"{printable(path)} is smaller than the job needs, and iopstui never "
                    "extends an existing file"
                )

    def check(self) -> None:
        """Raises Refused if a staged file is not the one that the job means."""
        for reason in (*self.publish(), *self._missing_files()):
            raise Refused(f"The job is not run: {reason}.",
                          "Choose another file, or use a smaller size=.")  # fmt: skip

    def _missing_files(self) -> Iterator[str]:
        for path in self._staged_paths:
            if not os.path.exists(path):
                yield f"fio did not create {printable(path)}"

    def close(self) -> None:
        """Remove the directories. May be called twice."""
        while self._directories:
            self._directories.popitem()[1].close()
        if self.link_directory is not None:
            remove(self.link_directory)
            self.link_directory = None

    def _stage_text(self, text: str, sections: Sequence[SectionFiles], cwd: Path) -> str:
        per_section: dict[int, Mapping[str, str]] = {}
        for index, (job, files) in enumerate(
            zip(jobfile.effective_sections(text), sections, strict=True)
        ):
            paths = [os.path.join(cwd, path) for path in files.paths]
            makes = not all(map(os.path.exists, paths))
            if "filename" in job.options:
                at = [self._stage_named(path) for path in paths] if makes else paths
                per_section[index] = {"filename": join_paths(at)}
            elif paths:
                at = [os.path.join(cwd, directory) for directory in _directories(job.options)]
                if makes:
                    for path in paths:
                        self._stage_generated(path)
                    at = [self._directory(directory) for directory in at]
                per_section[index] = {"directory": join_paths(at)}
        return jobfile.with_overrides(text, {}, per_section)

    def _stage_named(self, path: str) -> str:
        """The staged path of a file in ``filename=``; a device keeps its path."""
        if is_special(path):
            return path
        parent, name = _directory_and_name(path)
        if os.path.lexists(path):
            return self._link(path, os.path.join(parent, name))
        return self._stage_new(parent, name)

    def _stage_generated(self, path: str) -> None:
        """Stage a file that fio names itself. All files of one directory are staged in one
        directory."""
        parent, name = _directory_and_name(path)
        staged = os.path.join(self._staging_directory(parent), name)
        if not os.path.lexists(path):
            self._stage_new(parent, name)
        elif not os.path.lexists(staged):
            self._symlink(path, staged)

    def _stage_new(self, parent: str, name: str) -> str:
        staged = os.path.join(self._staging_directory(parent), name)
        self._staged_paths[os.path.join(parent, name)] = staged
        return staged

    def _link(self, path: str, final_path: str) -> str:
        if final_path in self._links:
            return self._links[final_path]
        if self.link_directory is None:
            self.link_directory = private_directory()
        # each link has a directory of its own, because two files may have the same name
        directory = self.link_directory / str(len(self._links))
        directory.mkdir()
        staged = str(directory / os.path.basename(final_path))
        self._symlink(path, staged)
        self._links[final_path] = staged
        return staged

    def _symlink(self, path: str, staged: str) -> None:
        if not os.path.exists(path):
            raise UsageError(
                f"The job uses {printable(path)}, a symbolic link whose target does not exist.",
                "Remove the link, or name the file itself.",
            )
        try:
            os.symlink(os.path.realpath(path), staged)
        except OSError as error:
            raise UsageError(
                f"{printable(path)} exists but other files of the job do not. iopstui cannot "
                "create those separately, because the file system has no symbolic links "
                f"({error.strerror}).",
                "Create the missing files first, or list all files with filename=.",
            ) from error
        self._links.setdefault(path, staged)

    def _directory(self, place: str) -> str:
        # with several directories, there may be one that no clone uses
        staging = self._directories.get(os.path.realpath(place))
        return place if staging is None else str(staging.scratch.path)

    def _staging_directory(self, parent: str) -> str:
        """The path of the staging directory in ``parent``, which is created if necessary."""
        if parent not in self._directories:
            self._directories[parent] = _make_staging(parent)
        return str(self._directories[parent].scratch.path)


def _make_staging(parent: str) -> _StagingDirectory:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        parent_fd = os.open(parent, flags)
    except OSError as error:
        raise UsageError(
            f"The job uses the directory {printable(parent)}, which does not exist.",
            "Create it, or choose another target: iopstui run TARGET --job ...",
        ) from error
    try:
        return _StagingDirectory(make_scratch(Path(parent)), parent_fd)
    except BaseException:
        os.close(parent_fd)
        raise


def _directory_and_name(path: str) -> tuple[str, str]:
    parent, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise UsageError(f"The job opens {printable(path)} as a file, but it is a directory.",
                         "For files in a directory: directory=")  # fmt: skip
    return os.path.realpath(parent), name


def is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _directories(options: Mapping[str, str]) -> list[str]:
    """The directories in directory=; the current directory if it is not set."""
    return split_paths(options.get("directory", "")) or ["."]


@dataclass(frozen=True, slots=True)
class LentScratch:
    """A scratch directory whose files a run uses again, and whose owner removes it. ``max_bytes``
    limits each file for which the job gives no size, so that a point with more jobs has files of
    the same size."""

    scratch: Scratch
    max_bytes: int | None = None


class SharedScratch:
    """A scratch directory, or one in each of several directories, that runs share; ``close``
    removes it."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._private = private_directory()
        try:
            self.scratch: Scratch = make_scratches(directories)
        except BaseException:
            remove(self._private)
            raise
        self._guard: subprocess.Popen[bytes] | None = None
        guard = isolated_command(fio_guard)
        places = [str(self._private), "-", *map(str, self.scratch.paths)]
        # this guard removes the directory if iopstui is killed; else it would stay until the next
        # start
        with contextlib.suppress(OSError):
            self._guard = subprocess.Popen(
                [*guard, *places, "--", "sleep", "infinity"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """Remove the directory, because no run uses it any more."""
        self.scratch.close()
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):
                self._guard.stdin.write(b"kill\n")
                self._guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(timeout=5)
            self._guard = None
        remove(self._private)
