"""The screen of many hosts, with made-up seconds."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from test_app import screen_text, settle, shows, wait_until
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

from iopstui.features.fleet.controller import FleetController
from iopstui.features.fleet.findings import ABSENT
from iopstui.features.fleet.fleet_events import (
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRunStarted,
    HostRow,
    HostStateChanged,
    host_figures,
)
from iopstui.features.fleet.fleet_state import IOPS, FleetState, HostState
from iopstui.features.fleet.hosts.host_tunables import (
    HostTunableChange,
    HostTunableResult,
    HostTunables,
    tunables_object,
)
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.program.agent import compact_frame
from iopstui.features.fleet.replay import FleetReplay
from iopstui.features.fleet.screen.app import SHOW_AGE_AFTER_S, FleetApp, FleetReplayApp
from iopstui.features.fleet.screen.dashboard import FleetDashboard, HostView
from iopstui.features.fleet.screen.hosts import HostsView
from iopstui.format import number
from iopstui.model.experiment.plan import Plan
from iopstui.model.figures.figure import SHOWN
from iopstui.model.histogram import bucket_key
from iopstui.safety.tunables import TunableState
from iopstui.ui.core.key import KeyHint
from iopstui.ui.core.modal import Modal
from iopstui.ui.draw.style import UTF8

Object = dict[str, Any]
START_S = 1_800_000_000
JOB = "randread-4k"


def frame(seed: int, t: int, iops: int, p50: int) -> Object:
    chance = random.Random(seed * 1000 + t)
    ios = int(iops * chance.uniform(0.95, 1.05))
    keys = [bucket_key(int(p50 * times)) for times in (1, 1.5, 3)]
    bins = {str(key): count for key, count in zip(keys, (ios - 40, 30, 10), strict=True)}
    ranks = {"p50": keys[0], "p99": keys[1], "p99.9": keys[2], "max": keys[2]}
    part = {
        "iops": float(ios), "bw": ios * 4096.0, "ios": ios, "bytes": ios * 4096,
        "slat": {"mean": 900.0, "n": ios}, "lat": {"mean": p50 * 1.1, "n": ios},
        "clat": {"mean": p50 * 1.1, "n": ios, **ranks}, "bins_of": "clat", "bins": bins,
    }  # fmt: skip
    disk = {
        "r/s": float(ios), "w/s": 0.0, "rMB/s": ios / 256, "wMB/s": 0.0, "aqu-sz": 8.0,
        "in-flight": 8, "reads": ios, "writes": 0, "r_await": p50 / 1e6, "w_await": None,
        "util": 71.0,
    }  # fmt: skip
    return {
        "event": "frame", "seq": t, "step": 1, "t": float(t), "wall_ms": (START_S + t) * 1000.0,
        "seconds": 1.0, "flags": [], "own_cpu": 0.5,
        "fio": {"seconds": 1.0, "read": part, "total": {**part, "bins": None}},
        "kernel": {"total": disk},
    }  # fmt: skip


def start_events(name: str, at: int) -> list[Object]:
    return [
        {"event": "session", "host": name, "target": "/mnt/shared", "device": "nvme0n1",
         "devices": ["nvme0n1"], "opened": ["nvme0n1"]},
        {"event": "step_started", "t": 0.0, "step": 1, "job": JOB, "command": [],
         "title": "randread 4k  QD 32 × 1 job", "phase": "run", "read_only": True,
         "options": {"runtime": "60"}, "fio_version": "fio-3.33"},
        {"event": "executed", "t": 0.0, "step": 1, "wall_ms": START_S * 1000.0 + at % 7,
         "monotonic_ns": 0, "late_ms": 0.1, "offset_ms": 0.0, "error_ms": 0.2},
    ]  # fmt: skip


def lines(names: list[str], seconds: int) -> list[tuple[str, Object]]:
    """Rows of hosts: the third host is slow; the second is silent after ten seconds."""
    rows = [(name, row) for at, name in enumerate(names) for row in start_events(name, at)]
    for t in range(1, seconds + 1):
        for at, name in enumerate(names):
            if at != 1 or t <= 10:
                iops, p50 = (4000, 900_000) if at == 2 else (10_000, 300_000)
                rows.append((name, frame(at, t, iops, p50)))
    return rows


class Runs:
    """A fleet whose events the test sends."""

    live = False
    running = True

    def __init__(self, names: list[str]) -> None:
        self.names = self.hosts = names
        self.ran: list[tuple[str, dict[str, str]]] = []
        self.details: list[tuple[str, bool]] = []
        self.marks: list[str] = []
        self.closed = False
        self.frames: dict[str, Object] = {}
        self.settings = HostTunables()
        self.asked = self.stops = 0
        self.swept: list[Plan] = []
        self.turns: list[HostTunableChange] = []
        self.tell: Callable[[FleetEvent], None] = lambda event: None

    def request_settings(self) -> bool:
        self.asked += 1
        return True

    def change_tunable(self, change: HostTunableChange) -> None:
        self.turns.append(change)

    def start(self, emit: Callable[[FleetEvent], None]) -> None:
        self.tell = emit

    def run(self, job: str, options: Mapping[str, str]) -> None:
        self.ran.append((job, dict(options)))

    def sweep(self, plan: Plan) -> None:
        self.swept.append(plan)

    def stop(self) -> None:
        self.stops += 1
        self.tell(FleetRunFinished("stopped", 130, (), ("all hosts stopped",)))

    def mark(self, text: str) -> None:
        self.marks.append(text)

    def detail(self, name: str, detailed: bool) -> None:
        self.details.append((name, detailed))

    def close(self) -> None:
        self.closed = True

    def play(self, seconds: int, watching: bool = False) -> None:
        merger = self.merger = Merger()
        merger.on_interval = lambda name, slot, merged: self.tell(host_figures(name, slot, merged))
        self.tell(
            FleetRunStarted(1, tuple(self.names), float(START_S), "" if watching else JOB, watching)
        )
        for name, row in lines(self.names, seconds):
            if watching and row["event"] in ("step_started", "executed"):
                continue
            row = {**row, "fio": None, "step": 0} if watching and "fio" in row else row
            if row["event"] == "frame":
                self.frames[name] = row
            else:
                self.tell(HostRow(name, row))
            merger.feed(name, row)
            for second in merger.close_seconds():
                self.tell(second)
        self.tell(HostStateChanged(self.names[1], "lost", "its connection has ended"))

    def play_between(self, begin: int, seconds: int) -> None:
        """Send seconds of hosts that are watched after a run."""
        merger = Merger()
        merger.on_interval = lambda name, slot, merged: self.tell(host_figures(name, slot, merged))
        self.tell(
            FleetRunStarted(0, tuple(self.names), START_S + begin, watching=True, between_runs=True)
        )
        for name in self.names:
            self.tell(HostRow(name, {**start_events(name, 0)[0], "target": "/dev/nvme0n1"}))
        for t in range(begin + 1, begin + seconds + 1):
            for at, name in enumerate(self.names):
                row = {**frame(at, t, 5000, 300_000), "fio": None, "step": 0, "t": t - begin + 0.0}
                self.frames[name] = row
                merger.feed(name, row)
            for second in merger.close_seconds():
                self.tell(second)


def make_app(names: list[str], job: str | None = JOB) -> tuple[FleetApp, Runs]:
    runs = Runs(names)
    return FleetApp(FleetController(runs, "node[01-99]", job), (), job), runs


def four_hosts() -> list[str]:
    return [f"node{n:02d}" for n in range(1, 5)]


@asynccontextmanager
async def four_hosts_after(
    seconds: int, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[FleetApp, Runs, Pilot[int]]]:
    """The screen of four hosts after these seconds."""
    app, runs = make_app(four_hosts())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        runs.play(seconds)
        await settle(pilot)
        yield app, runs, pilot


async def test_each_of_four_hosts_has_a_row_and_can_be_opened() -> None:
    async with four_hosts_after(25) as (app, runs, pilot):
        text = screen_text(app)
        assert "3 of 4 hosts  1 lost  started within 3.40 ms" in text
        assert [line.split()[-1] for line in text.splitlines() if line.startswith("│ node02")]
        assert "its connection has ended" in text and "straggler node03: 3.99k IOPS" in text
        (row,) = [line for line in text.splitlines() if line.startswith("│ node04")]
        assert " 300µs " in row and " 71 " in row and "runs" in row
        await pilot.press("down", "down", "enter")
        await wait_until(pilot, lambda: shows(app, "node03 /mnt/shared on nvme0n1"))
        assert runs.details == [("node03", True)] and shows(app, "no CPU figures")
        await pilot.press("r")
        assert shows(app, "Esc returns to all")
        await pilot.press("escape")
        await wait_until(pilot, lambda: shows(app, "3 of 4 hosts"))
        assert runs.details[-1] == ("node03", False)
        # the answer is about node02, which is listed first
        await pilot.press("up", "up", "enter")
        await wait_until(
            pilot, lambda: shows(app, "node02 lost: its connection has ended /mnt/shared")
        )
        # the charts of node02 end when it was lost
        one = app.source.one
        assert one is not None and one.state.history.end == pytest.approx(10.0)
        # q leads back to all hosts, too
        await pilot.press("q")
        assert app.source.one is None
        await pilot.press("q")
    assert runs.closed and app.return_code == 0


async def test_the_findings_of_all_name_the_hosts_that_have_their_own() -> None:
    async with four_hosts_after(3) as (app, runs, _pilot):
        assert "No findings besides" in findings(app)
        runs.tell(HostRow("node03", {"event": "found", "t": 3.0, "finding": {}}))
        app.source.take_events()
        assert "Single hosts have findings: node03. Enter on a host" in findings(app)
        app.source.show("node03")
        assert "No findings besides" in findings(app)


def findings(app: FleetApp) -> str:
    assert app.dashboard is not None
    rows = app.dashboard.finding_rows(100)
    return " ".join("".join(text for text, _ in row).strip() for row in rows)


async def test_a_host_that_was_late_and_has_ended_is_missed_no_longer() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(25)
        runs.tell(HostStateChanged("node02", "late", ""))
        await settle(pilot)
        source = app.source
        assert source.hosts.second is not None
        source._judge(source.hosts.second)
        assert source.all.answer is not None and source.all.answer.rule == ABSENT
        runs.tell(HostStateChanged("node02", "done", ""))
        source.take_events()
        assert "straggler" in source.all.answer.text


async def test_up_and_down_show_the_next_host_while_one_is_shown() -> None:
    async with four_hosts_after(25, (80, 24)) as (app, runs, pilot):
        await pilot.press("enter")
        board = app.dashboard
        assert isinstance(board, FleetDashboard)
        # the host's charts come first, and the list of hosts is where it was
        assert board.tab == 0 and shows(app, "[ 1 IOPS ]") and shows(app, "5 CPUs")
        await pilot.press("down")
        await settle(pilot)
        assert runs.details == [("node02", True), ("node02", False), ("node01", True)]
        assert shows(app, "› node01") and shows(app, "device ░░")
        assert app.port.state is not app.source.all
        await pilot.press("escape")
        await settle(pilot)
        assert app.port.state is app.source.all and runs.details[-1] == ("node01", False)
        assert board.tab == 3 and shows(app, "[ 4 Hosts ]") and not shows(app, "CPUs")


def listed(app: FleetApp) -> list[str]:
    """Host names from top to bottom."""
    rows = (line.strip("│ ").split() for line in screen_text(app).splitlines())
    return [row[0] for row in rows if row and row[0][4:].isdigit()]


@pytest.mark.parametrize("watching", [False, True], ids=["fio", "watched"])
@pytest.mark.parametrize("sends_sums", [False, True], ids=["lines", "sums"])
def test_a_host_without_a_device_shows_no_zeros(watching: bool, sends_sums: bool) -> None:
    """A host on tmpfs: only fio knows its I/Os."""
    state, merger = FleetState(), Merger()
    merger.on_interval = lambda name, slot, merged: state.apply(host_figures(name, slot, merged))
    state.apply(FleetRunStarted(1, ("node01",), float(START_S), "" if watching else JOB, watching))
    for t in range(1, 6):
        fields = {"fio_age_s": 0.1, "skew_ms": 0.0, "probe": None, "throttled": None}
        row = {**frame(0, t, 5000, 300_000), **fields, "kernel": {"total": None}}
        row |= {"fio": None, "step": 0} if watching else {}
        merger.feed("node01", {"event": "frame", **compact_frame(row)} if sends_sums else row)
    for second in merger.finish():
        state.apply(second)
    rows = HostsView(UTF8).rows(state, START_S + 4, 60, 4)
    lines_of = ["".join(text for text, _ in row) for row in rows]
    (line,) = [line.split() for line in lines_of if line.startswith("node01")]
    assert line[-3:-1] == ["–", "–"], "neither await nor util%"
    assert (line[1:4] == ["–", "–", "–"]) == watching
    assert (state.sums[IOPS].at(START_S + 4) is None) == watching


async def click(pilot: Pilot[int], label: str, times: int = 1) -> None:
    """Click on the label in the heading of the list of hosts, or else on the host of that name
    below."""
    app = pilot.app
    rows = screen_text(app).splitlines()  # type: ignore[arg-type]
    y = next(y for y, row in enumerate(rows) if "state" in row and "util%" in row)
    y = y if label in rows[y] else next(n for n in range(y, len(rows)) if label in rows[n])
    await pilot.click(offset=(rows[y].index(label) + 1, y), times=times)
    await settle(pilot)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_hosts_are_sorted_by_the_clicked_column(size: tuple[int, int]) -> None:
    async with four_hosts_after(25, size) as (app, runs, pilot):
        assert shows(app, "o: node02 first, then by name")
        assert listed(app) == ["node02", "node01", "node03", "node04"]
        await click(pilot, "p99")
        assert shows(app, "o: highest p99 first") and listed(app)[0] == "node03"
        await click(pilot, "p99")
        # node02 is silent: last in both orders
        assert shows(app, "o: lowest p99 first")
        assert listed(app)[2] == "node03"
        await click(pilot, "host")
        await click(pilot, "host")
        assert listed(app) == ["node02", "node04", "node03", "node01"]
        await click(pilot, "state")
        assert shows(app, "o: worst state first") and listed(app)[0] == "node02"
        await click(pilot, "node04", times=2)
        await wait_until(pilot, lambda: runs.details == [("node04", True)])


async def test_o_and_capital_o_sort_by_every_column_from_both_ends() -> None:
    async with four_hosts_after(25) as (app, _runs, pilot):
        board, orders = app.dashboard, []
        assert isinstance(board, FleetDashboard)
        for _ in range(9):
            await pilot.press("o")
            orders.append(board.hosts.order)
        assert orders == ["worst", "iops", "bw", "wait", "await", "util", "state", "odd", "name"]
        await pilot.press("o", "o")
        assert shows(app, "o: least IOPS first") and listed(app)[0] == "node03"
        await pilot.press("O")
        assert shows(app, "o: most IOPS first") and listed(app)[2] == "node03"
        await pilot.press("o")
        assert shows(app, "o: least MiB/s first")


def with_probe(rows: list[tuple[str, Object]]) -> list[tuple[str, Object]]:
    """The rows of all hosts but the first with the device's own latencies, in a bucket at 250
    µs."""
    none: Object = {"ios": 0, "bins": {}}
    reads = {"ios": 9000, "bins": {str(bucket_key(250_000)): 9000}}
    device = {"seconds": 1.0, "read": reads, "write": none, "discard": none, "missed": 0.0,
              "skipped": 0, "lost": 0, "full": 0}  # fmt: skip
    return [
        (name, {**row, "device": device} if row["event"] == "frame" and name != "node01" else row)
        for name, row in rows
    ]


async def test_device_percentiles_of_the_hosts_with_a_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = lines
    monkeypatch.setitem(globals(), "lines", lambda *of: with_probe(plain(*of)))
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(9)
        await wait_until(pilot, lambda: shows(app, "device: 3 of 4 hosts"))
        assert shows(app, "device p50")
        await pilot.press("h", "h")
        await wait_until(pilot, lambda: shows(app, "Device latency"))
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: shows(app, "on nvme0n1") and shows(app, "Device latency"))
        await pilot.press("h")
        assert shows(app, "device p50")
        await pilot.press("escape", "q")


async def test_many_hosts_are_a_map_that_a_filter_narrows_to_rows() -> None:
    app, runs = make_app([f"node{n:02d}" for n in range(1, 100)])
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        runs.play(25)
        await settle(pilot)
        text = screen_text(app)
        assert "node01-" in text and "p99 / median" in text
        # lost hosts come first, then the slowest
        hosts = [line.split()[0] for line in text.splitlines() if line.startswith("node")]
        listed = [name for name in hosts if "-" not in name]
        assert listed[:2] == ["node02", "node03"]
        await pilot.press("slash", *"node[02-04]", "enter")
        await settle(pilot)
        assert runs.details == [("node02", True)]
        await pilot.press("escape")
        await settle(pilot)
        assert shows(app, "Hosts 3 of 99") and not shows(app, "p99 / median")
        await pilot.press("escape")
        assert shows(app, "p99 / median")


async def test_keys_act_on_all_hosts() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert runs.ran == [(JOB, {})]
        assert app.dashboard is not None and KeyHint("r", "Stop") in app.dashboard.hints
        runs.tell(FleetRunStarted(1, tuple(four_hosts()), float(START_S), JOB))
        await settle(pilot)
        text = screen_text(app)
        assert "randread-4k is about to start" in text and "r Stop " in text
        assert "press r to run" not in text
        runs.play(6)
        await settle(pilot)
        await pilot.press("right_square_bracket")
        await wait_until(pilot, lambda: len(runs.ran) > 1)
        assert runs.ran[-1] == (JOB, {"iodepth": "64"}) and runs.marks == ["QD 32 → 64"]
        await pilot.press("r")
        await settle(pilot)
        assert shows(app, "run 1 stopped: 34.0k IOPS")
        await pilot.press("a")
        await settle(pilot)
        assert not shows(app, "filter:"), "a letter that is no key does nothing"
        await pilot.press(*"/a")
        await settle(pilot)
        assert shows(app, "filter: a")


async def test_a_page_over_the_end_of_a_run_leaves_no_stale_picture() -> None:
    async with four_hosts_after(25, (160, 45)) as (app, runs, pilot):
        await pilot.press("f")
        await settle(pilot)
        runs.stop()
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("space")
        # all changes are sent to the terminal, although no further second comes
        await wait_until(
            pilot, lambda: app.dashboard is not None and not app.dashboard.canvas.has_changes
        )
        assert shows(app, "FROZEN")


async def test_without_a_job_the_kernel_s_figures_are_shown() -> None:
    app, runs = make_app(four_hosts(), job=None)
    async with app.run_test(size=(120, 50)) as pilot:
        await settle(pilot)
        assert runs.ran == [("", {})]
        runs.play(8, watching=True)
        await settle(pilot)
        text = screen_text(app)
        assert "no job: watching the hosts' disks" in text and "r runs" not in text
        (row,) = [line for line in text.splitlines() if line.startswith("│ node04")]
        assert " 300µs " in row
        await pilot.press("r")
        assert shows(app, "no job in this session")


async def test_keys_that_need_a_job_are_not_named_without_one() -> None:
    app, runs = make_app(four_hosts(), job=None)
    async with app.run_test(size=(250, 70)) as pilot:
        await settle(pilot)
        runs.play(8, watching=True)
        await settle(pilot)
        assert app.dashboard is not None
        named = {hint.key for hint in app.dashboard.hints}
        assert {"Enter", "o", "k", "f"} <= named and not {"r", "w", "h"} & named
        # the screen of many hosts has no key for the probe
        assert shows(app, "no job: means from /proc/diskstats; --probe: percentiles")
        await pilot.press("h")
        assert shows(app, "with the probe (--probe)")


async def test_the_footer_names_the_keys_of_a_filter_while_it_is_typed() -> None:
    async with four_hosts_after(8) as (app, _runs, pilot):
        assert app.dashboard is not None
        usual = app.dashboard.hints
        await pilot.press("slash")
        assert [hint.key for hint in app.dashboard.hints] == ["Esc", "Enter", "↑ ↓"]
        await settle(pilot)
        assert screen_text(app).rstrip().endswith("↑ ↓ Choose"), "? and q are text, too"
        await pilot.press("r", "enter")
        await settle(pilot)
        assert KeyHint("Esc", "Clear filter") in app.dashboard.hints
        await pilot.press("escape", "slash", "0", "4", "enter")
        await wait_until(pilot, lambda: shows(app, "node04 /mnt/shared"))
        assert KeyHint("Esc", "All hosts") in app.dashboard.hints
        await pilot.press("escape")
        # the filter is still typed
        await wait_until(pilot, lambda: shows(app, "Esc Clear filter"))
        await pilot.press("escape")
        assert app.dashboard.hints == usual


async def test_a_finished_run_has_the_figures_of_all_its_i_os() -> None:
    """Also of the seconds in which a host was missing, as the text after the screen has."""
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        runs.play(12)
        assert not shows(app, "last second")
        runs.running = False
        sums = runs.merger.run_sums()
        runs.tell(FleetRunFinished("done", 0, (), ("all hosts",), sums))
        await settle(pilot)
        total = sums.total
        assert total is not None and total.main.n == total.ios
        (row,) = app.state.runs.rows
        assert (row.iops, row.bw, row.mean_ns) == (total.iops, total.bw, total.main.mean)
        assert row.seconds is not None and row.seconds * row.iops == pytest.approx(total.ios)
        ranks = total.main.percentiles
        assert (row.p50_ns, row.p99_ns, row.p999_ns) == tuple(map(ranks.get, SHOWN))
        assert shows(app, f"run 1: {number(total.iops)} IOPS")
        (title,) = (line for line in screen_text(app).split("\n") if "Hosts 4" in line)
        assert "last second" in title


async def test_the_map_s_legend_is_whole_and_its_times_are_past() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        runs.play(12)
        runs.running = False
        runs.tell(FleetRunFinished("done", 0, (), ("all hosts",)))
        runs.play_between(20, 6)
        await pilot.press("k")
        await settle(pilot)
        text = screen_text(app)
        assert "4×  ? unknown" in text and "no job runs" not in text
        (times,) = [line.split() for line in text.splitlines() if line.startswith("    ")
                    and line.strip()[:1].isdigit()]  # fmt: skip
        assert len(times) == 2 and times[-1] <= "08:00:26"
        await pilot.resize_terminal(160, 45)
        await settle(pilot)
        text = screen_text(app)
        assert "4×  ? unknown" in text and "no job runs: what the disks do" in text


async def test_a_recording_is_played_and_searched() -> None:
    rows = lines(four_hosts(), 30)
    replay = FleetReplay(lambda: iter(rows), speed=1000.0)
    app = FleetReplayApp(FleetController(replay, "four.jsonl", None), replay)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:29 / 0:29"))
        assert shows(app, "run 1: ") and not shows(app, "r runs it again")
        last = app.source.hosts.number
        # the replay begins with the end of the first second
        assert last == START_S + 29 and app.source.all.history.end == pytest.approx(29.0)
        await pilot.press("home")
        await wait_until(
            pilot, lambda: shows(app, "REPLAY 0:29 / 0:29") and app.source.hosts.number == last
        )
        await pilot.press("r")
        assert shows(app, "this is a recording")
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_recording_is_a_bar_with_its_marks_that_can_be_clicked() -> None:
    rows = lines(four_hosts(), 30)
    marks: list[tuple[str, Object]] = [
        ("fleet", {"event": "mark", "text": "cable pulled", "wall_ms": (START_S + 11) * 1000.0}),
        ("node01", {"event": "mark", "text": "its own", "wall_ms": (START_S + 12) * 1000.0}),
    ]
    replay = FleetReplay(lambda: iter([*rows, *marks]), speed=1.0)
    replay.pause(True)
    app = FleetReplayApp(FleetController(replay, "four.jsonl", None), replay)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "cable pulled"))
        assert not shows(app, "its own"), "a host's"
        screen = screen_text(app).splitlines()
        y = next(y for y, line in enumerate(screen) if line.rstrip().endswith("─ 0:29"))
        # position and length take 9 columns at each side of the strip
        await pilot.click(offset=(9 + 51 * 2, y))
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:29 / 0:29"))
        await pilot.click(offset=(9 + 51, y))
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:15 / 0:29"))
        bar = screen_text(app).splitlines()[y]
        assert UTF8.cursor in bar[9 + 51 : 9 + 54] and bar.count(UTF8.mark) == 1


async def test_a_host_stays_open_when_the_recording_is_stepped() -> None:
    rows = lines(four_hosts(), 30)
    replay = FleetReplay(lambda: iter(rows), speed=1.0)
    replay.pause(True)
    app = FleetReplayApp(FleetController(replay, "four.jsonl", None), replay)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("right")
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:10 / 0:29"))
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.source.one is not None)
        await pilot.press("full_stop", "right")
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:21 / 0:29"))
        assert app.source.one is not None
        await pilot.press("left")
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:11 / 0:29"))
        # a jump back starts again with all hosts, and shows this host as soon as it reports
        await wait_until(pilot, lambda: app.source.one is not None)
        assert shows(app, "four.jsonl › node0")
        await pilot.press("escape", "left")
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:01 / 0:29"))
        assert app.source.one is None


async def test_h_writes_a_report_of_the_played_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, recording = lines(four_hosts(), 5), tmp_path / "four.jsonl"
    content = "".join(f"{json.dumps({**row, 'host': name})}\n" for name, row in rows)
    recording.write_text(content, encoding="utf-8")
    replay = FleetReplay(lambda: iter(rows), speed=1000.0)
    fleet = FleetController(replay, "four.jsonl", None)
    app = FleetReplayApp(fleet, replay, recording=recording)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "REPLAY 0:04 / 0:04"))
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "four.html") or shows(app, "Cannot write"))
    assert "node01" in (tmp_path / "four.html").read_text(encoding="utf-8")


async def test_h_without_a_recording_explains_how_to_make_one() -> None:
    app, _ = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("H")
        assert shows(app, "--record FILE")


async def test_duplicate_seconds_of_a_recording_are_played_once() -> None:
    rows = lines(four_hosts(), 30)
    single, twice = (FleetReplay(lambda n=n: iter(rows * n), speed=1e9) for n in (1, 2))
    assert (twice.end, twice.hosts) == (single.end, single.hosts)
    events: list[list[FleetEvent]] = [[], []]
    for replay, into in zip((single, twice), events, strict=True):
        replay.start(into.append)
        while not into or not isinstance(into[-1], FleetRunFinished):
            await asyncio.sleep(0.01)
        replay.close()
    messages = [event for event in events[1] if isinstance(event, FleetMessage)]
    frames = sum(row["event"] == "frame" for _, row in rows)
    assert [message.text for message in messages] == [
        f"{frames} duplicate seconds of hosts; each is played once"
    ]
    assert [event for event in events[1] if event not in messages] == events[0]


def static_text(app: FleetApp) -> str:
    title = app.screen.heading if isinstance(app.screen, Modal) else ""
    return "\n".join([title, *(str(widget.content) for widget in app.screen.query(Static))])


async def test_changing_a_tunable_on_all_hosts_asks_first_and_names_the_disks() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(6)
        for name, now in zip(four_hosts(), ("0", "0", "1"), strict=False):
            tunable = TunableState("nomerges", "merges", now, ("0", "1", "2"), "0, 1, 2")
            row = {"event": "tunables", "states": tunables_object([tunable], "sda")}
            runs.settings.take_answer(name, row)
        await pilot.press("K")
        await wait_until(pilot, lambda: "node03 sda: 1" in static_text(app))
        assert runs.asked == 1
        await pilot.press("enter", "down", "enter")
        await wait_until(pilot, lambda: "nomerges 0 → 1 on 2 hosts?" in static_text(app))
        text = static_text(app)
        assert "node02 sda: 0 → 1\n" in text and "Already 1 on: node03" in text
        assert "node04: it is not connected" in text
        await pilot.press("n")
        await settle(pilot)
        assert runs.turns == []
        await pilot.press("enter", "down", "enter")
        await wait_until(pilot, lambda: "on 2 hosts?" in static_text(app))
        await pilot.press("y")
        await settle(pilot)
        (change,) = runs.turns
        assert [host for host, _ in change.hosts] == ["node01", "node02"]
        runs.tell(
            HostTunableResult(
                "nomerges", "1", (("node01", "sda", "0", "1"),), (("node02", "lost"),)
            )
        )
        await pilot.press("escape")
        await wait_until(
            pilot, lambda: shows(app, "nomerges is 1 on 1 host: node01; nomerges is not")
        )
        assert shows(app, "not changed on node02 (lost)")
        assert app.source.all.initial_tunables["nomerges"] == {"node01 sda": "0"}


async def test_the_question_about_many_hosts_scrolls_and_keeps_its_buttons_visible() -> None:
    names = [f"node{n:02d}" for n in range(1, 61)]
    app, runs = make_app(names)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        runs.play(3)
        for name in names:
            tunable = TunableState("nomerges", "merges", "0", ("0", "1", "2"), "0, 1, 2")
            row = {"event": "tunables", "states": tunables_object([tunable], "sda")}
            runs.settings.take_answer(name, row)
        await pilot.press("K")
        await wait_until(pilot, lambda: "node60 sda: 0" in static_text(app))
        await pilot.press("enter", "down", "enter")
        await wait_until(pilot, lambda: "on 60 hosts?" in static_text(app))
        await settle(pilot)
        body = app.screen.query_one(VerticalScroll)
        buttons = app.screen.query_one(".form-buttons").region
        assert body.max_scroll_y > 40 and body.region.bottom <= buttons.y < app.size.height - 1
        await pilot.press("down", "down", "up")
        await wait_until(pilot, lambda: body.scroll_y == 1)
        await pilot.press("enter")
        await settle(pilot)
        assert runs.turns == []


def test_an_opened_host_continues_after_its_run_and_restarts_with_the_next() -> None:
    line = HostState("node01")
    line.session, line.step = start_events("node01", 0)[:2]
    view = HostView(line, frame(0, 30, 5000, 300_000), 0, 1.0)
    state = view.state
    watched = {**frame(0, 36, 5000, 300_000), "fio": None, "step": 0, "t": 3.0}
    view.apply(HostRow("node01", watched))
    assert view.state is state and state.t == pytest.approx(36.0)
    assert state.frame is not None and state.frame.fio is None and state.fio is not None
    event = {"event": "found", "t": 3.0, "finding": {
        "rule": "another", "text": "x", "advice": "see more: iopstui why", "key": "u",
        "test": [["bs", "8k"]], "since": 1.0, "until": 3.0,
    }}  # fmt: skip
    view.apply(HostRow("node01", event))
    # the keys of a host's findings would act on all hosts, so none is shown
    finding = state.findings.entries[-1].finding
    assert (finding.key, finding.test, finding.since, finding.until) == ("", (), 34.0, 36.0)
    # its commands are to be run there
    assert finding.advice == "see more: iopstui why (on node01)"
    view.apply(HostRow("node01", {**frame(0, 50, 5000, 300_000), "t": 1.0}))
    assert view.state is not state and view.state.t == 1.0


async def test_disks_are_watched_between_runs_and_the_result_stays_visible() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(12)
        runs.running = False
        runs.tell(FleetRunFinished("done", 0, (), ("all hosts",)))
        runs.play_between(20, 6)
        await settle(pilot)
        text = screen_text(app)
        assert "4 of 4 hosts watched" in text and "Hosts 4  no job runs" in text
        assert "run 1: 34.0k IOPS" in text and "whole run: 34.0k IOPS" in text
        inner = [line.strip("│ ") for line in text.splitlines()]
        rows = {line.split()[0]: line for line in inner if line.startswith("node")}
        # without a job there is no p99, but its column stays
        assert rows["node01"].split()[3:7] == ["–", "300µs", "71", "watched"]
        assert "its connection has ended" in rows["node02"] and " 71 " in rows["node02"]
        assert app.fleet.last is not None and app.fleet.last.exit_lines == ("all hosts",)
        # the age of the figures is shown when no new ones arrive
        app.feed._last_frame_s -= 3000
        app.feed.paint_if_old(SHOW_AGE_AFTER_S)
        assert app.dashboard is not None and (app.dashboard.own_cost.age_s or 0) >= 3000
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: shows(app, "node01 /dev/nvme0n1"))


SCENES = {"160x45-99-hosts": ((160, 45), 99)}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    size, hosts = SCENES[name]
    app, runs = make_app([f"node{n:02d}" for n in range(1, hosts + 1)])
    app.fleet._own_cpu = lambda: 2.5  # type: ignore[method-assign]

    async def before(pilot: Pilot[int]) -> None:
        await settle(pilot)
        runs.play(25)
        await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_numbers_and_tab_choose_a_panel(size: tuple[int, int]) -> None:
    async with four_hosts_after(4, size) as (app, _runs, pilot):
        board = app.dashboard
        assert isinstance(board, FleetDashboard)
        for key, tab in (("1", 0), ("4", 3), ("6", 3), ("tab", 4), ("shift+tab", 3)):
            await pilot.press(key)
            assert board.tab == tab and not board.hosts.filter_text, "no letters of a filter"
        await pilot.press("5")
        await settle(pilot)
        assert board.tabbed and board.panels["runs"].shown
        await pilot.press("0", "4", "enter")
        await wait_until(pilot, lambda: app.source.one is not None)
        await pilot.press("2")
        assert app.dashboard is not None and app.dashboard.tab == 1
