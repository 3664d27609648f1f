"""What a job runs against."""

from __future__ import annotations

from dataclasses import dataclass

DEVICE, FILE, DIRECTORY = "device", "file", "directory"


@dataclass(frozen=True, slots=True)
class Target:
    """A block device, a file, or a directory in which a scratch file is made.

    ``path`` is absolute. ``device`` is the kernel name of the block device it is on, ``None``
    if it is on none that can be seen; ``no_device`` then says why in words ("tmpfs has no
    block device"). ``tree`` lists ``device`` first and then everything below it (partition ->
    disk; dm, md, loop -> what they sit on), nearest first, without repeats. ``fstype`` and
    ``mountpoint`` describe the file system a file or directory is on.
    """

    kind: str
    path: str
    device: str | None
    tree: tuple[str, ...] = ()
    no_device: str = ""
    fstype: str | None = None
    mountpoint: str | None = None
