"""A file for node_exporter's textfile collector.

The collector reads every ``*.prom`` of its directory at any time, so a new file takes the place of
the old one as a whole (rename(2)). It reports each file's age (``node_textfile_mtime_seconds``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.text import printable

SUFFIX = ".prom"
MODE = 0o644
FIRST_LINE = "# HELP iopstui"
"""What such a file begins with; any other is not ours to replace."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Textfile:
    """The file at ``path``. Its directory is opened once, so later renames redirect nothing.
    Raises UsageError if it can't be written or is not ours."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._name = self._path.name
        self._new = f".{self._name}.{os.getpid()}"
        file_text = printable(path)
        if not self._name.endswith(SUFFIX) or "\0" in path:
            raise UsageError(
                f"--textfile {file_text} does not end in {SUFFIX}, so node_exporter would not "
                "read it.",
                f"For example: --textfile {file_text or 'iopstui'}{SUFFIX}",
            )
        self._directory = self._opened(file_text)
        try:
            self._check(file_text)
        except BaseException:
            os.close(self._directory)
            raise

    def _opened(self, file_text: str) -> int:
        try:
            return os.open(self._path.parent, _DIRECTORY)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"--textfile {file_text}: cannot open its directory ({why}).",
                "Use the directory that node_exporter reads (its --collector.textfile.directory).",
            ) from error

    def _check(self, file_text: str) -> None:
        """Check that the existing file may be replaced."""
        try:
            fd = os.open(self._name, _FILE | os.O_RDONLY, dir_fd=self._directory)
        except FileNotFoundError:
            return
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise UsageError(
                f"--textfile {file_text} exists and cannot be replaced: {why}.",
                "Choose another file.",
            ) from error
        try:
            # of a directory or a pipe nothing is read
            is_ours = stat.S_ISREG(os.fstat(fd).st_mode) and _is_ours(os.read(fd, len(FIRST_LINE)))
        finally:
            os.close(fd)
        if not is_ours:
            raise UsageError(f"--textfile {file_text} exists and was not written by iopstui.",
                             "Choose another file, or remove it.")  # fmt: skip

    def write(self, text: str) -> None:
        """Replace the content with ``text``. On OSError the old content remains."""
        with contextlib.suppress(FileNotFoundError):  # of one that was killed with our number
            os.unlink(self._new, dir_fd=self._directory)
        fd = os.open(self._new, _FILE | os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE,
                     dir_fd=self._directory)  # fmt: skip
        try:
            with open(fd, "wb") as file:
                # whatever the umask: the collector is another user
                os.fchmod(fd, MODE)
                file.write(text.encode())
            os.rename(self._new, self._name, src_dir_fd=self._directory,
                      dst_dir_fd=self._directory)  # fmt: skip
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._new, dir_fd=self._directory)
            raise

    def remove(self) -> None:
        """Remove the file, as nothing is measured any more. OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._directory)

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._directory)


def _is_ours(begin: bytes) -> bool:
    return begin in (b"", FIRST_LINE.encode())
