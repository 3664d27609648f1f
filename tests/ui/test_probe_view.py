"""The probe on the screen: its page, its charts, its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import ui_fakes as fakes
from rich.cells import cell_len
from session_frames import whole_frames
from test_app import WIDE, do, make, running, screen_text, settle, shows

from iopstui import format as f
from iopstui.events import AnswerGiven, FrameReady, Notice
from iopstui.linux.counters.cgroup import CgroupLoad
from iopstui.linux.process.process_io import ProcessIo, ProcessRates
from iopstui.model.answer import use as answer_use
from iopstui.model.answer.answer import GOOD, NOTHING, WAITS, Answer
from iopstui.model.block.target import DEVICE, DeviceLinks, Target
from iopstui.model.block.topology import Topology
from iopstui.model.cgroups import DiskUse, GroupRates
from iopstui.model.metrics.aws import VolumeGrowth
from iopstui.model.metrics.probe import LATENCY, PARTS, ProbeInterval
from iopstui.ui.dashboard.pages import cgroups_view, processes_view
from iopstui.ui.dashboard.pages.probe_view import rows, task_rows
from iopstui.ui.dashboard.panels import who_panel
from iopstui.ui.draw.style import ASCII, UTF8, WARNING, Charset
from iopstui.ui.state.live import LiveState


def probed() -> LiveState:
    state = LiveState(devices=("vda",))
    for frame in whole_frames("3.42-p-both", probed=True):
        state.apply(FrameReady(frame.t, frame))
    return state


def page_text(
    state: LiveState, parts: tuple[str, ...] | None, width: int, charset: Charset = UTF8
) -> str:
    table = rows(state, parts, Topology((0, 1)), width, charset)
    texts = ["".join(text for text, _ in row) for row in table]
    assert {cell_len(text) for text in texts} == {width}
    return "\n".join(text.rstrip() for text in texts)


@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_all_parts_are_placed_at_every_width(width: int, charset: Charset) -> None:
    text = page_text(probed(), PARTS, width, charset)
    titles = ["Request path, this second", "Device, this second", "Processes", "Requests by size"]
    for title in [*titles, "Submitting and completing CPUs"]:
        assert title in text
    assert "vda read" in text and "dd" in text
    assert width < 80 or "0 % on the diagonal" in text
    assert "incomplete" in text and "% of a CPU" in text


def test_an_aws_volume_s_own_latencies_are_below_those_that_the_kernel_counts() -> None:
    state = probed()
    frame = state.probe_frame
    assert frame is not None
    assert "own count" not in page_text(state, PARTS, 120)
    volume = VolumeGrowth("ebs", 1.0, 10, 0, 5000, 0, 0, 0, 0, 0, 1,
                          read_bins={400: 6, 2000: 4}, write_bins={})  # fmt: skip
    state.apply(FrameReady(frame.t + 1, replace(frame, t=frame.t + 1, aws={"vda": volume})))
    told = "The volume's own count: reads 500 µs, p50 at most 400 µs, p99 at most 2.00 ms."
    assert told in page_text(state, PARTS, 120)


def test_what_the_kernel_counts_of_nvme_paths_is_below_the_latencies() -> None:
    state = probed()
    frame = state.probe_frame
    assert frame is not None
    older_kernel = replace(frame, t=frame.t + 0.5, nvme_diag=None)
    state.apply(FrameReady(older_kernel.t, older_kernel))
    assert "kernel's count" not in page_text(state, PARTS, 120)
    for counted, told in (({"command_retry": 3.0}, "nvme0c1n1: 3 commands retried"),
                          ({"command_retry": 0.0}, "no retry, error or failover")):  # fmt: skip
        now = replace(frame, t=frame.t + 1, seconds=1.0, nvme_diag={"nvme0c1n1": counted})
        state.apply(FrameReady(now.t, now))
        assert f"The kernel's count of this second: {told}." in page_text(state, PARTS, 120)


def test_the_page_shows_what_is_off_and_what_is_starting() -> None:
    assert "Press P" in " ".join(page_text(LiveState(), (), 80).split())
    assert "is starting" in page_text(LiveState(), (LATENCY,), 80)
    assert "was off at this time" in page_text(LiveState(), None, 80)
    # once the probe is off, its last seconds are no longer "this second"
    assert "Device, this second" not in page_text(probed(), (), 80)
    assert "Device, this second" in page_text(probed(), None, 80)


def test_parts_that_are_off_are_not_shown() -> None:
    state = probed()
    assert state.probe_frame is not None and state.probe_frame.probe is not None
    latency_only = replace(state.probe_frame.probe, parts=(LATENCY,))
    state.apply(FrameReady(state.t, replace(state.probe_frame, probe=latency_only)))
    text = page_text(state, (LATENCY,), 100)
    assert "Device, this second" in text
    assert "the way" not in text and "who completes" not in text and "Processes" not in text


def test_the_history_has_percentiles_of_the_device_and_of_fio() -> None:
    state = probed()
    assert state.device_latencies.end is not None and state.latencies.end is not None
    assert state.probe_frame is state.frame


async def test_before_a_job_the_kernel_s_means_are_charted() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.fake.tick(3)  # type: ignore[attr-defined]
        await settle(pilot)
        assert shows(app, "Await (means)") and shows(app, "r_await")
        await running(app, pilot)
        assert not shows(app, "Await (means)") and shows(app, "p99.9")


async def test_the_probe_s_percentiles_are_shown_beside_fio_s() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        for n, frame in enumerate(whole_frames("3.42-p-both", probed=True)):
            assert frame.probe is None or frame.probe.disks
            renamed = None if frame.probe is None else replace(
                frame.probe, disks={"nvme0n1": frame.probe.disks["vda"]}
            )  # fmt: skip
            fake.sink(FrameReady(4.0 + n, replace(frame, t=4.0 + n, probe=renamed, step=1)))
        await settle(pilot)
        assert shows(app, "device p99") and shows(app, "fio p50")
        await do(pilot, "users", 4)
        await settle(pilot)
        page = app.screen
        assert page is not app.screen_stack[0]
        await pilot.press("escape")


async def test_a_key_switches_the_probe_and_asks_nothing() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        fake: fakes.FakeController = app.fake  # type: ignore[attr-defined]
        for on in (True, False):
            await pilot.press("P")
            await settle(pilot)
            assert fake.calls[-1] == ("probe", on) and app.screen is app.dashboard


def test_processes_are_of_all_disks_without_the_probe() -> None:
    class Source(ProcessIo):
        def rates(self) -> list[ProcessRates] | None:
            return found

        def command(self, pid: int) -> str:
            return {7: "dd if=/dev/vda of=/dev/null bs=1M"}.get(pid, "")

        def user(self, pid: int) -> str:
            return {7: "backup"}.get(pid, "root")

    found = [ProcessRates(7, "dd", 3 << 20, 0.0), ProcessRates(100, "fio", 0.0, 1 << 20)]

    def told(state: LiveState, source: ProcessIo | None, width: int = 80) -> str:
        table = processes_view.rows(state, source, width, UTF8)
        return " ".join(" ".join(text for row in table for text, _ in row).split())

    state = probed()
    assert "dd" in told(state, None) and "all disks" not in told(state, None)
    state.apply(Notice(state.t + 60, "info", "the probe was switched off a minute ago"))
    assert "Press P" in " ".join(page_text(state, (), 80).split())
    source = Source()
    source.closed = 1
    text = told(state, source)
    assert "all disks together" in text
    assert "fio (job)" in text and "1 process could not be read" in text
    assert "wait for I/O" in text and "no processes" in told(state, None)
    found.append(ProcessRates(9, "make", 1 << 20, 0.0, children=True))
    text = told(state, source)
    assert (
        "make + children 9 root 1.00" in text and "dd if=/dev/vda of=/dev/null b… 7 backup " in text
    )
    assert "dd if=/dev/vda of=/dev/null bs=1M 7 backup " in told(state, source, 120)
    # a newcomer looked for each program's disk, and counted a loop device's thread as one more
    found.append(ProcessRates(11, "kworker/u8:1-loop0", 3 << 20, 0.0))
    user = answer_use.DiskUser(7, "dd", devices=frozenset({"loop0", "vda"}))
    links = (DeviceLinks("loop0", ("vda",), "loop"),)
    use = answer_use.DiskUse(state.t, 1.0, (user,), links=links)
    for width in (76, 120):
        table = processes_view.rows(state, source, width, UTF8, use=use)
        lines = ["".join(text for text, _ in row) for row in table]
        (head,) = (line for line in lines if " disk " in line and "pid" in line)
        at = head.index("disk") - 1
        assert {line[at : at + 9].strip() for line in lines if " 7 " in line} == {"loop0"}
        places = [next(n for n, line in enumerate(lines) if pid in line) for pid in (" 7 ", " 11 ")]
        assert "for loop0" in lines[places[1]] and places == sorted(places)
    found.pop()
    found.clear()
    assert "no process that this user can read did I/O" in told(state, source)


def test_the_users_of_a_disk_are_listed_with_what_waits_for_it() -> None:
    """A newcomer looked for that among the slowest requests, since only the machine's pressure was
    told."""
    now = LiveState(devices=("nvme0n1",))
    now.apply(FrameReady(2.0, fakes.frame(2, None)))
    assert now.frame is not None
    target = Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1",))
    disk = who_panel.users_of(answer_use.DiskUse(2.0, 1.0, ()), target, ())
    table = processes_view.rows(now, None, 120, UTF8, disk=disk)
    text = " ".join("".join(text for text, _ in row).strip() for row in table)
    rates = now.frame.disks["nvme0n1"]
    assert f"Waiting for nvme0n1: {f.number(rates.aqu_sz)} requests in flight on average" in text
    for verdict, words in ((NOTHING, "Nothing seems to wait for"), (WAITS, "I/Os wait for")):
        now.apply(AnswerGiven(2.0, Answer("nvme0n1", "well", GOOD, "x", verdict)))
        table = processes_view.rows(now, None, 120, UTF8, disk=disk)
        assert any(f"{words} nvme0n1" in text for row in table for text, _ in row)
    assert f"a read takes {f.milliseconds(rates.r_await)}" in text


async def test_processes_are_sorted_by_any_column(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = [
        ProcessRates(30, "postgres", 1 << 20, 9 << 20), ProcessRates(7, "dd", 3 << 20, 0.0),
        ProcessRates(100, "fio", 2 << 20, 1 << 20),
    ]  # fmt: skip
    monkeypatch.setattr(ProcessIo, "rates", lambda self: rates)
    monkeypatch.setattr(ProcessIo, "command", lambda self, pid: "")
    app = make()

    def order() -> list[str]:
        text = screen_text(app)
        return sorted(("postgres ", "dd ", "fio "), key=lambda name: text.rindex(name))

    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "busiest first") and order() == ["postgres ", "dd ", "fio "]
        await pilot.press("greater_than_sign", "greater_than_sign")
        assert shows(app, "sorted by pid") and order() == ["dd ", "postgres ", "fio "]
        x, y = next(
            (row.index("read MiB/s"), y)
            for y, row in enumerate(screen_text(app).splitlines())
            if "read MiB/s" in row and "pid" in row
        )
        await pilot.click(offset=(x + 2, y))
        assert shows(app, "sorted by read MiB/s") and order() == ["dd ", "fio ", "postgres "]
        await pilot.press("less_than_sign", "less_than_sign", "less_than_sign")
        assert shows(app, "busiest first")
        await pilot.press("less_than_sign")
        assert shows(app, "sorted by written MiB/s") and order() == ["postgres ", "fio ", "dd "]


def test_the_filter_of_processes_and_cgroups_looks_at_names_and_not_at_figures() -> None:
    class Source(ProcessIo):
        def rates(self) -> list[ProcessRates] | None:
            return [ProcessRates(7, "dd", 3 << 20, 33.0), ProcessRates(130, "fio", 0.0, 1 << 20)]

        def command(self, pid: int) -> str:
            return {7: "dd if=/dev/vda of=/dev/null"}.get(pid, "")

        def user(self, pid: int) -> str:
            return {7: "amanda"}.get(pid, "bob")

    def told(words: str) -> str:
        table = processes_view.rows(LiveState(), Source(), 120, UTF8, words=words)
        return " ".join(" ".join(text for row in table for text, _ in row).split())

    assert "fio" in told("3") and "dd" not in told("3"), "130 is a pid, 3.00 MiB/s is none"
    assert "dd if=" in told("dev/NULL dd") and "fio" not in told("dev/null")
    assert "dd" in told("Amanda") and "fio" not in told("amanda"), "a user"
    assert told("xyz").endswith("no process matches 'xyz'; Esc clears the filter")
    assert "(/proc/PID/io)" in told("") and "(/proc/PID/io)" not in told("proc")

    groups = (GroupRates("/a3.service", {"vda": DiskUse(1.0, 9.0, 1.0, 1.0)}),
              GroupRates("/b.service", {"vda": DiskUse(3.0, 3.0, 3.0, 3.0)}))  # fmt: skip

    def listed(words: str) -> str:
        table = cgroups_view.rows(groups, ("vda",), "", 120, UTF8, words=words)
        return " ".join(text for row in table for text, _ in row)

    assert "a3.service" in listed("3") and "b.service" not in listed("3")
    assert "no cgroup matches 'group'" in listed("group")
    assert "io.stat" in listed("") and "io.stat" not in listed("a3")


async def test_a_filter_without_a_match_is_no_blank_page() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await pilot.press("shift+tab")
        await settle(pilot)
        await pilot.press("slash", *"xyz")
        await settle(pilot)
        assert shows(app, "no row matches 'xyz'; Esc clears the filter")


def test_tasks_are_sorted_by_any_column() -> None:
    state = probed()
    assert state.probe_frame is not None and state.probe_frame.probe is not None
    task = state.probe_frame.probe.tasks[0]
    tasks = (
        replace(task, pid=2, comm="a", read_iops=9.0, write_iops=1.0, bw=10.0),
        replace(task, pid=1, comm="c", read_iops=2.0, write_iops=8.0, bw=30.0),
        replace(task, pid=3, comm="b", read_iops=3.0, write_iops=3.0, bw=20.0, p50_ns=1 << 40),
    )
    probe = replace(state.probe_frame.probe, tasks=tasks)

    def sorted_by(order: str) -> str:
        table = task_rows(state, probe, 120, UTF8, order)
        return "".join("".join(text for text, _ in row).split()[0] for row in table[2:5])

    assert sorted_by("") == sorted_by("a column of another table") == "acb"
    assert [sorted_by(order) for order in ("process", "pid", "read/s", "write/s", "MiB/s")] == [
        "abc", "cab", "abc", "cba", "cba",
    ]  # fmt: skip
    assert sorted_by("p50")[0] == "b"
    assert "p99" in processes_view.orders(state, None)
    assert "p99" not in processes_view.orders(LiveState(), None)


def test_a_narrow_list_of_tasks_on_several_disks_names_the_disk() -> None:
    state = probed()
    assert state.probe_frame is not None and state.probe_frame.probe is not None
    shown_frame, probe = state.probe_frame, state.probe_frame.probe
    one = replace(probe, tasks=(replace(probe.tasks[0], disk="vda"),))
    two = replace(probe, tasks=(*one.tasks, replace(probe.tasks[0], disk="loop0")))

    def head(shown: ProbeInterval) -> list[str]:
        state.apply(FrameReady(shown_frame.t, replace(shown_frame, probe=shown)))
        (_, titles, *_) = task_rows(state, shown, 76, UTF8)
        return "".join(text for text, _ in titles).split()

    assert "disk" not in head(one) and "p50" in head(one)
    assert "disk" in head(two) and "p99" in head(two)


def test_cgroups_show_their_waits_and_limits() -> None:
    def told(groups: Sequence[GroupRates] | None, width: int = 160, order: str = "") -> str:
        table = cgroups_view.rows(groups, ("vda",), "", width, UTF8, order)
        return "\n".join("".join(text for text, _ in row).rstrip() for row in table)

    assert "cgroups, on vda only" in told(None) and "rates need two" in told(None)
    assert "no cgroup read or wrote" in told(())
    unit = "/system.slice/postgres.service"
    postgres = GroupRates(
        unit, {"vda": DiskUse(120.0, 39.0, 1 << 20, 2 << 20)},
        {"io.some": 41.0, "cpu.some": 0.0, "memory.some": 3.0}, 55.0, 300 << 20,
        {("vda", "wiops"): 40, ("vda", "rbps"): 10 << 20}, 150.0, 1 << 30,
    )  # fmt: skip
    kernel = GroupRates("/kernel", {"vda": DiskUse(200.0, 0.0, 0.0, 0.0)})
    head, row, bare, *_ = told((postgres, kernel)).splitlines()[1:]
    assert head.split() == ["cgroup", "r/s", "w/s", "rMiB/s", "wMiB/s", "io", "cpu", "mem", "CPU",
                            "%", "memory", "limit"]  # fmt: skip
    assert row.split() == ["postgres.service", "120", "39.0", "1.00", "2.00", "41", "0", "3.0",
                           "55/150", "300", "MiB/1", "GiB", "98", "%", "of", "40/s", "write",
                           ]  # fmt: skip
    assert bare.split()[:8] == ["/kernel", "200", "0", "0", "0", "–", "–", "–"]
    assert told((postgres, kernel), order="r/s").splitlines()[2].startswith("/kernel")
    assert "sorted by r/s" in told((postgres, kernel), order="r/s")
    for width in (60, 80, 100, 160):
        lines = told((postgres,) * 50, width).splitlines()
        assert max(map(len, lines)) <= width and "and 10 more" in "".join(lines)
    warned = cgroups_view.rows((postgres,), ("vda",), "", 160, UTF8)[2]
    assert [text.split()[0] for text, style in warned if style == WARNING] == ["41", "98"]
    assert "cgroup version 2" in "".join(
        text for row in cgroups_view.rows(None, (), "cgroup version 2 ...", 80, UTF8)
        for text, _ in row
    )  # fmt: skip


async def test_tab_shows_cgroups_instead_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = tuple(
        GroupRates(f"/{name}.service", {"vda": DiskUse(reads, writes, 1.0, 1.0)})
        for name, reads, writes in (("a", 1.0, 9.0), ("b", 5.0, 2.0))
    )
    monkeypatch.setattr(CgroupLoad, "rates", lambda self: groups)
    monkeypatch.setattr(CgroupLoad, "why_not", "")
    monkeypatch.setattr(ProcessIo, "rates", lambda self: [ProcessRates(7, "dd", 3 << 20, 0.0)])
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "[Processes]") and shows(app, "dd") and not shows(app, "a.service")
        await pilot.press("tab")
        await settle(pilot)
        assert shows(app, "[Cgroups]") and shows(app, "a.service")
        assert not shows(app, "dd ")
        await pilot.press("greater_than_sign", "greater_than_sign")
        await settle(pilot)
        text = screen_text(app)
        assert "sorted by r/s" in text and text.index("b.service") < text.index("a.service")
        await pilot.press("shift+tab")
        await settle(pilot)
        assert shows(app, "dd") and shows(app, "busiest first")
        await pilot.press("escape")
        # without cgroup version 2 that page would only say so
        monkeypatch.setattr(CgroupLoad, "why_not", "cgroup version 2 is not mounted")
        await pilot.press("u", "tab")
        await settle(pilot)
        assert not shows(app, "Cgroups") and shows(app, "[Workload]")
        await pilot.press("shift+tab", "shift+tab")
        await settle(pilot)
        assert shows(app, "[Kernel]")
