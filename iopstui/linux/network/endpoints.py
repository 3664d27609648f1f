"""Servers that a target's I/O goes to over TCP: of NFS and SMB mounts, NVMe/TCP, iSCSI.

Sources: mount options in mountinfo (nfs(5), mount.cifs(8)), drivers/nvme/host/sysfs.c (transport,
address), drivers/scsi/scsi_transport_iscsi.c (iscsi_connection)."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from iopstui.linux.devices.usage.mounts import MountEntry, read_own_mounts
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_text
from iopstui.model.block.target import NFS, SMB, Target

NFS_KIND, SMB_KIND, NVME_KIND, ISCSI_KIND = "NFS", "SMB", "NVMe/TCP", "iSCSI"
NFS_PORT, SMB_PORT = 2049, 445
_CONTROLLER = re.compile(r"nvme[0-9]+")
_SESSION = re.compile(r"/session([0-9]+)/")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address and port, and what it serves."""

    address: str
    port: int
    kind: str


def endpoints(target: Target, roots: Roots) -> tuple[Endpoint, ...]:
    """All servers of the target, each once. Sends nothing over the network."""
    candidates = (
        *_mount_endpoints(target, roots),
        *_nvme_endpoints(target, roots),
        *_iscsi_endpoints(target, roots),
    )
    return tuple(dict.fromkeys(endpoint for endpoint in candidates if endpoint is not None))


def _mount_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    mountpoints = {place.mountpoint for place in target.places if place.fstype in (*NFS, *SMB)}
    if not mountpoints:
        return
    # the last mount at a path hides the others
    mounts = {entry.mountpoint: entry for entry in read_own_mounts(roots)}
    for place in mountpoints & mounts.keys():
        entry = mounts[place or ""]
        if entry.fstype in (*NFS, *SMB):
            yield _mount_endpoint(entry)


def _mount_endpoint(entry: MountEntry) -> Endpoint | None:
    options = dict(option.partition("=")[::2] for option in entry.super_options.split(","))
    nfs = entry.fstype in NFS
    if options.get("proto", "tcp") not in ("tcp", "tcp6") or "rdma" in options:
        return None
    kind, port = (NFS_KIND, NFS_PORT) if nfs else (SMB_KIND, SMB_PORT)
    return _endpoint(options.get("addr", ""), options.get("port", str(port)), kind)


def _nvme_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    for disk in target.tree:
        if not disk.startswith("nvme"):
            continue
        place = os.path.realpath(roots.sys / "class/block" / disk / "device")
        below = [name for name in list_names(place) if _CONTROLLER.fullmatch(name)]
        for directory in (place, *(f"{place}/{name}" for name in below)):
            if (read_text(f"{directory}/transport") or "").strip() == "tcp":
                text = (read_text(f"{directory}/address") or "").strip()
                address = dict(field.partition("=")[::2] for field in text.split(","))
                yield _endpoint(address.get("traddr", ""), address.get("trsvcid", ""), NVME_KIND)


def _iscsi_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    connections = roots.sys / "class/iscsi_connection"
    for disk in target.tree:
        session = _SESSION.search(os.path.realpath(roots.sys / "class/block" / disk / "device"))
        for name in list_names(connections) if session else ():
            if session and name.startswith(f"connection{session[1]}:"):
                address, port = (
                    (read_text(connections / name / attribute) or "").strip()
                    for attribute in ("address", "port")
                )
                yield _endpoint(address, port, ISCSI_KIND)


def _endpoint(address: str, port: str, kind: str) -> Endpoint | None:
    """The endpoint; ``None`` if these are not an address and a port."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        return None
    return Endpoint(str(parsed), int(port), kind)
