"""A tree of files that a job must not change, and a check that none was changed."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


class Bait:
    """Files, links and directories below ``top``, with the names job files like to use."""

    NAMES = ("keep", "a.0.0", "a.0.1", "keep.1.0", "log_bw.1.log", "passwd", "sub/keep",
             "local-a-0-verify.state")  # fmt: skip

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "sub").mkdir(parents=True)
        for number, name in enumerate(self.NAMES):
            (top / name).write_bytes(bytes([65 + number]) * 4096)
        (top / "link").symlink_to(top / "keep")
        (top / "empty").mkdir()
        self._before = self._digest()

    def harm(self) -> list[str]:
        """Paths that were changed or removed. New files are no harm."""
        now = self._digest()
        return [path for path, what in self._before.items() if now.get(path) != what]

    def new(self) -> list[str]:
        """Files that were not there at first."""
        return [path for path in self._digest() if path not in self._before]

    def _digest(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for directory, names, files in os.walk(self.top):
            for name in (*names, *files):
                path = os.path.join(directory, name)
                info = os.lstat(path)
                what: tuple[object, ...] = (stat.S_IFMT(info.st_mode), info.st_mode, info.st_uid)
                if stat.S_ISREG(info.st_mode):
                    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                    what = (*what, info.st_ino, info.st_size, info.st_mtime_ns, digest)
                found[path] = what
        return found
