"""From what the user asked for to a job file that fio can run on this target."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.fio.fence import NONE, Fence, Grant, fence_kind, grant
from iopstui.fio.inspect import Fio, JobFacts
from iopstui.fio.job_text import (
    absolute_files,
    check_directories,
    check_section_names,
    check_streams,
    check_variables,
    common_options,
    describe,
    direct,
    escaped,
    expand,
    joined,
    largest_block,
    names_its_files,
    number,
    read_job,
)
from iopstui.fio.layout import layout_text
from iopstui.fio.library import find_job, is_shipped
from iopstui.fio.logs import FioLogs
from iopstui.fio.stream import size_bytes
from iopstui.linux.process.affinity import allowed
from iopstui.linux.process.private import write_text
from iopstui.linux.roots import Roots
from iopstui.model.block import target
from iopstui.model.block.binding import Binding, bind_to_queues
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.fio import job_rules, jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.preflight.inspection import JOB, inspected
from iopstui.preflight.request import JobRequest
from iopstui.preflight.staging import Staging
from iopstui.safety import scratch
from iopstui.safety.scratch_sizes import by_file, scratch_sizes, shared_name, times
from iopstui.safety.write_guard import Guarded, WriteGuard
from iopstui.text import printable

ROWS_BEFORE_GROUPING = 16
SLACK = 16 << 20
# room for fio's own documents: its main process writes them and lays out; its jobs write none
LEAST_LAYOUT, LEAST_RUN = 4 << 20, 8 << 20
# what can be written between two looks at the free space
QUICK = 1 << 30
LEAST_LOGGED = 1 << 30


@dataclass(slots=True)
class Prepared:
    """A job that is ready to run. ``text`` is the job file; ``files`` what it opens by name
    (absolute); ``layout_text`` creates the files first (``None``: nothing to create) with
    ``layout_bytes`` in them; ``scratch`` is removed by ``close``, unless ``lent``. ``staging`` is
    where files that don't exist yet are made, ``logs`` where fio writes those it is asked for.
    ``longest`` is how long a file may become, in bytes. ``sizes`` are the bytes of each scratch
    file. ``options`` are what was asked for, for
    holding one run against another.
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
    staging: Staging | None = None
    logs: FioLogs | None = None
    longest: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def read_only(self) -> bool:
        """True if fio says that no section writes; it is then run with --readonly."""
        return not self.facts.writes

    @property
    def makes_files(self) -> bool:
        """True if the run itself makes or removes files."""
        options = self.facts.options
        writes = self.facts.writes or job_rules.makes_files(options)
        return writes or job_rules.removes_files(options)

    @property
    def made(self) -> tuple[Path, ...]:
        """The directories that were made for this run, on the file systems it works on."""
        found = () if self.scratch is None else self.scratch.paths
        return (*found, *(one.path for one in (self.staging.made if self.staging else ())))

    @property
    def cleanup(self) -> tuple[Path, ...]:
        """Directories that nobody needs once the run is over."""
        linked = self.staging.linked if self.staging is not None else None
        logs = self.logs.directory if self.logs is not None else None
        return (*self.made, *filter(None, (linked, logs)))

    def used_bytes(self) -> int:
        """Bytes allocated in files that were made for this run."""
        own = self.scratch.used_bytes() if self.scratch else 0
        return own + (self.staging.used_bytes() if self.staging else 0)

    def fence(self, layout: bool) -> Fence:
        """What fio may do while it lays files out, and while it is measured."""
        made = tuple(map(str, self.made))
        logs = self.logs.directory if self.logs is not None else None
        own = (*(made if layout or self.makes_files else ()), *((str(logs),) if logs else ()))
        longest = self.longest
        if longest is not None:
            least = LEAST_LOGGED if logs is not None else LEAST_RUN
            longest = max(longest, LEAST_LAYOUT if layout else least)
        guard = None if layout else self.guard
        return Fence(
            read=guard.reads if guard is not None else self._beside(),
            write=guard.writes if guard is not None else (),
            own=own,
            open=made,
            fsize=longest,
        )

    def _beside(self) -> tuple[Grant, ...]:
        """What exists beside the files to be laid out: fio asks how large it is."""
        found = []
        for name in self.files if self.staging is not None else ():
            with contextlib.suppress(OSError):
                found.append(grant(name))
        return tuple(found)

    def overrun(self) -> str:
        """Why the run has to end, because its files grow beyond what was planned; "" if not."""
        for place in self.made:
            with contextlib.suppress(UsageError):
                if scratch.room_for(place) == 0:
                    return f"only 5 % of the file system of {place.parent} is still free"
        if self.scratch is not None and self.layout_bytes is not None:
            used, most = self.scratch.used_bytes(), self.layout_bytes + SLACK
            if used > most:
                return (
                    f"its scratch files have grown to {used >> 20} MiB, {most >> 20} were planned; "
                    "its job file makes more or longer files than it says (offset=, nrfiles= ...)"
                )
        return ""

    def laid_out(self) -> None:
        """The missing files have been created: give them their names. Raises Refused."""
        if self.staging is not None and not self.makes_files:
            self.staging.check()
            self.staging.close()
            self.staging = None

    def publish(self) -> list[str]:
        """Give the run's new files their names; sentences about those where that
        failed."""
        said = self.staging.publish() if self.staging is not None and self.makes_files else []
        return [*said, *(self.logs.publish() if self.logs is not None else ())]

    def let_go(self) -> None:
        """Let go of locks and held devices alone."""
        if self.guard is not None:
            self.guard.close()

    def close(self) -> None:
        """Remove the scratch files, let go of held devices."""
        self.let_go()
        if self.logs is not None:
            self.logs.close()
        if self.staging is not None:
            self.staging.close()
        if self.scratch is not None and not self.lent:
            self.scratch.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request after a first look: the job file ``path`` with its ``text``, and the options that
    are changed in it. ``where`` is ``None`` if the job names its own files."""

    request: JobRequest
    where: Target | None
    path: Path
    text: str
    overrides: Mapping[str, str]
    fio: Fio
    private: Path
    roots: Roots

    @property
    def label(self) -> str:
        """What the job is called on the screen."""
        return self.path.stem if self.path.suffix == ".fio" else self.path.name

    def inspected(self, text: str, cwd: Path) -> JobFacts:
        """How fio reads a job; UsageError if it is not a job, Refused for what no job may do."""
        label = f"the job file {self.path}"
        facts = inspected(self.fio, self.private, text, label, cwd)
        check_section_names(text, facts)
        check_streams(facts)
        return facts


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
    text = read_job(path)
    check_place(path, text, where)
    overrides = {**_unsaved(text), **_implied(request.overrides)}
    placed = {"filename", "directory"} & overrides.keys()
    if where is not None and placed:
        raise UsageError(
            f"--set {placed.pop()}= says where the job works, and so does the target.",
            "Give the place as TARGET only: iopstui run TARGET --job ...",
        )
    binding = bound(text, overrides, where, devices) if request.bind else None
    if binding is not None:
        overrides |= {"cpus_allowed": binding.option, "cpus_allowed_policy": "split"}
    asked = _Asked(request, where, path, text, overrides, fio, private, roots)
    if where is not None and where.kind == target.DIRECTORY:
        prepared = _in_directories(asked, where, devices)
    else:
        prepared = _in_place(asked, devices)
    prepared.binding = binding
    prepared.options = _asked_options(text, request)
    return prepared


def _asked_options(text: str, request: JobRequest) -> dict[str, str]:
    """The job's options as they were asked for, and iopstui's own that act on the job."""
    found = common_options(jobfile.changed(text, request.overrides))
    own = {"bind": "queues" if request.bind else None, "size": request.size}
    return {**found, **{name: value for name, value in own.items() if value}}


def check_place(path: Path, text: str, where: Target | None) -> None:
    """UsageError for a job that needs a target and has none: fio would create its files in the
    current directory and leave them there."""
    if where is None and (is_shipped(path) or not names_its_files(text)):
        raise UsageError(
            f"The job {path.name} does not say where it works, and there is no target.",
            "Name a TARGET on the command line, or choose a job that names its files.",
        )


def bound(
    text: str,
    overrides: Mapping[str, str],
    where: Target | None,
    devices: Mapping[str, BlockDevice],
) -> Binding:
    """The CPUs that give each fio job another hardware queue; UsageError where there is none. Of
    several devices the first one's queues decide, because every job uses all of them."""
    stacks = where.stacks if where is not None else {}
    each = ([devices[name] for name in (top, *below)] for top, below in stacks.items())
    first_queued = (next((one for one in stack if one.hctxs), None) for stack in each)
    found = [device for device in first_queued if device is not None]
    queues = found[0].hctxs if found else ()
    jobs = jobfile.effective(jobfile.changed(text, overrides))
    count = sum(number(job.options.get("numjobs")) for job in jobs)
    binding = bind_to_queues(queues, count, allowed())
    if binding is None:
        what = ", ".join(where.on) if where is not None and where.on else "this target"
        raise UsageError(
            f"Jobs can't be bound to hardware queues: {what} has none that can be seen.",
            "Run it without --bind queues; `iopstui devices` shows each device's queues.",
        )
    other = [device.name for device in found if _cpus_of(device) != _cpus_of(found[0])]
    if other:
        note = f"the queues are {found[0].name}'s; those of {', '.join(other)} serve other CPUs"
        return replace(binding, notes=(*binding.notes, note))
    return binding


def _cpus_of(device: BlockDevice) -> tuple[tuple[int, ...], ...]:
    return tuple(hctx.cpus for hctx in device.hctxs)


def _in_directories(asked: _Asked, where: Target, devices: Mapping[str, BlockDevice]) -> Prepared:
    """On scratch files in the target's directories: nothing else is touched."""
    lent = asked.request.scratch
    made = lent or scratch.make_scratches([Path(place.path) for place in where.places])
    prepared: Prepared | None = None
    try:
        prepared = _on_scratch(asked, made)
        prepared.lent = lent is not None
        guarded = Guarded(prepared.facts, prepared.files, made.path, scratch=made.path)
        prepared.guard = WriteGuard(guarded, (), asked.roots)
        prepared.guard.check(devices)
        _accept(asked, prepared)
        return prepared
    except BaseException:
        if prepared is not None:
            prepared.close()
        if lent is None:
            made.close()
        raise


def _in_place(asked: _Asked, devices: Mapping[str, BlockDevice]) -> Prepared:
    """On the device or file that the target is, or on those that the job names."""
    given = _on_own_files(asked) if asked.where is None else _on_path(asked, asked.where)
    cwd = Path.cwd()
    check_variables(given, f"The job file {asked.path}")
    check_directories(given, cwd)
    facts = asked.inspected(given, cwd)
    files = absolute_files(facts, cwd)
    logs = FioLogs(given, asked.label, cwd)
    prepared = Prepared(asked.label, describe(given), logs.text, facts, files, cwd, logs=logs)
    try:
        guarded = Guarded(facts, files, cwd)
        prepared.guard = WriteGuard(guarded, asked.request.destroy_data, asked.roots)
        prepared.guard.check(devices)
        _accept(asked, prepared)
        if asked.where is None:
            _stage(prepared)
        prepared.longest = _longest(prepared)
        return prepared
    except BaseException:
        prepared.close()
        raise


def _accept(asked: _Asked, prepared: Prepared) -> None:
    """Refused where only iopstui's own checks would stand between the user's job file
    and everybody's files."""
    if fence_kind() != NONE or asked.request.no_fence or is_shipped(asked.path):
        return
    if prepared.makes_files:
        raise Refused(
            f"The job file {asked.path} writes, and this kernel has no fence that would keep fio "
            "from all other files (Landlock, or namespaces).",
            "If you know what it does: --no-fence. `iopstui doctor` says what is missing.",
        )


def _stage(prepared: Prepared) -> None:
    """Files that the job names and that don't exist are made apart from all others. A reading job
    has them made first, because it is run with --readonly afterwards."""
    if all(map(os.path.exists, prepared.files)):
        return
    staging = prepared.staging = Staging(prepared.text, prepared.facts.sections, prepared.cwd)
    staged = staging.text
    if prepared.makes_files:
        prepared.text = staged
    if prepared.facts.writes or job_rules.makes_files(prepared.facts.options):
        return
    new = set(staging.new)
    wanted = [
        index
        for index, section in enumerate(prepared.facts.sections)
        if any(os.path.realpath(prepared.cwd / path) in new for path in section.paths)
    ]
    prepared.layout_text = layout_text(jobfile.only(staged, wanted))


def _longest(prepared: Prepared) -> int | None:
    """How long a file may become: what is free but for 5 %, and where that is little an equal
    share of it. ``None``: the job has only devices."""
    files = [name for name in prepared.files if not _is_device(name)]
    if not files:
        return None
    room = min(scratch.room_for(Path(os.path.dirname(name))) for name in files)
    there = [os.stat(name).st_size for name in files if os.path.isfile(name)]
    growing = len(files) if prepared.facts.writes else len(files) - len(there)
    if room < QUICK:
        room //= max(1, growing)
    return room + (max(there, default=0) if prepared.facts.writes else 0)


def _is_device(name: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False


def _unsaved(text: str) -> dict[str, str]:
    """fio saves how far a verify came in its current directory, where it may make nothing."""
    names = {name for section in jobfile.sections(text) for name in section.options}
    if "verify" not in names or "verify_state_save" in names:
        return {}
    return {"verify_state_save": "0"}


def _implied(overrides: Mapping[str, str]) -> dict[str, str]:
    """A requested runtime also sets time_based: otherwise fio would stop at the end of the file."""
    wanted = dict(overrides)
    if {"runtime", "timeout"} & wanted.keys() and "time_based" not in wanted:
        wanted["time_based"] = "1"
    return wanted


def _grouped(text: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """One row for all clones of a job: a document for 64 rows would cost fio 40 ms a second."""
    wanted = dict(overrides)
    jobs = jobfile.effective(jobfile.changed(text, overrides))
    rows = sum(number(job.options.get("numjobs")) for job in jobs)
    if (len(jobs) == 1 and rows > 1) or rows > ROWS_BEFORE_GROUPING:
        wanted.setdefault("group_reporting", "1")
    return wanted


def _on_own_files(asked: _Asked) -> str:
    size = asked.request.size
    wanted = {**asked.overrides, **({"size": size} if size else {})}
    return jobfile.changed(asked.text, _grouped(asked.text, wanted))


def _on_path(asked: _Asked, where: Target) -> str:
    """The job with every section on all devices or files of the target."""
    paths = [place.path for place in where.places]
    wanted = {**asked.overrides, "filename": joined(paths)}
    if asked.request.size:
        wanted["size"] = _each(asked.request.size, len(paths))
    elif where.kind == target.FILE:
        # a job larger than the file would make fio extend it; it shares size= out among files
        text = jobfile.changed(asked.text, asked.overrides)
        smallest = min(Path(path).stat().st_size for path in paths)
        wanted["size"] = str(_capped(text, len(paths) * smallest))
    return jobfile.changed(asked.text, _grouped(asked.text, wanted), removed=("directory",))


def _each(size: str, count: int) -> str:
    """fio's size= for so much of every one of ``count`` files."""
    if count == 1:
        return size
    one = size_bytes(size)
    if not one:
        raise UsageError(f"--size {size!r} is not a size.", "For example: --size 512m")
    return str(count * one)


def _capped(text: str, size: int) -> int:
    declared = [size_bytes(expand(s.options.get("size", ""))) for s in jobfile.effective(text)]
    return min([size, *(one for one in declared if one)])


def _on_scratch(asked: _Asked, made: scratch.Scratch) -> Prepared:
    request = asked.request
    jobs = jobfile.effective(jobfile.changed(asked.text, asked.overrides))
    places = made.paths
    per_section: dict[int, dict[str, str]] = {}
    for index, job in enumerate(jobs):
        name = shared_name(job)
        placed = {"directory": escaped(str(made.path))}
        if len(places) > 1:
            placed |= _spread_names(job, index, name, len(places))
        elif name:
            placed["filename"] = name
        per_section[index] = placed
    text = jobfile.changed(asked.text, _grouped(asked.text, asked.overrides), per_section)
    facts = asked.inspected(text, made.path)
    for path in places if any(direct(job) for job in jobs) else ():
        if not scratch.supports_direct(path):
            raise UsageError(
                f"The file system of {path.parent} can't do O_DIRECT, which the job asks for.",
                "Name a directory on a disk, or measure the page cache with --set direct=0",
            )
    room = scratch.room_for_all([path.parent for path in places]) + made.used_bytes()
    sizes = scratch_sizes(jobs, facts.sections, request.size, room, request.share, len(places))
    sized = {index: {"size": str(size)} for index, size in enumerate(sizes)}
    timed = times(jobs, sizes)
    if "1" in timed:
        sized = {index: {**one, "time_based": timed[index]} for index, one in sized.items()}
    logs = FioLogs(jobfile.changed(text, {}, sized), asked.label, Path.cwd())
    text = logs.text
    layout: str | None = jobfile.changed(layout_text(text), {"overwrite": "1", "fallocate": "none"})
    by_name = by_file(facts.sections, sizes)
    total = sum(by_name.values())
    files = absolute_files(facts, made.path)
    if _laid_out(files, total):
        layout = None
    prepared = Prepared(asked.label, describe(text), text, facts, files, made.path, layout, total)
    prepared.scratch, prepared.logs, prepared.sizes = made, logs, by_name
    most = max(by_name.values(), default=0)
    # fio makes the first files of several longer by a block (filesetup.c)
    longer = most + max(map(largest_block, jobs), default=0)
    prepared.longest = longer if len(by_name) * longer <= room else most
    return prepared


def _spread_names(job: Section, index: int, name: str, count: int) -> dict[str, str]:
    """Options that put a file of a section into each of ``count`` directories (safety/scratch.py:
    links 0, 1 ...): those that its jobs share by their names, those of each job's own by fio's
    numbers of its files."""
    if name:
        names = name.split(":")
        return {"filename": ":".join(f"{n}/{one}" for one in names for n in range(count))}
    own = number(job.options.get("nrfiles"))
    if own > 1:
        raise UsageError(
            f"[{printable(job.name)}] has nrfiles={own}, so its files can't be spread over several "
            "directories.",
            "Name one directory, or add --set nrfiles=1",
        )
    return {"nrfiles": str(count), "filename_format": job_rules.spread_format(index)}


def _laid_out(files: Sequence[str], total: int) -> bool:
    """True if an earlier run on the same scratch directory has written all of these."""
    try:
        return sum(os.stat(name).st_blocks * 512 for name in files) >= total
    except OSError:
        return False


def write_job(prepared: Prepared, private: Path, layout: bool) -> Path:
    """Write the job file (or the one that lays out its files) into the private directory."""
    if layout:
        assert prepared.layout_text is not None
        return write_text(private, "layout.fio", prepared.layout_text)
    return write_text(private, JOB, prepared.text)
