"""Keys that change settings: options of fio, tunables of the disks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from iopstui.errors import Missing, UsageError
from iopstui.model.block.device import BlockDevice
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, RUNNING, Action, Footer, Part
from iopstui.ui.core import key
from iopstui.ui.core.key import Key
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port
from iopstui.ui.state.live import missing_devices_text

AFFINITIES = ("0", "1", "2")
AFFINITY_MEANS = (
    "0: a request completes on the CPU that takes the interrupt.",
    "1: a request completes on a CPU that shares a cache with the one that issued it.",
    "2: a request completes on the CPU that issued it.",
)
BUSY = frozenset({EXPERIMENT, LESSON})
OPTION_HELP = (
    "Any fio option: rw=randrw, rwmixread=70, ioengine=io_uring, rate_iops=1000, ... It is set in "
    "every section, and the job is run again with it. An empty value resets it."
)


class KernelKeys(Part):
    """Keys for tunables of the disks, which have an effect at once, and for options, which need
    another run."""

    def __init__(self, port: Port, jobs: JobKeys, experiments: ExperimentKeys) -> None:
        super().__init__(port)
        self._jobs = jobs
        self._experiments = experiments
        # whether the user has agreed that the key a changes a setting of the disk
        self._affinity_confirmed = False
        # the options typed in this session, the newest last
        self._options: list[str] = []

    @property
    def jobs_bound(self) -> bool:
        """Whether the next run's jobs are bound to hardware queues."""
        return self.port.session is not None and self.port.session.bind

    # -- tunables of the disks

    def _queued_disk(self, name: str) -> BlockDevice | None:
        """The first disk whose queue has the tunable ``name``; shows a message if there is none."""
        session = self.port.open_session
        missing = self.port.state.missing_devices
        if missing and len(missing) == len(session.target.opened):
            self.port.show_message("warning", missing_devices_text(missing))
            return None
        from iopstui.safety.tunables import queued_disks

        disks = queued_disks(session.target, session.devices)
        if disks:
            return disks[0]
        target_name = ", ".join(session.target.devices_below) or session.target.path
        self.port.show_message(
            "warning", f"{target_name} has no request queue, so there is no {name} to set"
        )
        return None

    def rq_affinity(self) -> None:
        disk = self._queued_disk("rq_affinity")
        if disk is None:
            return
        for knob in self.port.open_session.knobs():
            if knob.name == "rq_affinity" and knob.refused:
                self.port.show_message("warning", f"{knob.refused} {knob.hint}".strip())
                return
        now = disk.queue.rq_affinity if disk.queue is not None else None
        following = str(((now if now is not None else 0) + 1) % len(AFFINITIES))
        if self._affinity_confirmed:
            self._set_affinity(following)
            return
        from iopstui.ui.dialogs.questions import Confirm

        before = "?" if now is None else str(now)
        text = (
            f"{AFFINITY_MEANS[int(following)]} This changes {disk.path} for everything on this"
            " machine until iopstui ends. Then the key a changes it without asking."
        )
        title = f"Change rq_affinity {before} → {following} on {disk.name}?"
        self.port.push(
            Confirm(title, text, "Change", self.port.charset),
            lambda yes: self._confirm_affinity(following) if yes else None,
        )

    def _confirm_affinity(self, value: str) -> None:
        self._affinity_confirmed = True
        self._set_affinity(value)

    def _set_affinity(self, value: str) -> None:
        # check again: an experiment may have started since the question
        if self.port.session is not None and not self._experiments.refuses_disturbance():
            self.port.session.set_tunable("rq_affinity", value)

    def scheduler(self) -> None:
        """Choose a scheduler from those that all disks have."""
        disk, session = self._queued_disk("scheduler"), self.port.open_session
        if disk is None:
            return
        from iopstui.safety.tunables import common_schedulers, queued_disks

        queue = disk.queue
        disks = queued_disks(session.target, session.devices)
        offered = common_schedulers(disks)
        if queue is None or len(offered) < 2:
            only = f": {queue.scheduler} is the only one" if queue and queue.scheduler else ""
            names = ", ".join(disk.name for disk in disks)
            if len(disks) == 1:
                self.port.show_message("info", f"{names} offers no choice of a scheduler{only}")
            else:
                self.port.show_message("info", f"{names} have no other scheduler in common")
            return
        from iopstui.ui.dialogs.questions import Choice

        choice = Choice("Scheduler", offered, queue.scheduler or "", self.port.charset)
        self.port.push(choice, self._scheduler_chosen)

    def _scheduler_chosen(self, value: str | None) -> None:
        if value is not None and self.port.session is not None:
            self.port.session.set_tunable("scheduler", value)

    def settings(self) -> None:
        """Open the list of the tunables."""
        from iopstui.ui.dialogs.settings import Settings

        state, charset, session = self.port.state, self.port.charset, self.port.open_session
        self.port.push(Settings(session.knobs, self._change_setting, state, charset))

    def _change_setting(self, name: str, value: str) -> None:
        # check again: an experiment may have started since the list was opened
        if self.port.session is not None and not self._experiments.refuses_disturbance():
            self.port.session.set_tunable(name, value)

    def alternate(self) -> None:
        """Compare the value of the last changed tunable with the one before, by measuring both in
        turn."""
        live, change = self.port.live, self.port.state.tunable_change
        if live is None:
            return
        if change is None:
            text = "change rq_affinity (a) or another setting (k) first"
            self.port.show_message("info", text)
        elif not self.port.state.running:
            self.port.show_message("info", "this compares while a job runs (r)")
        else:
            live.alternate_tunable(change.name, (change.before, change.now))

    # -- the probe

    def probe(self) -> None:
        live = self.port.live
        if live is None:
            return
        if live.probe:
            self.port.show_message("info", "the probe is off")
        live.switch_probe(not live.probe)

    # -- options of the job

    def option(self) -> None:
        from iopstui.ui.dialogs.questions import OptionPrompt

        changed = self._jobs.changed_options
        note = OPTION_HELP + (f" Changed so far: {changed}" if changed else "")
        engine = self._jobs.engine
        prompt = OptionPrompt(
            "fio option", note, lambda text: check_with_fio(text, engine),
            lambda: read_engine_options(engine), self._options, self.port.charset,
        )  # fmt: skip
        self.port.push(prompt, self._set_option)

    def _set_option(self, text: str | None) -> None:
        if text is None:
            return
        option, value = parse_option(text)
        if not self._jobs.override(option, value):
            self.port.show_message("info", f"{option} was not changed; the job's own value applies")
            return
        change = f"{option}={value}" if value else f"{option}: the job's own value"
        self._jobs.option_changed(option, change)

    def bind_queues(self) -> None:
        """Bind the next run's jobs to hardware queues; the second time, do not bind them."""
        session = self.port.open_session
        if not session.bind and self._queued_disk("binding to hardware queues") is None:
            return
        session.bind = not session.bind
        self._jobs.option_changed(
            "bind", "bound to queues" if session.bind else "not bound to queues"
        )

    ACTIONS = (
        Action(
            "rq_affinity", (Key("a", "a"),), rq_affinity, title="rq_affinity: next value",
            note="0, 1, 2; where completions run",
            help="rq_affinity: 0, 1, 2; where completions run. Asks the first time; restored at the"
            " end",
            place=150, footer=(Footer("rq_affinity", {IDLE: 100, RUNNING: 100}),), disturbs=BUSY,
            measures=True,
        ),
        Action(
            "scheduler", (Key("", "", title="Scheduler"),), scheduler,
            note="the disk's I/O scheduler", disturbs=BUSY, measures=True,
        ),
        Action(
            "alternate", (Key("", "", title="A/B of the last changed setting"),), alternate,
            note="back and forth every 5 s for 30 s while a job runs, then the difference; again: "
                 "end it",
            disturbs=BUSY, measures=True,
        ),
        Action(
            "probe", (Key("P", "P"),), probe, title="Probe: on or off",
            note="device percentiles; needs root",
            help="probe on or off: measures each request inside the kernel (needs root). Without a "
                 "job it is on by itself where it is cheap; results are on the charts and in u",
            place=165, disturbs=BUSY, measures=True,
        ),
        Action(
            "settings", (key.SETTINGS,), settings, title="Tunables of the disks",
            note="all tunables, interrupts too",
            help="every tunable of the disks and the CPUs of interrupts: value, meaning, allowed "
                 "values, and what prevents a change",
            place=170, footer=(Footer("Tunables", {IDLE: 110, RUNNING: 110}),),
            disturbs=frozenset({LESSON}),
        ),
        Action(
            "option", (Key("colon", ":"),), option, title="fio option",
            note="any option of the job: rw, rwmixread, ioengine, rate_iops ...",
            help="any option of the fio job, such as rwmixread=70, ioengine=io_uring "
                 "or rate_iops=1000; an empty value resets it. A running job is run "
                 "again with it", place=180,
            footer=(Footer("Option", {IDLE: 150, RUNNING: 150}),), disturbs=BUSY, measures=True,
        ),
        Action(
            "bind_queues", (Key("", ""),), bind_queues,
            title=lambda kernel: "Jobs: not bound to queues" if kernel.jobs_bound
            else "Jobs: bind to hardware queues",
            note="every fio job on a CPU of another hardware queue",
            disturbs=BUSY, measures=True,
        ),
    )  # fmt: skip


def read_engine_options(engine: str) -> Mapping[str, str]:
    """All options of a job with this engine, with fio's descriptions. Raises Missing if fio cannot
    be started."""
    from iopstui.fio.inspect import find_fio, read_fio_options

    return read_fio_options(find_fio(), engine)


def check_with_fio(text: str, engine: str) -> None:
    """Raise UsageError if ``option=value`` is not valid in a job of this engine. Without fio
    nothing is checked until the job starts."""
    from iopstui.fio.inspect import check_option, find_fio

    option, value = parse_option(text)
    with contextlib.suppress(Missing):
        check_option(find_fio(), option, value, engine)


def parse_option(text: str) -> tuple[str, str]:
    """Parse ``option=value`` of a fio job; the UsageError does not mention ``--set``."""
    from iopstui.model.fio.jobfile import parse_override

    try:
        return parse_override(text)
    except UsageError as error:
        raise UsageError(
            error.message.replace("--set ", "") + f" {error.hint}".replace("--set ", "")
        ) from error
