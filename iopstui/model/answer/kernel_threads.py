"""What a thread of the kernel does, from its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_Names = Mapping[str, str]
"""Kernel name of a device -> where it is mounted, or the name again."""


def role(comm: str, numbers: Mapping[str, str], mounted: _Names) -> str:
    """ "jbd2/vda-8" -> "the journal of / (jbd2)"; "" for a thread whose name says nothing.
    ``numbers`` has device names by "major:minor", ``mounted`` where devices are mounted."""
    for pattern, text in _ROLES:
        match = re.match(pattern, comm)
        if match is not None:
            name = match[1] if match.groups() else ""
            return text(mounted.get(numbers.get(name, name), numbers.get(name, name)))
    return ""


_ROLES: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"jbd2/(.+?)-\d+$", "the journal of {} (jbd2)".format),
    (r"kworker/.*[-+]flush-(\d+:\d+)", "write-back of the page cache on {}".format),
    (r"kworker/.*[-+]flush-btrfs", lambda name: "write-back of the page cache on btrfs"),
    (r"kworker/.*[-+](?:writeback|wb_)", lambda name: "write-back of the page cache"),
    (r"(md\d+)_resync", "resync of {} (md)".format),
    (r"(md\d+)_(?:raid|cluster)", "writes of the array {} (md)".format),
    (r"kswapd\d*", lambda name: "swapping, because memory is short (kswapd)"),
    (r"xfsaild/(.+)$", "metadata of {} (xfs)".format),
    (r"kworker/.*[-+]xfs-\w+/(\S+)", "metadata of {} (xfs)".format),
    (r"btrfs-transacti", lambda name: "a commit of btrfs"),
    (r"btrfs-cleaner", lambda name: "cleaning of btrfs snapshots"),
    (r"dmcrypt_write/(\d+:\d+)", "writes of {} (dm-crypt)".format),
    (r"kworker/.*[-+]kcryptd", lambda name: "encryption (dm-crypt)"),
    (r"kworker/.*[-+](loop\d+)", "I/O of {}".format),
    (r"(loop\d+)$", "I/O of {}".format),
    (r"kworker/.*[-+]kdelayd", lambda name: "delayed I/O (dm-delay)"),
    (r"(?:txg_sync|z_wr_iss|z_rd_iss)", lambda name: "ZFS"),
    (r"nfsd", lambda name: "NFS clients' I/O (nfsd)"),
)
