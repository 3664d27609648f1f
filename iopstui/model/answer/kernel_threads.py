"""What a thread of the kernel does, from its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.block.device import BlockDevice


@dataclass(frozen=True, slots=True)
class Role:
    """What a thread does, with the device it does it for ("": its name does not say)."""

    sentence: str
    device: str = ""

    def text(self, devices: Mapping[str, BlockDevice]) -> str:
        """ "the journal of /srv (jbd2)"; a device that is not mounted has its own name."""
        device = devices.get(self.device)
        place = device.mounts[0].mountpoint if device is not None and device.mounts else self.device
        return self.sentence.format(place)


def role(comm: str, numbers: Mapping[str, str]) -> Role | None:
    """ "jbd2/vda-8" -> the journal of vda; ``None`` for a thread whose name says nothing.
    ``numbers`` has device names by "major:minor"."""
    for pattern, sentence in _ROLES:
        match = re.match(pattern, comm)
        if match is not None:
            name = match[1] if match.groups() else ""
            return Role(sentence, numbers.get(name, name))
    return None


_ROLES: tuple[tuple[str, str], ...] = (
    (r"jbd2/(.+?)-\d+$", "the journal of {} (jbd2)"),
    (r"kworker/.*[-+]flush-(\d+:\d+)", "write-back of the page cache on {}"),
    (r"kworker/.*[-+]flush-btrfs", "write-back of the page cache on btrfs"),
    (r"kworker/.*[-+](?:writeback|wb_)", "write-back of the page cache"),
    (r"(md\d+)_resync", "resync of {} (md)"),
    (r"(md\d+)_(?:raid|cluster)", "writes of the array {} (md)"),
    (r"kswapd\d*", "memory reclaim (kswapd)"),
    (r"xfsaild/(.+)$", "metadata of {} (xfs)"),
    (r"kworker/.*[-+]xfs-\w+/(\S+)", "metadata of {} (xfs)"),
    (r"btrfs-transacti", "a commit of btrfs"),
    (r"btrfs-cleaner", "cleaning of btrfs snapshots"),
    (r"dmcrypt_write/(\d+:\d+)", "writes of {} (dm-crypt)"),
    (r"kworker/.*[-+]kcryptd", "encryption (dm-crypt)"),
    (r"kworker/.*[-+](loop\d+)", "I/O of {}"),
    (r"(loop\d+)$", "I/O of {}"),
    (r"kworker/.*[-+]kdelayd", "delayed I/O (dm-delay)"),
    (r"(?:txg_sync|z_wr_iss|z_rd_iss)", "ZFS"),
    (r"nfsd", "NFS clients' I/O (nfsd)"),
)
