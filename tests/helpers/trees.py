"""Build small trees of /proc, /sys and /dev, laid out as in Linux 6.12."""

from __future__ import annotations

import os
from pathlib import Path

from iopstui.linux.kernel_files import Roots

PCI = "devices/pci0000:00/0000:00:0"
VIRTUAL = "devices/virtual/block"


class Tree:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.roots = Roots.under(base)
        for root in (self.roots.proc, self.roots.sys, self.roots.dev, self.roots.run):
            root.mkdir()
        (self.roots.sys / "class/block").mkdir(parents=True)

    def sys(self, path: str, content: str | bytes) -> Path:
        return self._write(self.roots.sys / path, content)

    def proc(self, path: str, content: str | bytes) -> Path:
        return self._write(self.roots.proc / path, content)

    def disk(
        self, name: str, where: str, dev: str | None, size: int | None = 2048, **attributes: str
    ) -> Path:
        """A whole disk at ``where``/``name``; in the keys of attributes, "__" stands for "/"."""
        directory = self.roots.sys / where / name
        self._node(directory, dev, size)
        self.attributes(directory, **attributes)
        return directory

    def partition(self, disk: Path, number: int, dev: str, size: int = 1024) -> Path:
        joint = "p" if disk.name[-1].isdigit() else ""
        directory = disk / f"{disk.name}{joint}{number}"
        self._node(directory, dev, size)
        self.attributes(directory, partition=str(number))
        return directory

    def attributes(self, directory: Path, **attributes: str) -> None:
        for key, value in attributes.items():
            self._write(directory / key.replace("__", "/"), value + "\n")

    def hctx(self, disk: Path, index: int, cpus: str, tags: int = 64, reserved: int = 0) -> None:
        self._write(disk / f"mq/{index}/cpu_list", cpus)
        self._write(disk / f"mq/{index}/nr_tags", f"{tags}\n")
        self._write(disk / f"mq/{index}/nr_reserved_tags", f"{reserved}\n")

    def irq(self, number: int, name: str, hwirq: int, cpus: str = "0", node: int = 0) -> None:
        self.sys(f"kernel/irq/{number}/actions", f"{name}\n")
        self.sys(f"kernel/irq/{number}/hwirq", f"{hwirq}\n")
        self.proc(f"irq/{number}/effective_affinity_list", f"{cpus}\n")
        self.proc(f"irq/{number}/node", f"{node}\n")

    def msi(self, where: str, first: int, names: list[str]) -> None:
        """Interrupt vectors ``first``, first+1, ... of the PCI device at ``where``."""
        for place, name in enumerate(names):
            self.sys(f"{where}/msi_irqs/{first + place}", "msix\n")
            self.irq(first + place, name, place, str(place))
        self.sys(f"{where}/irq", "11\n")

    def stacked(self, below: Path, above: Path) -> None:
        (below / "holders").mkdir(exist_ok=True)
        (above / "slaves").mkdir(exist_ok=True)
        (below / "holders" / above.name).symlink_to(above)
        (above / "slaves" / below.name).symlink_to(below)

    def driver(self, where: str, name: str) -> None:
        target = self.roots.sys / "bus/drivers" / name
        target.mkdir(parents=True, exist_ok=True)
        (self.roots.sys / where / "driver").symlink_to(target)

    def _node(self, directory: Path, dev: str | None, size: int | None) -> None:
        directory.mkdir(parents=True)
        if dev is not None:
            self._write(directory / "dev", dev + "\n")
        if size is not None:
            self._write(directory / "size", f"{size}\n")
        os.symlink(directory, self.roots.sys / "class/block" / directory.name)

    @staticmethod
    def _write(path: Path, content: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def virtio_disk(tree: Tree, name: str = "vda", queues: int = 4, dev: str = "254:0") -> Path:
    """A virtio-blk disk like the lab's: one interrupt vector for each queue, one for
    configuration."""
    pci = f"{PCI}7.0"
    disk = tree.disk(
        name,
        f"{pci}/virtio5/block",
        dev,
        2097152,
        serial="VBLK4Q",
        diskseq="1",
        ro="0",
        hidden="0",
        queue__scheduler="[none] mq-deadline kyber bfq",
        queue__rq_affinity="1",
        queue__nr_requests="256",
        queue__rotational="0",
        queue__write_cache="write back",
        queue__logical_block_size="512",
        queue__physical_block_size="4096",
        queue__wbt_lat_usec="-1",
        queue__zoned="none",
    )
    for index in range(queues):
        tree.hctx(disk, index, str(index), 128)
    tree.msi(pci, 33, ["virtio5-config", *(f"virtio5-req.{k}" for k in range(queues))])
    tree.driver(f"{pci}/virtio5", "virtio_blk")
    tree.sys(f"{pci}/numa_node", "-1\n")
    tree.proc("devices", "Character devices:\n  1 mem\n\nBlock devices:\n  8 sd\n254 virtblk\n")
    return disk
