"""Thirteen known fio jobs captured and given back: are the figures those of the job?

    sudo .venv/bin/python tests/truth/capture DISK DIR [JOB ...]

Each job runs on a file in DIR, which must be on DISK. `iopstui capture --check DIR` captures it for
eight seconds, then runs what it made of it. Prints for each figure: fio's own, captured, and
replayed. Takes half a minute a job, and 400 MiB in DIR.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 8
SIZE = "192m"
COMMON = (f"--size={SIZE} --direct=1 --ioengine=libaio --norandommap --randrepeat=0 --time_based "
          "--runtime=200")  # fmt: skip
JOBS = {
    "one": "--rw=randread --bs=4k --iodepth=1 --rate_iops=500",
    "deep": "--rw=randread --bs=4k --iodepth=32",
    "writes": "--rw=randwrite --bs=8k --iodepth=8 --rate_iops=400",
    "sequential-reads": "--rw=read --bs=128k --iodepth=4 --rate_iops=200",
    "sequential-writes": "--rw=write --bs=64k --iodepth=1 --rate_iops=200",
    "mixed": "--rw=randrw --rwmixread=70 --bs=4k --iodepth=16 --rate_iops=700,300",
    "split": "--rw=randread --bssplit=4k/60:16k/30:64k/10 --iodepth=8 --rate_iops=500",
    "split-two-ways": "--rw=randrw --bssplit=4k/50:8k/50,16k/100 --iodepth=4 --rate_iops=300,300",
    "partly-random": "--rw=randread --percentage_random=30 --bs=16k --iodepth=1 --rate_iops=400",
    "poisson": "--rw=randread --bs=4k --iodepth=16 --rate_iops=200 --rate_process=poisson",
    "log": "--rw=write --bs=8k --iodepth=1 --fdatasync=10 --rate_iops=300",
    "bursts": "--rw=randread --bs=4k --iodepth=8 --thinktime=200ms --thinktime_blocks=50",
    "hot": "--rw=randread --bs=4k --iodepth=4 --rate_iops=1000 "
           "--random_distribution=zoned:80/20:20/80",
}  # fmt: skip


def main() -> int:
    """Run the named jobs, or all."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    disk, place = sys.argv[1], Path(sys.argv[2])
    data = place / "capture-truth.data"
    try:
        fio("--name=layout", f"--filename={data}", f"--size={SIZE}", "--rw=write", "--bs=1m")
        for name in sys.argv[3:] or JOBS:
            with TemporaryDirectory() as private:
                print(f"== {name}: {JOBS[name]}")
                show(*captured(disk, place, data, JOBS[name], Path(private)))
    finally:
        data.unlink(missing_ok=True)
    return 0


def fio(*options: str) -> None:
    """Run fio to its end."""
    subprocess.run(["fio", *options, "--direct=1"], check=True, stdout=subprocess.DEVNULL)


def captured(
    disk: str, place: Path, data: Path, options: str, private: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """fio's document of the known job, and the JSON of its capture and replay. The job is stopped
    after its capture, so the replay runs alone."""
    document, job_file = private / "fio.json", private / "made.fio"
    job = subprocess.Popen([
        "fio", "--name=known", f"--filename={data}", *shlex.split(f"{COMMON} {options}"),
        "--output-format=json", f"--output={document}",
    ])  # fmt: skip
    time.sleep(2)
    command = [sys.executable, "-m", "iopstui", "capture", disk, "--pid", str(job.pid), "--for",
               f"{SECONDS}s", "-o", str(job_file), "--json", "--check", str(place)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as capture:
        while not job_file.exists() and capture.poll() is None:
            time.sleep(0.05)
        job.send_signal(signal.SIGINT)
        job.wait()
        answer, _ = capture.communicate()
    text = document.read_text()
    return json.loads(text[text.index("{") :])["jobs"][0], json.loads(answer)


def show(expected: dict[str, Any], captured: dict[str, Any]) -> None:
    """Print each figure of the job, of the capture and of the replay, one line each."""
    for kind in ("read", "write"):
        if not expected[kind]["total_ios"]:
            continue
        mean = expected[kind]["io_bytes"] / expected[kind]["total_ios"]
        of = captured["total"][kind]
        sizes = {int(size) >> 10: f"{100 * count / of['requests']:.1f}"
                 for size, count in of["sizes"].items()}  # fmt: skip
        print(f"   {kind}: fio {expected[kind]['iops']:.0f}/s of {mean:.0f} B; captured "
              f"{of['rate']:.0f}/s of {of['bytes'] / of['requests']:.0f} B, depth "
              f"{of['depth']:.2f}, sizes in KiB (%) {sizes}, zones {of['zones']}")  # fmt: skip
    for row in captured["comparison"]:
        close = {None: "?", True: "close", False: "differs"}[row["close"]]
        print(f"   {row['figure']:20} {row['captured']:>10} {row['replayed']:>10}  {close}")


if __name__ == "__main__":
    sys.exit(main())
