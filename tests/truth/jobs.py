"""Short fio jobs for which a second's figures are easily wrong: slow sections, stages, delays,
pauses, verify.

A line of ``KINDS`` is ``NAME: OPTIONS of all sections [SECTION] OPTIONS ...``. Options that begin
with ``--`` are iopstui's. ``kill=3`` kills fio's main process 3 s after its first document."""

from __future__ import annotations

from dataclasses import dataclass

BASE = {
    "size": "8m", "bs": "4k", "time_based": "1", "runtime": "6", "direct": "1",
    "ioengine": "libaio", "iodepth": "8", "rw": "randread", "rate_iops": "3000",
}  # fmt: skip
KINDS = """
plain: [a]
psync: ioengine=psync [a]
sync: ioengine=sync rw=read [a]
io_uring: ioengine=io_uring iodepth=32 [a]
mmap: ioengine=mmap direct=0 [a]
null: ioengine=null [a]
posixaio: ioengine=posixaio rate_iops=1000 [a]
buffered reads: direct=0 ioengine=psync [a]
buffered writes: direct=0 ioengine=psync rw=randwrite [a]
threads: thread=1 numjobs=3 rate_iops=1000 [a]
two sizes: [a] [b] rw=randwrite bs=16k rate_iops=700
slow: [slow] rate_iops=2 iodepth=1 [fast]
slow second: [fast] [slow] rate_iops=2 iodepth=1
slow 1: [slow] rate_iops=1 [fast]
slow 5: [slow] rate_iops=5 [fast]
three slow: [a] rate_iops=1 [b] rate_iops=2 [c] rate_iops=5 [fast]
slow only: rate_iops=20 [slow]
slow psync: ioengine=psync [slow] rate_iops=2 [fast]
slow io_uring: ioengine=io_uring iodepth=32 [slow] rate_iops=2 [fast]
slow sync: ioengine=sync rw=rw rate_iops=1500 [slow] rate_iops=1,1 [fast]
slow mmap: ioengine=mmap direct=0 [slow] rate_iops=2 [fast]
slow null: ioengine=null [slow] rate_iops=2 [fast]
slow threads: thread=1 [slow] rate_iops=2 [fast]
slow group: group_reporting=1 rate_iops=2 [slow] numjobs=3 [fast] rate_iops=3000
slow read beside writes: [slow] rate_iops=2 [fast] rw=randwrite
slow fdatasync: rw=randwrite ioengine=psync [slow] fdatasync=1 rate_iops=5 [fast] rate_iops=1500
slow batches: iodepth=64 iodepth_batch=32 iodepth_batch_complete_min=32 [s] rate_iops=40 [f]
batches: iodepth=64 iodepth_batch=16 iodepth_batch_complete_min=8 [a]
poisson: rate_process=poisson [a]
slow poisson: rate_process=poisson [slow] rate_iops=3 [fast]
flow: [a] flow=1 flow_id=1 flow_sleep=300000 [b] flow=8 flow_id=1 flow_sleep=300000
thinktime: thinktime=1500000 thinktime_blocks=4500 [a]
slow thinktime: [slow] thinktime=400000 rate_iops=0 [fast]
long thinktime: [slow] thinktime=3s thinktime_blocks=20 [fast]
spinning thinktime: [slow] thinktime=500000 thinktime_spin=200000 rate_iops=0 [fast]
stages: runtime=3 [a] rate_iops=2000 [b] stonewall=1 rate_iops=500
slow stages: runtime=3 [a] [b] stonewall=1 rate_iops=500 [c] stonewall=1 rate_iops=2
null stages: ioengine=null runtime=3 [a] bs=64k rate_iops=2000 [b] stonewall=1 rate_iops=500
group stages: group_reporting=1 numjobs=2 runtime=3 [a] rate_iops=1000 [b] stonewall=1 rw=randwrite
startdelay: [a] [b] startdelay=2 runtime=4
slow startdelay: [a] [b] startdelay=2 rate_iops=2 runtime=4
different ends: [a] runtime=3 [b] [c] runtime=4500ms rate_iops=4
early end: [a] size=4m time_based=0 runtime=0 rate_iops=400 [b]
slow early end: [a] size=40k time_based=0 runtime=0 rate_iops=3 [b]
exitall: [a] exitall=1 runtime=3 [b] runtime=20 [slow] rate_iops=2
four jobs: numjobs=4 rate_iops=700 group_reporting=1 [a]
four jobs alone: numjobs=4 rate_iops=700 [a]
verify: time_based=0 runtime=0 rw=randwrite verify=crc32c rate_iops=1000 [a]
slow verify: rw=randwrite [v] verify=crc32c size=3m time_based=0 runtime=0 rate_iops=300 [f]
verify_backlog: rw=randwrite verify=crc32c verify_backlog=512 rate_iops=1500 [a]
slow verify_backlog: rw=randwrite [v] verify=md5 verify_backlog=16 rate_iops=10 [f] rate_iops=1500
bssplit: bssplit=4k/50:16k/30:128k/20 rate_iops=700 [a]
slow bssplit: bssplit=4k/50:16k/50 rate_iops=700 [slow] rate_iops=2 [fast]
slow split beside 4k: [slow] bssplit=4k/50:16k/50 rate_iops=2 [fast]
bsrange: bsrange=4k-64k rw=randrw rate_iops=300 [a]
slow bsrange: bsrange=4k-16k rate_iops=700 [slow] rate_iops=2 [fast]
unified: unified_rw_reporting=1 rw=randrw rate_iops=1500 [a]
unified both: unified_rw_reporting=both rw=randrw rate_iops=1500 [a]
slow unified: unified_rw_reporting=1 rw=randrw rate_iops=1500 [slow] rate_iops=1,1 [fast]
gtod_reduce: gtod_reduce=1 [a]
slow gtod_reduce: gtod_reduce=1 [slow] rate_iops=2 [fast]
disable_clat: disable_clat=1 [slow] rate_iops=2 [fast]
lat_percentiles: lat_percentiles=1 clat_percentiles=0 [a]
rwmix: rw=randrw rwmixread=70 rate_iops=2000,800 [a]
slow rwmix: rw=randrw rwmixread=99 rate_iops=2000,2 [a]
rwmix sizes: rw=randrw bs=4k,16k rate_iops=600 [a]
rate: rate_iops=0 rw=randrw rate=4m,4m [slow] rate=8k,8k [fast]
large: size=64m bs=1m rw=read rate_iops=20 iodepth=1 [a]
slow large: [a] size=64m bs=4m rw=read rate_iops=3 iodepth=1 [b]
ramp: ramp_time=2 runtime=4 [a]
slow ramp: ramp_time=2 runtime=4 [slow] rate_iops=2 [fast]
ramp of three: ramp_time=1 runtime=5 numjobs=3 rate_iops=1000 [a]
killed: kill=3 runtime=20 [a]
killed slow: kill=3 runtime=20 [slow] rate_iops=2 [fast]
killed thinktime: kill=3 runtime=20 [slow] thinktime=400000 rate_iops=0 [fast]
quarter: --interval=0.25 [a]
slow quarter: --interval=0.25 [slow] rate_iops=2 [fast]
quarter thinktime: --interval=0.25 [slow] thinktime=400000 rate_iops=0 [fast]
half stages: --interval=0.5 runtime=3 [a] [b] stonewall=1 rate_iops=500
trim: trim=1 rw=randtrim rate_iops=700 [a]
slow trim: trim=1 rw=randtrim rate_iops=700 [slow] rate_iops=2 [fast]
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A job. ``options`` are iopstui's, ``kill_s`` is when to kill fio. ``trims`` needs a
    device."""

    name: str
    sections: dict[str, dict[str, str]]
    options: tuple[str, ...] = ()
    kill_s: float = 0.0
    trims: bool = False

    @property
    def logs(self) -> bool:
        """Whether fio logs its I/Os; if not, the job gets a device of its own, which counts
        them."""
        return not self.kill_s and not any("gtod_reduce" in s for s in self.sections.values())

    @property
    def on_device(self) -> bool:
        """Whether it needs a device of its own."""
        return self.trims or not self.logs

    @property
    def interval_s(self) -> float:
        """Seconds of a row."""
        return next((float(o.partition("=")[2]) for o in self.options if "interval" in o), 1.0)

    @property
    def ramps(self) -> bool:
        """Whether fio discards the figures of a first time (ramp_time)."""
        return any("ramp_time" in section for section in self.sections.values())

    def text(self, logs: str) -> str:
        """The job file; ``logs`` is the beginning of its logs' names."""
        lines = ["[global]", "log_unix_epoch=1"]
        for name, section in self.sections.items():
            lines += [f"[{name}]", f"write_lat_log={logs}{name}"]
            lines += [f"{option}={value}" for option, value in section.items()]
        return "\n".join(lines) + "\n"


def jobs() -> list[Job]:
    """A job for each line of ``KINDS``."""
    return [_job(*line.split(": ", 1)) for line in KINDS.strip().splitlines()]


def _job(name: str, text: str) -> Job:
    head, *parts = text.split("[")
    words = head.split()
    common = BASE | _options(word for word in words if not word.startswith("--"))
    kill_s, trims = float(common.pop("kill", "0")), bool(common.pop("trim", ""))
    sections = {}
    for part in parts:
        section, options = part.split("]")
        chosen = common | _options(options.split())
        # a job that ends by its size has no runtime
        sections[section] = {key: value for key, value in chosen.items() if value != "0"
                             or key == "direct" or key == "clat_percentiles"}  # fmt: skip
    chosen_options = tuple(word for word in words if word.startswith("--"))
    return Job(name, sections, chosen_options, kill_s, trims)


def _options(words: object) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)  # type: ignore[attr-defined]
