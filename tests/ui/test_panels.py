from __future__ import annotations

import re
from dataclasses import replace

import experiment_fakes as lab
import pytest
import ui_fakes as fakes
from test_app import make, running, settle, shows
from ui_recordings import recorded_frames

from iopstui import format as f
from iopstui.events import (
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    SessionEnded,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import GONE, WARNING, Answer
from iopstui.model.block.device import Hctx
from iopstui.model.block.target import DEVICE, Target, combine_targets
from iopstui.model.block.topology import Topology
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.frame import FINAL, LATE, NO_FIO, NO_LATENCY, PARTIAL, RAMP
from iopstui.ui.core.pace import Overhead
from iopstui.ui.dashboard import bars
from iopstui.ui.dashboard.panels import cpu_panel, fio_panel, kernel_panel, registry
from iopstui.ui.dashboard.panels.registry import tabs
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.rows import Row, pad
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.live import LiveState

STARTED = StepStarted(1.0, 1, "randread-4k", "randread 4k QD 32 × 1 job", ("fio",), True)


def text(rows: list[Row] | Row) -> str:
    if rows and isinstance(rows, tuple):
        rows = [rows]
    return "\n".join("".join(part for part, _ in row) for row in rows)


def state(*events: object, device: str | None = "nvme0n1") -> LiveState:
    live_state = LiveState((device,) if device else ())
    for event in events:
        live_state.apply(event)  # type: ignore[arg-type]
    return live_state


def ready(second: int, fio: bool = True, **options: object) -> FrameReady:
    latencies = NO_LATENCY not in options.get("flags", frozenset())  # type: ignore[operator]
    interval = fakes.interval(second, latencies=latencies) if fio else None
    return FrameReady(second, fakes.frame(second, interval, **options))  # type: ignore[arg-type]


def fio(live_state: LiveState, width: int = 100, height: int = 7) -> str:
    return text(fio_panel.rows(live_state, width, height, UTF8, "mixed-4k"))


def test_fio_panel_shows_directions_and_total() -> None:
    panel = fio(state(STARTED, ready(2)))
    lines = panel.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["read", "write", "total"]
    assert "p99.99" in panel and "MiB/s" in panel and "32:" in panel and "ctx/s" in panel


def test_fio_panel_shows_syncs_below_the_writes() -> None:
    interval = replace(fakes.interval(2), sync=fakes.interval(2).directions["write"])
    frame = FrameReady(2, fakes.frame(2, interval))
    lines = fio(state(STARTED, frame), height=8).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["read", "write", "total", "sync"]
    assert lines[5].split()[2] == "–", "syncs move no bytes"


def test_the_device_line_is_updated_when_a_setting_changes() -> None:
    controller = fakes.FakeController()
    dashboard = Dashboard(controller, state(), UTF8, lambda *size: [])
    first = dashboard.title_line(120)
    assert dashboard.title_line(120) is first
    device = fakes.DEVICES["nvme0n1"]
    assert device.queue is not None
    changed = replace(device, queue=replace(device.queue, scheduler="kyber"))
    controller.devices = {**fakes.DEVICES, "nvme0n1": changed}
    assert "scheduler kyber" in text(dashboard.title_line(120)) and "kyber" not in text(first)
    assert text(dashboard.title_line(60)) == text(bars.device_line(
        controller.target, controller.devices, 60, UTF8, trail="home › "
    ))  # fmt: skip


def test_a_disk_that_is_gone_has_no_size_any_more() -> None:
    dashboard = Dashboard(fakes.FakeController(), state(), UTF8, lambda *size: [])
    assert "size unknown" not in text(dashboard.title_line(120))
    dashboard.state.answer = Answer("nvme0n1", GONE, WARNING, "nvme0n1 is gone")
    assert "size unknown" in text(dashboard.title_line(120))


def test_one_direction_needs_no_total() -> None:
    event = FrameReady(2.0, fakes.frame(2, fakes.interval(2, mixed=False)))
    assert "total" not in fio(state(STARTED, event))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((), "no job: press r to run mixed-4k, j to choose"),
        ((STARTED,), "fio is starting"),
        ((replace(STARTED, phase="layout"),), "creating the scratch file"),
        (
            (
                replace(STARTED, phase="layout"),
                LayoutProgress(2, 1, "laying out", 1 << 30, 4 << 30),
            ),
            "1 GiB of 4 GiB (25 %)",
        ),
        ((STARTED, ready(2, flags=frozenset({RAMP}))), "ramp: fio is warming up"),
        (
            (STARTED, ready(2), ready(5, fio=False, flags=frozenset({LATE}), age=3.2)),
            "late: no report from fio for 3.2 s",
        ),
        (
            (STARTED, ready(2, flags=frozenset({NO_LATENCY}))),
            "this job measures no latency (gtod_reduce)",
        ),
        (
            (STARTED, ready(2), StepFinished(3, 1, 0, "", False)),
            "whole run: 46.6k IOPS, 182 MiB/s, p50 358 µs, p99 569 µs, p99.9 ",
        ),
        ((StepFinished(3, 1, 2, "fio is too old.", False),), "the job did not start"),
        ((STARTED, StepFinished(3, 1, 1, "died", False)), "ended before fio reported"),
    ],
)
def test_important_flags_are_explained_in_words(events: tuple[object, ...], message: str) -> None:
    for width in (80, 100):
        assert message in " ".join(fio(state(*events), width).split())


def test_a_partial_last_second_does_not_replace_the_last_full_one() -> None:
    partial_interval = replace(fakes.interval(3), seconds=0.07, partial=True)
    last = FrameReady(3.07, fakes.frame(3, partial_interval, frozenset({FINAL, PARTIAL})))
    finished = StepFinished(3.1, 1, 0, "", False)
    assert "over 1.00 s" in fio(state(STARTED, ready(2), last, finished))
    assert "over 0.07 s" in fio(state(STARTED, last, finished)), "there is nothing else"
    partial = FrameReady(
        3.5, fakes.frame(3, replace(partial_interval, seconds=0.5), frozenset({PARTIAL}))
    )
    assert "over 0.50 s" in fio(state(STARTED, ready(2), partial))


def test_figures_of_an_ended_run_are_not_shown_as_current() -> None:
    refused = StepFinished(9, 2, 2, "in use", False)
    ended = state(STARTED, ready(2), StepFinished(3, 1, 0, "", False), ready(9, fio=False))
    for live_state in (ended, state(STARTED, ready(2), StepFinished(3, 1, 0, "", False), refused)):
        assert "this second" not in fio(live_state)
        assert "fio, its last second (0:02)" in fio(live_state) and live_state.fio_now is None
        assert "fio" not in text([bars.summary_line(live_state, fakes.ON_DISK, 80, UTF8)])


def test_a_message_is_shown_completely_before_the_own_cost() -> None:
    live_state, cost = state(), Overhead(1.5, 0.0)
    live_state.add_message("info", "an overlay needs two runs, which must have ended")
    line = bars.message_line(live_state, None, cost, 72, UTF8)
    assert "overlay" in text([line]) and "% CPU" not in text([line])
    assert "% CPU" in text([bars.message_line(live_state, None, cost, 120, UTF8)])
    at = fakes.frame(3)
    frozen = text([bars.message_line(state(), at, cost, 80, UTF8)])
    assert "measuring continues" in frozen and len(frozen.rstrip()) <= 80


def test_frozen_takes_only_the_space_that_the_message_leaves() -> None:
    at = fakes.frame(3)
    stopped = state()
    stopped.add_message("info", "run 1 stopped: 52.0k IOPS, 203 MiB/s, p99 3.46 ms")
    line = text([bars.message_line(stopped, at, None, 80, UTF8)])
    assert "FROZEN at 0:03 " in line and line.rstrip().endswith("p99 3.46 ms")
    stopped.add_message("info", "a message of middling length")
    line = text([bars.message_line(stopped, at, None, 80, UTF8)])
    assert " ago  " in line and "a message of middling length" in line and "measuring" not in line
    assert "measuring continues" in text([bars.message_line(stopped, at, None, 120, UTF8)])
    replay = bars.message_rows(stopped, at, None, 120, 0, UTF8, has_controls=False)
    assert " ago  " in text(replay) and "measuring" not in text(replay)


def test_a_message_continues_in_the_row_of_the_finding() -> None:
    message = " ".join(f"word{number}" for number in range(16))
    live_state = state(Notice(1.0, "error", message))
    first, two = bars.message_rows(live_state, None, Overhead(1.0), 80, 1, UTF8)
    assert len(text([first])) == len(text([two])) == 80
    assert message in " ".join(f"{text([first])} {text([two])}".split())
    cut = text(bars.message_rows(live_state, None, None, 80, 0, UTF8))
    assert cut.rstrip().endswith("… f: all") and len(cut) == 80
    whole = text(bars.long_message(live_state, 76, UTF8))
    assert message in " ".join(whole.split())
    assert not bars.long_message(live_state, 200, UTF8), "it fits in its row"
    longer = state(Notice(1.0, "error", message * 3))
    assert len(bars.message_rows(longer, None, None, 80, 2, UTF8)) == 3
    assert text(bars.message_rows(longer, None, None, 80, 2, UTF8)).rstrip().endswith("…")


def test_a_disk_that_disappears_and_returns_is_reported() -> None:
    present, without_disk = ready(1, fio=False), fakes.frame(2)
    away = FrameReady(2, replace(without_disk, disks={"sda": without_disk.disks["nvme0n1"]}))
    live_state = state(present, away)
    assert live_state.log.notice is not None and "nvme0n1 is gone" in live_state.log.notice.text
    assert "not measured now" in text([bars.summary_line(live_state, fakes.ON_DISK, 80, UTF8)])
    for event in (away, ready(4, fio=False), ready(5, fio=False)):
        live_state.apply(event)
    messages = [entry.text for entry in live_state.log.entries if "nvme0n1" in entry.text]
    assert len(messages) == 2 and messages[1] == "nvme0n1 is back"


def test_recorded_gtod_reduce_and_ramp_are_recognised() -> None:
    gtod = state(STARTED, *(FrameReady(f.t + 1, f) for f in recorded_frames("gtod")[:3]))
    assert "measures no latency (gtod_reduce)" in fio(gtod)
    ramp = state(STARTED, *(FrameReady(f.t + 1, f) for f in recorded_frames("ramp")[:2]))
    assert "ramp: fio is warming up" in fio(ramp)
    real = state(STARTED, *(FrameReady(f.t + 1, f) for f in recorded_frames("randread")[:3]))
    assert "read" in fio(real) and "–" not in fio(real)


def cpus(
    live_state: LiveState, width: int, height: int, charset: Charset = UTF8, **about: object
) -> list[Row]:
    devices = {**fakes.DEVICES, "nvme0n1": replace(fakes.NVME, **about)}  # type: ignore[arg-type]
    return cpu_panel.rows(live_state, fakes.ON_DISK, devices, Topology(), width, height, charset)


@pytest.mark.parametrize("width", [60, 79, 80, 100, 120, 200])
@pytest.mark.parametrize("height", [4, 7, 12])
def test_panels_have_exactly_the_required_size(width: int, height: int) -> None:
    live_state = state(STARTED, ready(2, tree=("nvme0n1p1", "nvme0n1"), cpus=64))
    panels = (
        fio_panel.rows(live_state, width, height, UTF8, "x"),
        kernel_panel.rows(live_state, fakes.ON_PARTITION, width, height, UTF8),
        cpus(live_state, width, height),
    )
    for rows in panels:
        assert [len(line) for line in text(rows).splitlines()] == [width] * height


def test_a_second_without_a_reading_of_the_kernel_is_not_the_first_one() -> None:
    unread = {"seconds": None, "disks": {}, "cpus": {}}
    late = FrameReady(2, replace(fakes.frame(2), **unread))
    for events, words in (
        ([FrameReady(0, replace(fakes.frame(0), seq=0, **unread))], "rates need two"),
        ([ready(1), late], "not measured in this second"),
    ):
        live_state = state(*events)
        shown = [kernel_panel.rows(live_state, fakes.ON_PARTITION, 120, 6, UTF8),
                 cpus(live_state, 120, 8)]  # fmt: skip
        assert all(words in text(rows) for rows in shown)


def test_kernel_panel_has_a_row_for_each_device_below() -> None:
    live_state = state(ready(2, tree=("nvme0n1p1", "nvme0n1")))
    panel = text(kernel_panel.rows(live_state, fakes.ON_PARTITION, 120, 6, UTF8))
    lines = panel.splitlines()
    assert lines[2].startswith("nvme0n1p1") and lines[3].startswith("└nvme0n1")
    for title in ("r/s", "w/s", "rMB/s", "rrqm/s", "r_await", "aqu-sz", "infl", "util%"):
        assert title in lines[1]


def test_an_await_below_the_kernels_clock_is_neither_0_nor_missing() -> None:
    event = ready(2, tree=("nvme0n1",))
    counts = {"reads": 40, "read_ms": 2, "writes": 3, "write_ms": 0}
    quick = replace(event.frame.disks["nvme0n1"], seconds=1.0, **counts)
    idle = replace(quick, reads=0, read_ms=0)

    def waits(disk: DiskRates) -> list[str]:
        now = state(replace(event, frame=replace(event.frame, disks={"nvme0n1": disk})))
        head, row = text(kernel_panel.rows(now, fakes.ON_DISK, 120, 6, UTF8)).splitlines()[1:3]
        return [row[: head.index(name) + len(name)].split()[-1] for name in ("r_await", "w_await")]

    assert waits(quick) == ["50.0µs", "<1ms"] and waits(idle) == ["–", "<1ms"]


def test_kernel_panel_explains_why_it_is_empty() -> None:
    panel = text(kernel_panel.rows(state(), fakes.ON_TMPFS, 80, 6, UTF8))
    assert "tmpfs has no block device" in panel
    assert "need two" in text(kernel_panel.rows(state(), fakes.ON_DISK, 80, 6, UTF8))
    without_devices = state(ready(2, tree=()))
    assert "not in /proc/diskstats" in text(
        kernel_panel.rows(without_devices, fakes.ON_DISK, 80, 6, UTF8)
    )


def test_flushes_without_a_column_are_shown_in_words() -> None:
    live_state = state(ready(2))
    narrow = text(kernel_panel.rows(live_state, fakes.ON_DISK, 79, 6, UTF8))
    wide = text(kernel_panel.rows(live_state, fakes.ON_DISK, 120, 6, UTF8))
    assert "flushes/s" in narrow and "flushes/s" not in wide and "f/s" in wide


def test_ipis_of_a_frame_without_a_reading_are_the_previous_ones() -> None:
    first = fakes.frame(2, None)
    later = {index: replace(cpu, ipi_s=None) for index, cpu in first.cpus.items()}
    live_state = state(FrameReady(2.0, first), FrameReady(3.0, replace(first, t=3.0, cpus=later)))
    assert live_state.ipi[0] == 12.0


def test_header_shows_the_device_and_counts_many_queues() -> None:
    line = text(bars.device_line(fakes.ON_DISK, fakes.DEVICES, 140, UTF8))
    for fact in ("nvme0n1", "1 TiB", "scheduler none", "rq_affinity 1", "hctx 1 → CPU 2-3"):
        assert fact in line
    many_queues = replace(fakes.NVME, hctxs=tuple(Hctx(i, (i,), 64, 0) for i in range(64)))
    line = text(bars.device_line(fakes.ON_DISK, {"nvme0n1": many_queues}, 140, UTF8))
    assert "64 hctx, one per CPU" in line


def test_control_characters_from_outside_are_removed() -> None:
    target = replace(fakes.ON_DISK, path="/dev/sda", device="sda", tree=("sda",))
    line = text(bars.device_line(target, fakes.DEVICES, 140, UTF8))
    assert "[red]bad" in line and "\x1b" not in line
    live_state = state(
        Notice(1.0, "error", "x\x1b[2J[bold]y\nz"), replace(STARTED, job="\x1b]0;t\x07")
    )
    live_state.add_message("error", "evil \x1b[31m")
    for rows in (
        bars.message_line(live_state, None, None, 80, UTF8),
        bars.job_line(live_state, "j", 80, UTF8),
    ):
        assert "\x1b" not in text(rows) and "\x07" not in text(rows)


def test_job_line_has_progress_and_eta() -> None:
    step_started = replace(STARTED, t=0.0)
    line = text(bars.job_line(state(step_started, ready(15)), "x", 120, UTF8))
    assert "25 %" in line and "0:15 / 1:00" in line and "read only" in line
    unknown = replace(fakes.interval(15), eta_s=None, progress=None)
    event = FrameReady(15.0, fakes.frame(15, unknown))
    assert "end unknown" in text(bars.job_line(state(step_started, event), "x", 120, UTF8))
    early = replace(fakes.interval(3), eta_s=None, progress=None)
    begun = state(step_started, FrameReady(3.0, fakes.frame(3, early)))
    line = text(bars.job_line(begun, "x", 120, UTF8))
    assert " elapsed" in line and "end unknown" not in line, "fio has not told it yet"
    last = replace(fakes.interval(16), eta_s=0, progress=1.0)
    rest = FrameReady(16.0, fakes.frame(16, last, frozenset({FINAL, PARTIAL})))
    stopped = state(step_started, ready(15), rest, StepFinished(16.0, 1, 0, "", True))
    line = text(bars.job_line(stopped, "x", 120, UTF8))
    assert " stopped " in line and "after 0:15" in line and "%" not in line, (
        "not done, and no part of what was planned"
    )
    ended = state(step_started, event, StepFinished(16.0, 1, 0, "", False))
    assert text(bars.job_line(ended, "x", 120, UTF8)).rstrip()[:-8].endswith("0:15  ")


def test_after_a_sweep_the_job_line_names_the_next_run_not_the_last_point() -> None:
    """A newcomer read "done randread-4k QD 256" and expected that depth from r."""
    live_state = state(
        lab.ExperimentStarted(0.0, lab.SWEEP),
        lab.point_started(lab.SWEEP, 6),
        replace(STARTED, t=0.0),
        ready(15),
        StepFinished(16.0, 1, 0, "", False),
    )
    assert "QD 32" in text(bars.job_line(live_state, "randread-4k", 120, UTF8))
    live_state.apply(lab.ExperimentFinished(17.0, 7, 7))
    line = text(bars.job_line(live_state, "randread-4k", 120, UTF8))
    assert "no job running  r starts randread-4k at once" in line and "QD" not in line
    assert "QD" in text(bars.job_line(live_state, "", 120, UTF8)), "a replay runs nothing"


@pytest.mark.parametrize("width", range(60, 130, 5))
def test_the_job_line_has_a_bar_that_fits_beside_the_clock(width: int) -> None:
    step_started = replace(STARTED, t=0.0)
    line = text(bars.job_line(state(step_started, ready(15)), "x", width, UTF8))
    bar = line.count(UTF8.full) + line.count(UTF8.empty)
    assert bar in (bars.BAR, bars.SHORT_BAR, 0) and ("%" in line) == (bar == bars.BAR)
    assert "0:15 / 1:00" in line or width < 70
    clock = re.search(r"\d\d:\d\d:\d\d", line)
    assert clock is not None or bar == 0, line


def test_a_blank_precedes_the_right_part_of_the_job_line() -> None:
    layout = state(replace(STARTED, phase="layout"), ready(15))
    lines = {width: text(bars.job_line(layout, "x", width, UTF8)) for width in range(60, 100)}
    assert all(" creating its file " in line or "creating" not in line for line in lines.values())
    assert sum("creating its file" in line for line in lines.values()) > 25


def test_neither_the_end_nor_the_time_jumps_when_fio_rounds() -> None:
    """A run of a minute. fio's documents are a second apart, except for some ms, and it rounds
    times."""
    live_state = state(STARTED)
    lines = []
    for n, (elapsed, eta) in enumerate([(2, 59), (2, 58), (4, 57), (4, 56), (6, 55)], 1):
        fio = replace(fakes.interval(n), elapsed_s=elapsed, eta_s=eta, progress=elapsed / 60)
        live_state.apply(FrameReady(n + 0.6, replace(fakes.frame(n, fio), t=n + 0.6)))
        lines.append(text(bars.job_line(live_state, "x", 80, UTF8)).split(" / "))
    assert [line[0].split()[-1] for line in lines] == ["0:01", "0:02", "0:03", "0:04", "0:05"]
    assert [line[1].split()[0] for line in lines] == ["1:01"] * 5
    beyond = replace(fakes.interval(60), elapsed_s=62, eta_s=0, progress=1.0)
    at_end = state(STARTED)
    at_end.total_s = 60
    at_end.apply(FrameReady(61.2, replace(fakes.frame(60, beyond), t=61.2)))
    assert "1:00 / 1:00" in text(bars.job_line(at_end, "x", 80, UTF8))
    longer = replace(fakes.interval(6), elapsed_s=6, eta_s=94, progress=0.06)
    live_state.apply(FrameReady(6.6, replace(fakes.frame(6, longer), t=6.6)))
    assert "0:06 / 1:40" in text(bars.job_line(live_state, "x", 80, UTF8)), "as it is told"


def test_the_total_time_of_a_run_does_not_change_from_second_to_second() -> None:
    asked = replace(STARTED, options={"runtime": "55", "ramp_time": "5s", "time_based": ""})
    live_state, shown = state(asked), []
    for n, total in enumerate([61, 59, 62, 60, 58, 90], 3):
        fio = replace(fakes.interval(n), elapsed_s=n, eta_s=total - n, progress=n / 60)
        live_state.apply(FrameReady(n + 0.6, replace(fakes.frame(n, fio), t=n + 0.6)))
        shown.append(live_state.total_s)
    assert shown == [60] * 5 + [90], (
        "fio's sum varies; other times that all sections add up to stay"
    )


def test_an_earlier_run_does_not_take_the_length_of_this_one() -> None:
    live_state = state(STARTED, ready(15))
    earlier, (moment,) = live_state.displayed_run, live_state.recent_seconds
    assert live_state.at(moment).total_s == 60
    live_state.apply(replace(STARTED, t=20.0, step=2))
    longer = replace(fakes.interval(25), elapsed_s=5, eta_s=295, progress=0.02)
    live_state.apply(FrameReady(25.0, replace(fakes.frame(25, longer), t=25.0)))
    assert "0:05 / 5:00" in text(bars.job_line(live_state, "x", 80, UTF8))
    assert "/ 1:00" in text(bars.job_line(live_state.at(moment), "x", 80, UTF8))
    live_state.show_run(earlier)
    assert "/ 1:00" in text(bars.job_line(live_state, "x", 80, UTF8))


def test_a_narrow_job_line_keeps_the_time() -> None:
    line = text(bars.job_line(state(replace(STARTED, t=0.0), ready(15)), "x", 80, UTF8))
    assert line.rstrip()[:-8].endswith("0:15 / 1:00  ") and "%" not in line


def test_a_long_message_uses_the_whole_line() -> None:
    message = "The right to read /dev/vda is missing, and the job needs it."
    for level in ("error", "warning", "info"):
        live_state = state(Notice(1.0, level, message))
        assert message in text(bars.message_line(live_state, None, Overhead(2.0), 80, UTF8))


def test_summary_has_both_sides() -> None:
    line = text(bars.summary_line(state(STARTED, ready(2)), fakes.ON_DISK, 80, UTF8))
    assert "IOPS" in line and "p99" in line and "nvme0n1" in line and "util" in line
    assert len(line) == 80
    assert "no block device" in text(bars.summary_line(state(), fakes.ON_TMPFS, 80, UTF8))


def test_the_footer_keeps_help_and_quit_at_any_width() -> None:
    hints = [bars.KeyHint("r", "Run")] * 30
    for width in (60, 80, 200):
        line = text(bars.footer_line(hints, width, UTF8))
        assert len(line) == width and "? Help" in line and "q Quit" in line


def test_an_error_stays_visible_and_is_not_marked_by_colour_alone() -> None:
    live_state = state(Notice(1.0, "error", "fio died"), Notice(1.2, "info", "fio: detail"))
    assert "error: fio died" in text(bars.message_line(live_state, None, None, 80, UTF8))
    assert [entry.text for entry in live_state.log.entries] == ["fio died", "fio: detail"]
    # but the result of a key is shown at once
    live_state.add_message("info", "bs=8k from the next run on")
    assert "bs=8k from" in text(bars.message_line(live_state, None, None, 80, UTF8))


def test_a_new_run_clears_the_last_runs_error() -> None:
    live_state = state(Notice(1.0, "error", "fio died"), replace(STARTED, t=2.0))
    assert live_state.visible_notice() is None


@pytest.mark.parametrize("interrupted", [True, False])
def test_the_end_of_a_run_is_no_longer_news_once_the_next_has_started(interrupted: bool) -> None:
    ended_run = (STARTED, StepFinished(2.0, 1, 0, "", interrupted))
    end_notice = state(*ended_run).visible_notice()
    assert end_notice is not None and state(*ended_run).next_keys
    notice = Notice(2.1, "info", "bound to queues")
    next_run = replace(STARTED, t=2.2, step=2)
    for before in (ended_run, (STARTED, notice, *ended_run[1:])):
        after = state(*before, next_run).visible_notice()
        assert after is not None and after.text == end_notice.text
        assert not state(*before, next_run).next_keys, "it is no advice while one runs"
    visible = state(*ended_run, notice, next_run).visible_notice()
    assert visible is not None and visible.text == "bound to queues"


def test_the_end_of_the_session_names_its_reason() -> None:
    live_state = state(STARTED, Notice(2.0, "error", "internal error: x"), SessionEnded(2.0, 1))
    assert not live_state.running
    notice = live_state.visible_notice()
    assert notice is not None and "internal error: x" in notice.text


def test_a_changed_option_leaves_one_mark_not_two() -> None:
    live_state = state(Mark(5.0, "QD 64"), replace(STARTED, t=6.0, step=2))
    assert [mark.text for mark in live_state.history.marks(0, 10)] == ["QD 64"]


def test_missing_figures_are_gaps_in_the_history() -> None:
    live_state = state(
        STARTED, ready(1), ready(2, flags=frozenset({NO_LATENCY})),
        ready(3, fio=False, flags=frozenset({NO_FIO})),
    )  # fmt: skip
    assert [v is None for v in live_state.history.window("p99", 0.0, 1.0, 3)] == [False, True, True]
    assert [v is None for v in live_state.history.window("fio", 0.0, 1.0, 3)] == [
        False,
        False,
        True,
    ]
    assert None not in live_state.history.window("device", 0.0, 1.0, 3)


def test_ascii_panels_are_ascii() -> None:
    live_state = state(STARTED, ready(2, cpus=4))
    rows = [
        *fio_panel.rows(live_state, 80, 7, ASCII, "x"),
        *kernel_panel.rows(live_state, fakes.ON_PARTITION, 80, 6, ASCII),
        *cpus(live_state, 80, 6, charset=ASCII),
        bars.device_line(fakes.ON_DISK, fakes.DEVICES, 120, ASCII),
        bars.job_line(live_state, "x", 80, ASCII),
        bars.tabs_line(tabs(), 1, 80, ASCII),
    ]
    assert text(rows).isascii()


# -- several devices

PAIR = combine_targets(
    [
        Target(DEVICE, f"/dev/{name}", name, (name, "nvme0n1p1", "nvme0n1"))
        for name in ("loop0", "loop1")
    ]
)


def pair(second: int = 2, **more: object) -> LiveState:
    disks = {
        "loop0": fakes.disk(100, 0), "loop1": fakes.disk(300, 0), "nvme0n1p1": fakes.disk(7, 0),
        "nvme0n1": fakes.disk(8, 0), **more,
    }  # fmt: skip
    live_state = LiveState(PAIR.opened)
    live_state.apply(FrameReady(second, replace(fakes.frame(second), disks=disks)))  # type: ignore[arg-type]
    return live_state


PRESSURE = registry.Panel(
    "pressure",
    lambda scene, width, height: pad([[("pressure of I/O", None)]], height, width),
    tab="psi",
    height=3,
)


@pytest.mark.parametrize(("size", "tabbed"), [((160, 60), False), ((80, 24), True)])
async def test_another_panel_takes_one_entry(
    size: tuple[int, int], tabbed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PANELS", (*registry.PANELS, PRESSURE))
    tab = f"{len(registry.tabs())} Psi"
    app = make()
    async with app.run_test(size=size) as pilot:
        await running(app, pilot)
        assert shows(app, "pressure of I/O") is not tabbed
        if tabbed:
            assert shows(app, f" {tab} ")
            await pilot.press("shift+tab")
            await settle(pilot)
            assert shows(app, "pressure of I/O") and shows(app, f"[ {tab} ]")


def test_the_kernel_panel_shows_the_sum_each_device_and_those_below() -> None:
    rows = kernel_panel.rows(pair(), PAIR, 100, 10, UTF8)
    lines = text(rows).splitlines()
    names = [line.split()[0] for line in lines[2:7]]
    assert names == ["sum", "loop0", "loop1", "└nvme0n1p1×2", "└nvme0n1×2"]
    sums = dict(zip(lines[1].split()[1:], lines[2].split()[3:], strict=True))
    assert (sums["r/s"], sums["util%"], sums["aqu-sz"]) == ("400", f.MISSING, "34.4")
    assert {len(line) for line in lines} == {100}


def test_targets_are_listed_before_the_devices_below_them() -> None:
    lines = text(kernel_panel.rows(pair(), PAIR, 100, 6, UTF8)).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["sum", "loop0", "loop1"]
    assert "and 2 more devices" in lines[5]


def test_there_is_no_sum_if_one_device_is_missing() -> None:
    live_state = pair()
    live_state.frame = replace(live_state.frame, disks={"loop0": fakes.disk(1, 0)})  # type: ignore[type-var]
    lines = text(kernel_panel.rows(live_state, PAIR, 100, 10, UTF8))
    assert "no sum: not all devices were measured" in lines


def test_a_device_on_another_has_no_sum_and_explains_why() -> None:
    nested = combine_targets(
        [fakes.ON_DISK, Target(DEVICE, "/x", "nvme0n1p1", ("nvme0n1p1", "nvme0n1"))]
    )
    lines = text(kernel_panel.rows(state(ready(2)), nested, 100, 10, UTF8))
    assert "no sum: nvme0n1p1 is on top of nvme0n1" in lines


def test_targets_on_no_device_are_named_under_the_sum() -> None:
    mixed = combine_targets([*PAIR.places, fakes.ON_TMPFS])
    lines = text(kernel_panel.rows(pair(), mixed, 100, 12, UTF8))
    assert "not in the sum: /dev/shm/x (tmpfs has no block device)" in lines


def test_the_chart_s_curve_is_the_sum() -> None:
    live_state = pair()
    assert live_state.history.window("device", 1.0, 1.0, 1) == [400.0]


def test_several_devices_in_the_header_and_the_summary() -> None:
    devices = {
        name: replace(fakes.NVME, name=name, kind="loop", model=None)
        for name in ("loop0", "loop1")
    }  # fmt: skip
    line = text(bars.device_line(PAIR, devices, 160, UTF8))
    assert line.startswith(" loop0, loop1  loop  1 TiB each  scheduler none  rq_affinity 1")
    mixed = {**devices, "loop1": replace(devices["loop1"], size=1 << 30, queue=None)}
    assert "together" in text(bars.device_line(PAIR, mixed, 160, UTF8))
    summary = text(bars.summary_line(pair(), PAIR, 80, UTF8))
    assert "2 devices" in summary and "400 IO/s" in summary and "util" not in summary


def test_many_targets_say_how_many_are_not_shown() -> None:
    target = combine_targets([Target(DEVICE, f"/dev/loop{n}", f"loop{n}") for n in range(30)])
    line = text(bars.device_line(target, {}, 60, UTF8))
    assert "more" in line and len(line) == 60


def test_the_map_of_completions_has_no_more_rows_than_it_needs() -> None:
    assert registry.heights(registry.PANELS, 2)["completions"] == 5  # title, marks, two CPUs, time
    assert registry.heights(registry.PANELS, 64)["completions"] == 9
    assert registry.heights(registry.PANELS)["completions"] == 9, "the CPUs are not known yet"


@pytest.mark.parametrize("size", [(160, 45), (200, 50)])
async def test_the_job_does_not_stick_to_the_devices_facts(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot, 3)
        fake.finish(interrupted=True)
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)
        head = app.screen.panels["header"].text()
        assert re.search(r"\S {2,}stopped ", head)


def test_two_blanks_precede_the_time_of_a_stopped_run() -> None:
    run = state(STARTED, ready(15), StepFinished(17.0, 1, 0, "", True))
    for width in range(60, 100):
        assert "read only after" not in text(bars.job_line(run, "x", width, UTF8))
