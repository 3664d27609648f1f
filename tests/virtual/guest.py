"""A guest in virtual time: its clock counts instructions, so a busy host slows it down without
effect on its figures.

Its root is this machine's, read-only, below a layer in memory; it writes only to the directory of
results."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

SCRIPT = Path(__file__).resolve().with_name("guest.sh")
MODULES = (
    "virtio_pci", "9p", "9pnet_virtio", "overlay", "configfs", "crc32c_generic", "ext4", "sd_mod",
    "scsi_debug", "null_blk",
)  # fmt: skip
PARAMETERS = {
    "scsi_debug": "ndelay=1000000 random=1 dev_size_mb=400 max_queue=1",
    "null_blk": "nr_devices=0",
}
LONGEST_S = 3600.0
INIT = """\
#!/busybox sh
b=/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
{modules}
o=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o ro,$o,cache=loose root /host || $b poweroff -f
$b mount -t tmpfs -o size=60% layer /layer
$b mkdir /layer/upper /layer/work
$b mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /new
for d in dev sys proc; do $b mount --move /$d /new/$d; done
exec $b switch_root /new /bin/bash {script}
"""


def initial_files(modules: Path, busybox: Path) -> bytes:
    """An initramfs with those of the kernel's ``modules`` that the guest needs."""
    files: dict[str, bytes] = {"busybox": busybox.read_bytes()}
    lines = []
    for number, path in enumerate(needed_modules(modules, MODULES)):
        name = path.name.partition(".")[0].replace("-", "_")
        files[f"m{number}"] = unpacked(path)
        lines.append(f"$b insmod /m{number} {PARAMETERS.get(name, '')} || echo no {name}")
    files["init"] = INIT.format(modules="\n".join(lines), script=SCRIPT).encode()
    directories = ("proc", "sys", "dev", "host", "layer", "new")
    return b"".join(archive(directories, files))


def needed_modules(modules: Path, names: Iterable[str]) -> list[Path]:
    """The files of these modules, each after the modules it needs; built-in modules have no
    file."""
    needs: dict[str, tuple[str, list[str]]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, others = line.partition(":")
        needs[_module_name(file)] = file, others.split()
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name in needs:
            file, others = needs[name]
            for other in reversed(others):
                add(_module_name(other))
            ordered.setdefault(file)

    for name in names:
        add(name)
    return [modules / file for file in ordered]


def _module_name(file: str) -> str:
    return Path(file).name.partition(".")[0].replace("-", "_")


def unpacked(path: Path) -> bytes:
    """The bytes of a module's file, unpacked."""
    match path.suffix:
        case ".xz":
            return lzma.decompress(path.read_bytes())
        case ".gz":
            return gzip.decompress(path.read_bytes())
        case ".zst":
            return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
        case _:
            return path.read_bytes()


def archive(directories: Iterable[str], files: dict[str, bytes]) -> Iterator[bytes]:
    """An archive in cpio's "newc" format, which the kernel reads."""
    entries = [*((name, 0o40755, b"") for name in directories),
               *((name, 0o100755, data) for name, data in files.items()),
               ("TRAILER!!!", 0, b"")]  # fmt: skip
    for number, (name, mode, data) in enumerate(entries, 1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        yield head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def boot(kernel: Path, initrd: Path, out: Path) -> float:
    """Run the guest until it powers off. Returns the seconds that this took."""
    share = "security_model=none,multidevs=remap"
    command = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
        "-machine", "pc,hpet=on,usb=off,vmport=off", "-display", "none", "-vga", "none",
        "-accel", "tcg,thread=single,tb-size=512", "-cpu", "max,-la57",
        "-icount", "shift=1,sleep=off", "-smp", "1", "-m", "2500",
        "-kernel", str(kernel), "-initrd", str(initrd), "-serial", f"file:{out / 'console'}",
        "-fsdev", f"local,id=root,path=/,readonly=on,{share}",
        "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
        "-fsdev", f"local,id=out,path={out},{share}",
        "-device", "virtio-9p-pci,fsdev=out,mount_tag=out",
        "-append", "console=ttyS0 panic=-1 quiet mitigations=off nopti nowatchdog audit=0 "
        "tsc=reliable no_timer_check random.trust_cpu=on rcupdate.rcu_cpu_stall_suppress=1",
    ]  # fmt: skip
    began = time.monotonic()
    subprocess.run(command, check=True, timeout=LONGEST_S)
    return time.monotonic() - began


def missing_programs(busybox: str) -> list[str]:
    """The programs that must be installed first."""
    return [name for name in ("qemu-system-x86_64", busybox, "fio", "mkfs.ext4")
            if shutil.which(name) is None]  # fmt: skip
