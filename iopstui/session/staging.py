"""New files of a job that names its own: made beside their places, moved there when whole.

fio removes a file before it makes it anew, and makes what it does not find. So it never gets the
right to make anything in a directory that holds other people's files: it works in a directory of
ours beside it, on the same file system, in which every name of the job is either still free or a
symbolic link to the file that exists. What fio has made is then moved to the name that was meant,
which must still be free.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.model import jobfile
from iopstui.session.job_text import escaped
from iopstui.session.scratch import Scratch, make_scratch
from iopstui.sources.fio_inspect import SectionFiles
from iopstui.text import printable

_AT_FDCWD, _RENAME_NOREPLACE = -100, 1


class Staging:
    """The places where the missing ones of ``files`` (absolute paths) are made.

    ``made`` are the directories; ``close`` removes them with all that is still in them. Raises
    UsageError where none can be made.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._dirs: dict[str, Scratch] = {}
        # where fio works -> where it belongs
        self._new: dict[str, str] = {}
        self._links: dict[str, str] = {}
        try:
            for path in files:
                self._stage(path)
        except BaseException:
            self.close()
            raise

    @property
    def made(self) -> tuple[Scratch, ...]:
        """Directories this run has made."""
        return tuple(self._dirs.values())

    @property
    def existing(self) -> tuple[str, ...]:
        """The files that exist and fio reaches through a link."""
        return tuple(self._links.values())

    @property
    def new(self) -> tuple[str, ...]:
        """The names that are still free."""
        return tuple(self._new.values())

    def staged(self, path: str) -> str:
        """Where fio works on what the job calls ``path``; a device stays where it is."""
        if _is_special(path):
            return path
        parent, name = _parts(path)
        return os.path.join(self._dirs[parent].path, name)

    def text(self, text: str, sections: Sequence[SectionFiles], cwd: Path) -> str:
        """The job with every section on the staged files; a file that is a device stays."""
        per_section: dict[int, Mapping[str, str]] = {}
        for index, (job, found) in enumerate(zip(jobfile.effective(text), sections, strict=True)):
            if "filename" in job.options:
                paths = [self.staged(os.path.join(cwd, path)) for path in found.paths]
                per_section[index] = {"filename": ":".join(map(escaped, paths))}
            elif found.paths:
                places = [os.path.join(cwd, one) for one in _directories(job.options)]
                staged = [self._directory(one) for one in places]
                per_section[index] = {"directory": ":".join(map(escaped, staged))}
        return jobfile.changed(text, {}, per_section)

    def used_bytes(self) -> int:
        """Bytes allocated so far."""
        return sum(one.used_bytes() for one in self.made)

    def publish(self) -> list[str]:
        """Move what fio has made to where it belongs; what could not be moved, in words."""
        said = []
        for staged, wanted in self._new.items():
            if not os.path.lexists(staged):
                continue
            try:
                _move(staged, wanted)
            except FileExistsError:
                said.append(f"{printable(wanted)} was made by somebody else meanwhile and is left "
                            "as it is; the job's own file is removed")  # fmt: skip
            except OSError as error:
                said.append(f"{printable(wanted)} can't be made: {error.strerror}")
        return [*said, *self._replaced()]

    def _replaced(self) -> Iterator[str]:
        """fio makes a file anew that is too small for the job: then the link is gone."""
        for staged, meant in self._links.items():
            if os.path.lexists(staged) and not os.path.islink(staged):
                yield (
                    f"{printable(meant)} is smaller than the job needs and is left as it is, for "
                    "a file that exists is never lengthened"
                )

    def check(self) -> None:
        """Raises Refused if the files are not those that the job means."""
        for why in (*self.publish(), *self._missing()):
            raise Refused(f"The job is not run: {why}.",
                          "Name another file, or give a smaller size=.")  # fmt: skip

    def _missing(self) -> Iterator[str]:
        for wanted in self._new.values():
            if not os.path.exists(wanted):
                yield f"fio has not made {printable(wanted)}"

    def close(self) -> None:
        """Remove the directories. May be called twice."""
        while self._dirs:
            self._dirs.popitem()[1].close()

    def _directory(self, place: str) -> str:
        # one of several directories of which no clone uses this
        made = self._dirs.get(os.path.realpath(place))
        return place if made is None else str(made.path)

    def _stage(self, path: str) -> None:
        if _is_special(path):
            return
        parent, name = _parts(path)
        if not os.path.isdir(parent):
            raise UsageError(
                f"The job works in the directory {printable(parent)}, which does not exist.",
                "Make it, or name another place: iopstui run TARGET --job ...",
            )
        if parent not in self._dirs:
            self._dirs[parent] = make_scratch(Path(parent))
        staged = os.path.join(self._dirs[parent].path, name)
        if staged in self._new or staged in self._links:
            return
        if os.path.exists(path):
            os.symlink(os.path.realpath(path), staged)
            self._links[staged] = path
        elif os.path.lexists(path):
            raise UsageError(
                f"The job works on {printable(path)}, a symbolic link to nothing.",
                "Remove the link, or name the file itself.",
            )
        else:
            self._new[staged] = os.path.join(parent, name)


def _parts(path: str) -> tuple[str, str]:
    """The real directory and the name in it."""
    parent, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise UsageError(f"The job opens {printable(path)} as a file, but it is a directory.")
    return os.path.realpath(parent), name


def _is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _directories(options: Mapping[str, str]) -> list[str]:
    """The values of directory=, the current directory without it."""
    text = options.get("directory", "")
    parts = text.replace("\\:", "\0").split(":")
    return [part.replace("\0", ":") for part in parts if part] or ["."]


def _move(source: str, target: str) -> None:
    """rename(2) to a name that must be free (RENAME_NOREPLACE); where the file system knows no
    such thing a second link(2), which is refused as well. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.renameat2(
        _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE
    )
    if answer == 0:
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number), target)
    os.link(source, target, follow_symlinks=False)
    os.unlink(source)
