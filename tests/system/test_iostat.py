"""Compare the sampler with the real iostat over the same seconds of a real fio job."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import Roots
from iopstui.model.figures.disk import DiskRates, disk_rates
from iopstui.model.samples import KernelSample
from iopstui.model.sizes import MIB

pytestmark = pytest.mark.alone

WINDOW_S = 2
RUN_S = 1


@pytest.fixture(scope="module")
def iostat() -> str:
    path = shutil.which("iostat")
    if not path:
        pytest.skip("iostat (sysstat) is not installed")
    return path


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[tuple[Path, str]]:
    """Path for a file on a block device, and the kernel's name of that device."""
    for directory in (tmp_path_factory.mktemp("scratch"), root, Path("/var/tmp")):
        device = device_of(directory)
        if device and os.access(directory, os.W_OK):
            path = directory / f".iopstui-iostat-{os.getpid()}"
            yield path, device
            path.unlink(missing_ok=True)
            return
    pytest.skip("no directory here is on a block device that diskstats shows")


def device_of(directory: Path) -> str | None:
    number = directory.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    name = entry.resolve().name.replace("!", "/") if entry.exists() else None
    try:
        devices = {line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()}
    except OSError:
        return None
    return name if name in devices else None


def start_fio(fio: str, path: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [fio, "--name=iostat", f"--filename={path}", "--size=64m", "--ioengine=libaio",
         "--randrepeat=0", "--eta=never", *options],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def measure_both(
    iostat: str, fio: str, path: Path, device: str, *options: str
) -> tuple[dict[str, float], DiskRates]:
    """iostat's figures and ours for the same ``WINDOW_S`` seconds, while fio runs.

    iostat prints its first report right after its first reading, and its second right after the
    second reading. Our two readings are taken as soon as each report is seen."""
    sampler = KernelSampler(Roots(), [device], [])
    command = [iostat, "-x", "-m", "-d", device, str(WINDOW_S), "2"]
    environment = {**os.environ, "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        readings: list[KernelSample] = []
        columns: list[str] = []
        values: list[str] = []
        for line in process.stdout:
            fields = line.split()
            if fields[:1] == ["Device"]:
                readings.append(sampler.sample())
                columns = fields[1:]
                if len(readings) == 1:
                    job = start_fio(fio, path, f"--runtime={RUN_S}", "--time_based", *options)
            elif fields[:1] == [device]:
                values = fields[1:]
    sampler.close()
    assert process.returncode == 0
    assert job.wait() == 0
    first, last = readings
    seconds = (last.monotonic_ns - first.monotonic_ns) / 1e9
    rates = disk_rates(last.disks[device], first.disks[device], seconds)
    assert rates is not None
    return dict(zip(columns, map(float, values), strict=True)), rates


def own_figures(rates: DiskRates) -> dict[str, float | None]:
    """Our figures under iostat's names and in its units."""

    def mib(value: float | None) -> float | None:
        return None if value is None else value / MIB

    def kib(value: float | None) -> float | None:
        return None if value is None else value / 1024

    return {
        "r/s": rates.r_s, "rMB/s": mib(rates.r_bytes_s), "rrqm/s": rates.rrqm_s,
        "r_await": rates.r_await, "rareq-sz": kib(rates.rareq_size),
        "w/s": rates.w_s, "wMB/s": mib(rates.w_bytes_s), "wrqm/s": rates.wrqm_s,
        "w_await": rates.w_await, "wareq-sz": kib(rates.wareq_size),
        "d/s": rates.d_s, "dMB/s": mib(rates.d_bytes_s), "drqm/s": rates.drqm_s,
        "f/s": rates.f_s, "aqu-sz": rates.aqu_sz, "%util": rates.util,
    }  # fmt: skip


# iostat prints two decimals and takes its own seconds from a clock of 10 ms; other programs use
# the device at both ends of the window.
RELATIVE = 0.05
ABSOLUTE = {"r/s": 5, "w/s": 20, "rrqm/s": 5, "wrqm/s": 20, "d/s": 5, "drqm/s": 5, "f/s": 5,
            "rMB/s": 0.1, "wMB/s": 0.5, "dMB/s": 5, "r_await": 0.02, "w_await": 0.05,
            "rareq-sz": 0.5, "wareq-sz": 2, "aqu-sz": 0.05, "%util": 2}  # fmt: skip
# Averages per request depend on single requests where there are few: of seven writes by other
# programs, one may fall between the two programs' readings.
FEW = 200
REQUESTS = {"r_await": "r/s", "rareq-sz": "r/s", "w_await": "w/s", "wareq-sz": "w/s"}
# What happens between the two programs' readings at one end of the window counts for only one of
# them: other programs' I/O (deleting files discards dozens of blocks at a time), or the job's I/O
# while one of the two waits for a CPU.
WINDOWS = 5


def differs(theirs: dict[str, float], ours: dict[str, float | None], name: str) -> bool:
    """Whether a figure differs from iostat's, which prints 0 without requests; an average of few
    requests is not compared."""
    if name in REQUESTS and (ours[REQUESTS[name]] or 0) * WINDOW_S < FEW:
        return False
    value = ours[name] if ours[name] is not None else 0.0
    return bool(value != pytest.approx(theirs[name], rel=RELATIVE, abs=ABSOLUTE[name]))


@pytest.mark.parametrize(
    ("options", "busy"),
    [
        (("--rw=randrw", "--bs=4k", "--direct=1", "--iodepth=8"), ("r/s", "w/s", "r_await")),
        (
            ("--rw=read", "--bs=4k", "--direct=1", "--iodepth=32", "--iodepth_batch=16"),
            ("rrqm/s", "rMB/s", "aqu-sz"),
        ),
    ],
    ids=["random", "merged"],
)
def test_figures_equal_those_of_iostat(
    iostat: str,
    fio: str,
    scratch: tuple[Path, str],
    options: tuple[str, ...],
    busy: tuple[str, ...],
) -> None:
    path, device = scratch
    assert start_fio(fio, path, "--rw=write", "--bs=1m", "--end_fsync=1").wait() == 0
    for _ in range(WINDOWS):
        theirs, rates = measure_both(iostat, fio, path, device, *options)
        ours = own_figures(rates)
        compared = [name for name in ours if name in theirs]
        unequal = [name for name in compared if differs(theirs, ours, name)]
        if not unequal:
            break
    for name in busy:
        # device mapper, loop and similar devices do not merge
        assert (ours[name] or 0) > 0 or name == "rrqm/s", name
    assert {"r/s", "w/s", "rMB/s", "wMB/s", "r_await", "aqu-sz", "%util"} <= set(compared)
    print(*(f"{name}: {theirs[name]} {ours[name]}" for name in compared), sep="\n")
    assert not unequal, (unequal, theirs, ours)
