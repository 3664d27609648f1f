"""Keys of the kernel's half of the screen: findings, settings, options of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from iopstui.errors import UsageError
from iopstui.model.device import BlockDevice
from iopstui.model.jobfile import checked_override
from iopstui.session.knob_view import common_schedulers, queued_disks
from iopstui.ui.app_parts import AppPart, Command
from iopstui.ui.rows import Row
from iopstui.ui.widgets.bars import KeyHint

AFFINITIES = ("0", "1", "2")
OPTION_WORDS = (
    "Any fio option: rw=randrw, rwmixread=70, ioengine=io_uring, rate_iops=1000, ... It is set in"
    " every section of the job, which is started anew with it. Nothing behind = takes it back."
)


class KernelKeys(AppPart):
    """What these keys do. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "findings", "findings"),
        Binding("a", "rq_affinity", "rq_affinity"),
        Binding("s", "scheduler", "scheduler"),
        Binding("k", "settings", "settings"),
        Binding("colon", "option", "fio option"),
        Binding("o", "queue_map", "queue map"),
        Binding("h", "heat_map", "heat map"),
        Binding("p", "percentiles", "percentiles over it"),
        Binding("B", "bind_queues", "bind to queues"),
    ]

    def kernel_commands(self) -> list[Command]:
        """For the command palette."""
        bound = self.controller is not None and self.controller.bind
        return [
            ("rq_affinity: next value", "key a: 0, 1, 2; where completions run",
             self.action_rq_affinity),
            ("Scheduler", "key s: the disk's I/O scheduler", self.action_scheduler),
            ("Settings of the disks", "key k: all that can be set, interrupts too",
             self.action_settings),
            ("fio option", "key :, any option of the job: rw, rwmixread, ioengine, rate_iops ...",
             self.action_option),
            ("Jobs: not bound to queues" if bound else "Jobs: bind to hardware queues",
             "key B: every fio job on a CPU of another hardware queue", self.action_bind_queues),
            ("Queue map", "key o: hardware queues, their CPUs and interrupts",
             self.action_queue_map),
            ("Latency: heat map or lines", "key h: each second's histogram as a column",
             self.action_heat_map),
            ("Heat map: percentiles over it", "key p", self.action_percentiles),
            ("Findings", "key f: what the evidence shows, with its numbers", self.action_findings),
        ]  # fmt: skip

    def action_findings(self) -> None:
        """f"""
        from iopstui.ui.screens.live_rows import LiveRows
        from iopstui.ui.widgets.finding_line import listed

        state, charset = self.state, self.charset
        title = "findings, the newest first"
        self.push_screen(LiveRows(title, lambda width: listed(state, width, charset), charset))

    def action_queue_map(self) -> None:
        """o"""
        if self.dashboard is not None:
            from iopstui.ui.screens.live_rows import LiveRows

            title = "queue map: hctx, CPUs, interrupts"
            self.push_screen(LiveRows(title, self._queue_rows, self.charset))

    def _queue_rows(self, width: int) -> Sequence[Row]:
        from iopstui.ui.widgets import queue_view

        controller, dashboard = self.controller, self.dashboard
        if controller is None or dashboard is None:
            return []
        return queue_view.rows(
            self.state, controller.target, controller.devices, dashboard.topology(), width,
            self.charset,
        )  # fmt: skip

    def action_heat_map(self) -> None:
        """h"""
        if self.dashboard is not None:
            self.dashboard.show_heat(not self.dashboard.heat_shown)

    def action_percentiles(self) -> None:
        """p"""
        dashboard = self.dashboard
        if dashboard is None:
            return
        if not dashboard.heat_shown:
            dashboard.percentiles_shown = True
            dashboard.show_heat(True)
            return
        dashboard.percentiles_shown = not dashboard.percentiles_shown
        dashboard.show_heat(True)

    # -- settings of the disks

    def _queued_disk(self, name: str) -> BlockDevice | None:
        """The first disk that has a queue to set; says so where there is none."""
        controller = self.controller
        if controller is None:
            return None
        disks = queued_disks(controller.target, controller.devices)
        if disks:
            return disks[0]
        what = ", ".join(controller.target.on) or controller.target.path
        self._say("warning", f"{what} has no request queue under it: there is no {name} to set")
        return None

    def action_rq_affinity(self) -> None:
        """a"""
        disk = self._queued_disk("rq_affinity")
        if disk is None or self.controller is None or self.experiment_holds():
            return
        now = disk.queue.rq_affinity if disk.queue is not None else None
        following = str(((now if now is not None else 0) + 1) % len(AFFINITIES))
        self.controller.set_tunable("rq_affinity", following)

    def action_scheduler(self) -> None:
        """s"""
        disk = self._queued_disk("scheduler")
        if disk is None or self.experiment_holds():
            return
        queue, controller = disk.queue, self.controller
        assert controller is not None
        disks = queued_disks(controller.target, controller.devices)
        offered = common_schedulers(disks)
        if queue is None or len(offered) < 2:
            only = f": {queue.scheduler} is the only one" if queue and queue.scheduler else ""
            names = ", ".join(one.name for one in disks)
            if len(disks) == 1:
                self._say("info", f"{names} offers no choice of a scheduler{only}")
            else:
                self._say("info", f"{names} have no choice of a scheduler in common")
            return
        from iopstui.ui.screens.choice import Choice

        choice = Choice("scheduler", offered, queue.scheduler or "", self.charset)
        self.push_screen(choice, self._scheduler_chosen)

    def _scheduler_chosen(self, value: str | None) -> None:
        if value is not None and self.controller is not None:
            self.controller.set_tunable("scheduler", value)

    def action_settings(self) -> None:
        """k"""
        controller = self.controller
        if controller is None:
            return
        from iopstui.ui.screens.settings import Settings

        self.push_screen(Settings(controller.knobs, self._turn_setting, self.state, self.charset))

    def _turn_setting(self, name: str, value: str) -> None:
        if self.controller is not None and not self.experiment_holds():
            self.controller.set_tunable(name, value)

    # -- settings of the job

    def action_option(self) -> None:
        """:"""
        if self.controller is None or self.experiment_holds():
            return
        from iopstui.ui.screens.prompt import Prompt

        turned = " ".join(f"{key}={value}" for key, value in self.overrides.items())
        words = OPTION_WORDS + (f" Changed so far: {turned}" if turned else "")
        prompt = Prompt("fio option=value", words, "", checked_option, self.charset)
        self.push_screen(prompt, self._option_given)

    def _option_given(self, text: str | None) -> None:
        if text is None:
            return
        option, value = checked_option(text)
        if value:
            self.overrides[option] = value
        elif self.overrides.pop(option, None) is None:
            self._say("info", f"{option} was not changed before: it is as the job has it")
            return
        self._turned(option, f"{option}={value}" if value else f"{option} as the job has it")

    def action_bind_queues(self) -> None:
        """B"""
        controller = self.controller
        if controller is None or self.experiment_holds():
            return
        if not controller.bind and self._queued_disk("binding to hardware queues") is None:
            return
        controller.bind = not controller.bind
        self._turned("bind", "bound to queues" if controller.bind else "not bound to queues")


def checked_option(text: str) -> tuple[str, str]:
    """``option=value`` of a fio job; UsageError in this screen's words, without ``--set``."""
    try:
        return checked_override(text)
    except UsageError as error:
        raise UsageError(
            error.message.replace("--set ", "") + f" {error.hint}".replace("--set ", "")
        ) from error


KERNEL_ACTIONS = {
    "findings", "rq_affinity", "scheduler", "settings", "option", "bind_queues", "heat_map",
    "percentiles", "queue_map",
}  # fmt: skip
KERNEL_HINTS = (
    KeyHint("a", "rq_affinity"), KeyHint("k", "settings"), KeyHint("f", "findings"),
    KeyHint("h", "heat map"), KeyHint("o", "queues"), KeyHint(":", "option"),
)  # fmt: skip
