"""From what the user asked for to a job file that fio can run on this target."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.model import jobfile, target
from iopstui.model.binding import Binding, bind_to_queues
from iopstui.model.device import BlockDevice
from iopstui.model.jobfile import Section
from iopstui.model.target import Target
from iopstui.session import scratch
from iopstui.session.write_guard import Guarded, WriteGuard
from iopstui.sources.affinity import allowed
from iopstui.sources.fio_inspect import Fio, JobFacts, inspect
from iopstui.sources.fio_stream import flag, size_bytes
from iopstui.sources.jobs import find_job
from iopstui.sources.roots import Roots

MAX_JOB_FILE = 1 << 20
SMALLEST = 4 << 20
ROWS_BEFORE_GROUPING = 16


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What to run: a shipped job's name or a path, changed options (fio's names), the size of
    scratch files ("512m"), the paths whose data may be destroyed, and whether every job is
    bound to another hardware queue.

    For the points of an experiment: ``knobs`` are settings of the device in force while it
    runs; ``scratch`` is a scratch directory whose files are used and left for the next run, its
    owner removes it; ``share`` is the most bytes each file has without ``size``, so that a point
    with more jobs has files of the same size.
    """

    job: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    size: str | None = None
    destroy_data: tuple[str, ...] = ()
    bind: bool = False
    knobs: tuple[tuple[str, str], ...] = ()
    scratch: scratch.Scratch | None = None
    share: int | None = None


@dataclass(slots=True)
class Prepared:
    """Ready to run. ``text`` is the job file; ``files`` what it opens by name (absolute);
    ``layout_text`` creates the files first (``None``: nothing to create) with
    ``layout_bytes`` in them; ``scratch`` is removed by ``close``, unless ``lent``.
    """

    name: str
    title: str
    text: str
    facts: JobFacts
    files: tuple[str, ...]
    cwd: Path
    layout_text: str | None = None
    layout_bytes: int | None = None
    scratch: scratch.Scratch | None = None
    guard: WriteGuard | None = None
    binding: Binding | None = None
    lent: bool = False

    @property
    def read_only(self) -> bool:
        """True if fio says that no section writes; it is then run with --readonly."""
        return not self.facts.writes

    def let_go(self) -> None:
        """Let go of locks and held devices alone."""
        if self.guard is not None:
            self.guard.close()

    def close(self) -> None:
        """Remove the scratch files, let go of held devices."""
        self.let_go()
        if self.scratch is not None and not self.lent:
            self.scratch.close()


def read_job(path: Path) -> str:
    """The text of a job file; UsageError if it is none. Undecodable bytes are kept."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{path} is not a file, so it can't be a fio job.")
        if info.st_size > MAX_JOB_FILE:
            raise UsageError(f"{path} is too large for a fio job file ({info.st_size} bytes).")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Can't read the job file {path}: {error.strerror}.") from error
    if not data.strip():
        raise UsageError(f"The job file {path} is empty, so there is nothing to run.",
                         "Choose one of `iopstui jobs`, or write at least one [name] section.",
                         )  # fmt: skip
    if b"\0" in data:
        raise UsageError(f"{path} is not a fio job file: it holds binary data.")
    return data.decode("utf-8", "surrogateescape")


def names_its_files(text: str) -> bool:
    """True if a job says itself where it works (a path or a directory), so that no target is
    needed. A shipped job's relative ``filename=`` only says that its threads share a file."""
    return any("filename" in s.options or "directory" in s.options for s in jobfile.effective(text))


def prepare(
    request: JobRequest,
    where: Target | None,
    fio: Fio,
    private: Path,
    devices: Mapping[str, BlockDevice],
    roots: Roots,
) -> Prepared:
    """Everything short of starting fio. ``where`` is ``None`` if the job names its own files.

    ``private`` is the run's private directory. Raises UsageError, Refused or Missing; then
    nothing was created and nothing is left.
    """
    path = find_job(request.job)
    label = path.stem if path.suffix == ".fio" else path.name
    text = read_job(path)
    overrides = _implied(request.overrides)
    placed = {"filename", "directory"} & overrides.keys()
    if where is not None and placed:
        raise UsageError(
            f"--set {placed.pop()}= says where the job works, and so does the target.",
            "Name the place as TARGET alone: iopstui run TARGET --job ...",
        )
    binding = bound(text, overrides, where, devices) if request.bind else None
    if binding is not None:
        overrides |= {"cpus_allowed": binding.option, "cpus_allowed_policy": "split"}
    prepared = _prepared(request, where, fio, private, devices, roots, path, label, text, overrides)
    prepared.binding = binding
    return prepared


def bound(
    text: str,
    overrides: Mapping[str, str],
    where: Target | None,
    devices: Mapping[str, BlockDevice],
) -> Binding:
    """The CPUs that give each fio job another hardware queue; UsageError where there is none."""
    tree = where.tree if where is not None else ()
    queues = next((devices[name].hctxs for name in tree if devices[name].hctxs), ())
    jobs = jobfile.effective(jobfile.changed(text, overrides))
    count = sum(_number(job.options.get("numjobs")) for job in jobs)
    binding = bind_to_queues(queues, count, allowed())
    if binding is None:
        what = where.device if where is not None and where.device else "this target"
        raise UsageError(
            f"Jobs can't be bound to hardware queues: {what} has none that can be seen.",
            "Run it without --bind queues; `iopstui devices` shows each device's queues.",
        )
    return binding


def _prepared(
    request: JobRequest,
    where: Target | None,
    fio: Fio,
    private: Path,
    devices: Mapping[str, BlockDevice],
    roots: Roots,
    path: Path,
    label: str,
    text: str,
    overrides: Mapping[str, str],
) -> Prepared:
    given = _written(private, "given.fio", jobfile.changed(text, overrides))
    # fio's own verdict first: nothing below has to cope with what is no job at all
    inspect(fio, given, f"the job file {path}")
    if where is not None and where.kind == target.DIRECTORY:
        made = request.scratch or scratch.make_scratch(Path(where.path))
        try:
            prepared = _on_scratch(request, overrides, text, label, path, made, fio, private)
            guarded = Guarded(prepared.facts, prepared.files, made.path, scratch=made.path)
            prepared.guard = WriteGuard(guarded, (), roots)
            prepared.guard.check(devices)
            return prepared
        except BaseException:
            if request.scratch is None:
                made.close()
            raise
    if where is None:
        wanted = {**overrides, **({"size": request.size} if request.size else {})}
        text = jobfile.changed(text, _grouped(text, wanted))
    else:
        text = _on_path(text, overrides, request, where)
    cwd = Path.cwd()
    _check_directories(text, cwd)
    facts = inspect(fio, _written(private, "job.fio", text), f"the job file {path}", cwd)
    prepared = Prepared(label, describe(text), text, facts, absolute_files(facts, text, cwd), cwd)
    prepared.guard = WriteGuard(Guarded(facts, prepared.files, cwd), request.destroy_data, roots)
    prepared.guard.check(devices)
    if where is None:
        _create_missing(prepared)
    return prepared


def _implied(overrides: Mapping[str, str]) -> dict[str, str]:
    """A runtime asked for is meant: without time_based fio would stop at the end of the file."""
    wanted = dict(overrides)
    if {"runtime", "timeout"} & wanted.keys() and "time_based" not in wanted:
        wanted["time_based"] = "1"
    return wanted


def _grouped(text: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """One row for all clones of a job: a document for 64 rows would cost fio 40 ms a second."""
    wanted = dict(overrides)
    jobs = jobfile.effective(jobfile.changed(text, overrides))
    rows = sum(_number(job.options.get("numjobs")) for job in jobs)
    if (len(jobs) == 1 and rows > 1) or rows > ROWS_BEFORE_GROUPING:
        wanted.setdefault("group_reporting", "1")
    return wanted


def _on_path(text: str, overrides: Mapping[str, str], request: JobRequest, where: Target) -> str:
    """The job with every section on one device or file."""
    wanted = {**overrides, "filename": escaped(where.path)}
    if request.size:
        wanted["size"] = request.size
    elif where.kind == target.FILE:
        # a job larger than the file would make fio extend it
        wanted["size"] = str(_capped(text, Path(where.path).stat().st_size))
    return jobfile.changed(text, _grouped(text, wanted), removed=("directory",))


def _capped(text: str, size: int) -> int:
    declared = [size_bytes(expand(s.options.get("size", ""))) for s in jobfile.effective(text)]
    return min([size, *(one for one in declared if one)])


def _on_scratch(
    request: JobRequest,
    overrides: Mapping[str, str],
    text: str,
    label: str,
    path: Path,
    made: scratch.Scratch,
    fio: Fio,
    private: Path,
) -> Prepared:
    changed = jobfile.changed(text, overrides)
    jobs = jobfile.effective(changed)
    names = [_shared_name(job) for job in jobs]
    room = scratch.room_for(made.path.parent) + made.used_bytes()
    sizes = scratch_sizes(jobs, names, request.size, room, request.share)
    per_section: dict[int, dict[str, str]] = {}
    for index, (name, size) in enumerate(zip(names, sizes, strict=True)):
        options = {"directory": escaped(str(made.path)), "size": str(size)}
        if name:
            options["filename"] = name
        per_section[index] = options
    text = jobfile.changed(text, _grouped(text, overrides), per_section)
    facts = inspect(fio, _written(private, "job.fio", text), f"the job file {path}", made.path)
    if any(_direct(job) for job in jobs) and not scratch.supports_direct(made.path):
        raise UsageError(
            f"The file system of {made.path.parent} can't do O_DIRECT, which the job asks for.",
            "Name a directory on a disk, or measure the page cache with --set direct=0",
        )
    layout: str | None = jobfile.changed(text, {"overwrite": "1", "fallocate": "none"})
    total = sum(_distinct(jobs, names, sizes).values())
    files = absolute_files(facts, text, made.path)
    if _laid_out(files, total):
        layout = None
    prepared = Prepared(label, describe(text), text, facts, files, made.path, layout, total, made)
    prepared.lent = request.scratch is not None
    return prepared


def _laid_out(files: Sequence[str], total: int) -> bool:
    """True if an earlier run on the same scratch directory has written all of these."""
    try:
        return sum(os.stat(name).st_blocks * 512 for name in files) >= total
    except OSError:
        return False


def _shared_name(job: Section) -> str:
    """The name of the file that a job's threads share, "" if each has files of its own."""
    parts = [Path(part).name for part in expand(job.options.get("filename", "")).split(":")]
    return ":".join(part for part in parts if part)


def _direct(job: Section) -> bool:
    if "buffered" in job.options:
        return not flag(job.options, "buffered")
    return flag(job.options, "direct")


def _distinct(
    jobs: Sequence[Section], names: Sequence[str], sizes: Sequence[int]
) -> dict[str, int]:
    """Bytes by file: shared files count once, a clone's own files once each."""
    total: dict[str, int] = {}
    for index, (job, name, size) in enumerate(zip(jobs, names, sizes, strict=True)):
        if name:
            total[name] = max(total.get(name, 0), size)
        else:
            total[f"/{index}"] = size * _number(job.options.get("numjobs"))
    return total


def scratch_sizes(
    jobs: Sequence[Section],
    names: Sequence[str],
    wanted: str | None,
    room: int,
    most: int | None = None,
) -> list[int]:
    """The size in bytes for each section's files, so that all together fit into ``room``.

    Asked for (``wanted``): exactly that for every section, or UsageError. Otherwise what the
    job says, at most an equal share of 512 MiB (and ``most``), less where the disk is nearly
    full.
    """
    counts = _distinct(jobs, names, [1] * len(jobs))
    files = sum(counts.values())
    if wanted is not None:
        size = size_bytes(wanted)
        if not size:
            raise UsageError(f"--size {wanted!r} is not a size.", "For example: --size 512m")
        if size * files > room:
            raise UsageError(
                f"{files} scratch file(s) of {wanted} need {_mib(size * files)} MiB, but only "
                f"{_mib(room)} MiB may be used here (5 % of the file system stay free).",
                "Give a smaller --size or another directory.",
            )
        return [size] * len(jobs)
    share = min(scratch.DEFAULT_BYTES, room) // max(files, 1)
    largest = max((largest_block(job) for job in jobs), default=4096)
    if share < max(SMALLEST // files, largest):
        raise UsageError(
            f"Only {_mib(room)} MiB may be used on this file system (5 % of it stay free), "
            "too little for a scratch file.",
            "Name a directory on another disk: iopstui run DIRECTORY ...",
        )
    return [_share(job, min(share, most or share), largest) for job in jobs]


def files_of(text: str) -> int:
    """How many scratch files a job makes."""
    jobs = jobfile.effective(text)
    return sum(_distinct(jobs, [_shared_name(job) for job in jobs], [1] * len(jobs)).values())


def scratch_total(text: str, wanted: str | None, room: int, most: int | None) -> int:
    """Bytes of all scratch files of a job; UsageError as ``scratch_sizes``."""
    jobs = jobfile.effective(text)
    names = [_shared_name(job) for job in jobs]
    return sum(_distinct(jobs, names, scratch_sizes(jobs, names, wanted, room, most)).values())


def _share(job: Section, share: int, largest: int) -> int:
    declared = size_bytes(expand(job.options.get("size", ""))) or share
    size = min(declared, share)
    return max(size - size % max(4096, largest), largest)


def largest_block(job: Section) -> int:
    """The largest I/O of a job in bytes, as far as the text says."""
    sizes = [4096]
    for name in ("bs", "blocksize", "bsrange", "blocksize_range"):
        for part in expand(job.options.get(name, "")).replace("-", ",").split(","):
            sizes.append(size_bytes(part) or 0)
    for part in expand(job.options.get("bssplit", "")).replace(",", ":").split(":"):
        sizes.append(size_bytes(part.partition("/")[0]) or 0)
    return max(sizes)


def _mib(size: int) -> int:
    return size >> 20


def _number(text: str | None) -> int:
    with contextlib.suppress(ValueError):
        return max(1, int(expand(text or "1")))
    return 1


def expand(text: str) -> str:
    """``${VAR}`` as fio expands it, from the environment (unset: empty)."""
    out, rest = "", text
    while True:
        before, opening, tail = rest.partition("${")
        name, closing, after = tail.partition("}")
        if not opening or not closing:
            return out + rest
        out, rest = out + before + os.environ.get(name, ""), after


def escaped(path: str) -> str:
    """A path as a value of filename= or directory=, where ``:`` separates (fio(1))."""
    return path.replace("\\", "\\\\").replace(":", "\\:")


def _written(private: Path, name: str, text: str) -> Path:
    file = private / name
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


def write_job(prepared: Prepared, private: Path, layout: bool) -> Path:
    """Write the job file (or the one that lays out its files) into the private directory."""
    if layout:
        assert prepared.layout_text is not None
        return _written(private, "layout.fio", prepared.layout_text)
    return _written(private, "job.fio", prepared.text)


def _job_directories(job: Section, cwd: Path) -> list[Path]:
    return [cwd / part for part in expand(job.options.get("directory", "")).split(":") if part]


def _directories(text: str, cwd: Path) -> list[Path]:
    return [one for job in jobfile.effective(text) for one in _job_directories(job, cwd)]


def _check_directories(text: str, cwd: Path) -> None:
    for directory in _directories(text, cwd):
        if not directory.is_dir():
            raise UsageError(
                f"The job works in the directory {directory}, which does not exist.",
                "Make it, or name another place: iopstui run TARGET --job ...",
            )


def absolute_files(facts: JobFacts, text: str, cwd: Path) -> tuple[str, ...]:
    """Every file the job opens as an absolute path: those it names, as fio joins them, and
    those fio names itself where a section has no ``filename=``."""
    found = dict.fromkeys(os.path.join(cwd, path) for path in facts.paths)
    for job in jobfile.effective(text):
        if "filename" not in job.options:
            for base in _job_directories(job, cwd) or [cwd]:
                found |= dict.fromkeys(str(base / own) for own in _generated(job))
    return tuple(found)


def _generated(job: Section) -> list[str]:
    """The names fio gives the files of a job without filename= (fio(1), filename_format)."""
    pattern = expand(job.options.get("filename_format", "")) or "$jobname.$jobnum.$filenum"
    name = job.name.replace("/", ".")
    return [
        pattern.replace("$jobname", name).replace("$jobnum", str(n)).replace("$filenum", str(f))
        for n in range(_number(job.options.get("numjobs")))
        for f in range(_number(job.options.get("nrfiles")))
    ]


def _create_missing(prepared: Prepared) -> None:
    """A reading job of the user's own whose files don't exist yet: fio must create them first,
    because it is run with --readonly afterwards."""
    missing = [name for name in prepared.files if not Path(name).exists()]
    if prepared.read_only and missing and prepared.guard is not None:
        prepared.layout_text = prepared.text
        prepared.guard.created(missing)


def describe(text: str) -> str:
    """One line for the header: "randread 4k  QD 32 × 2 jobs", or the sections' names."""
    jobs = jobfile.effective(text)
    if len(jobs) != 1:
        return f"{len(jobs)} jobs: " + ", ".join(job.name for job in jobs)
    options = {name: expand(value) for name, value in jobs[0].options.items()}
    rw = options.get("rw", options.get("readwrite", "read"))
    block = options.get("bs") or options.get("bsrange") or options.get("bssplit") or "4k"
    count = _number(options.get("numjobs"))
    plural = "job" if count == 1 else "jobs"
    return f"{rw} {block}  QD {options.get('iodepth', '1')} × {count} {plural}"
