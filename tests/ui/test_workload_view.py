"""The page that describes the applications' workload on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from test_app import WIDE, do, make, settle, shows

from iopstui.features.capture import who_page
from iopstui.features.capture.kernel import workload_capture
from iopstui.features.capture.model.workload import Arrivals, Stream, Workload
from iopstui.linux.kernel_files import Roots
from iopstui.ui.draw.style import ASCII, UTF8, Charset

READS = Stream(
    "postgres", "read", 10.0, 12_000, 12_000 * 16384, 0, sizes={16384: 11_000, 8192: 1000},
    depths={3: 12_000}, regions=dict.fromkeys(range(64), 110),
    arrivals=Arrivals(100, 12_000 * 900, 900, 300, 60),
)  # fmt: skip
WRITES = replace(READS, kind="write", ios=900, sequential=890, sizes={8192: 850, 1 << 24: 50})
FLUSHES = Stream("postgres", "flush", 10.0, 900, 0)
WORKLOAD = Workload("vda", 10.0, (READS, WRITES, FLUSHES), {
    "read": replace(READS, process=""), "write": replace(WRITES, process=""), "flush": FLUSHES,
}, 3.0)  # fmt: skip


def page_text(
    workload: Workload | None,
    problem: str = "",
    width: int = 100,
    charset: Charset = UTF8,
    recorded: bool = False,
) -> str:
    rows = who_page.rows(workload, problem, width, charset, recorded)
    lines = ["".join(part for part, _ in row) for row in rows]
    assert {cell_len(line) for line in lines} == {width}
    return "\n".join(line.rstrip() for line in lines)


def test_the_page_summarises_the_workload() -> None:
    text = page_text(WORKLOAD)
    assert "vda: 1.29k requests/s since this page was opened" in text
    assert "1.20k reads/s, mostly 16 KiB, random, in bursts, depth 3.0, working set 64 MiB" in text
    assert "90.0 writes/s, mostly 8 KiB, sequential" in text and "90.0 flushes/s" in text
    assert "iopstui capture vda --for 1m -o app.fio" in text


def test_the_map_has_the_sizes_that_occur() -> None:
    lines = page_text(WORKLOAD).splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.split() == ["8k", "16k", "4M"]]
    assert lines[at + 1].split()[0] == "reads" and lines[at + 2].split()[0] == "writes"
    # each row's most frequent size has a full bar; a size that does not occur has none
    assert "███" in lines[at + 1] and lines[at + 1].rstrip().endswith("···")
    assert lines[at + 2].index("███") < lines[at + 1].index("███")


@given(st.integers(20, 200), st.sampled_from([UTF8, ASCII]))
def test_the_page_fits_any_width(width: int, charset: Charset) -> None:
    processes = tuple(replace(READS, process=f"p{n}") for n in range(15))
    text = page_text(replace(WORKLOAD, streams=processes, lost=5), width=width, charset=charset)
    assert "p11" in text and "p12" not in text and "and 3" in text


def test_a_problem_is_reported() -> None:
    assert "first second follows" in page_text(None)
    assert "No capture: only root may" in page_text(None, "only root may load BPF programs")
    vanished = page_text(WORKLOAD, "the disk has vanished")
    assert "cannot go on: the disk has vanished" in vanished and "postgres" in vanished
    assert "no requests yet" in page_text(Workload("vda", 1.0, (), {}))
    assert "This recording has no workload" in page_text(None, recorded=True)
    evil = replace(WORKLOAD, streams=(replace(READS, process="a\x1b[2Jb"),))
    assert "\x1b" not in page_text(evil)


class Played:
    """A capture with some requests."""

    begun: list[Sequence[str]] = []  # noqa: RUF012
    closed = 0
    workload: Workload | None = WORKLOAD
    problem = ""

    def __init__(self, names: Sequence[str], roots: Roots) -> None:
        Played.begun.append(names)

    def close(self) -> None:
        Played.closed += 1


async def test_the_workload_is_captured_while_the_page_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workload_capture, "LiveCapture", Played)
    Played.begun, Played.closed = [], 0
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert Played.begun == []
        await do(pilot, "users", 2)
        await settle(pilot)
        assert shows(app, "1.20k reads/s, mostly 16 KiB") and len(Played.begun) == 1
        assert Played.closed == 0
        await pilot.press("u")
        await settle(pilot)
        assert Played.closed == 1 and not shows(app, "1.20k reads/s, mostly 16 KiB")
