from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, frame
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.topology import Domain, Topology
from iopstui.model.metrics.cpu_map import (
    NO_IRQ_TIME,
    CpuRow,
    cpu_grid,
    cpu_rows,
    fold_lines,
)
from iopstui.model.rates import CpuLoad

FOUR = Topology(
    (0, 1, 2, 3), (0, 1, 2, 3), (3,), {0: 0, 1: 0, 2: 1, 3: 1}, {0: 0, 1: 0, 2: 2, 3: 2}, False
)


def test_rows_of_all_cpus_with_queues_jobs_and_counts() -> None:
    now = frame(1.0, fio(9), disks={"vda": disk(9)}, block={1: 7.0}, irq={2: 5.0},
                jobs=((1, 9.0), (1, 9.0)), pinned=True)  # fmt: skip
    rows = cpu_rows([device(((0, 1), (2, 3)))], now, FOUR, {0: 3.0})
    assert [(r.cpu, r.hctxs, r.jobs, r.block_s, r.irq_s, r.ipi_s, r.node) for r in rows[:3]] == [
        (0, (0,), (), 0.0, 0.0, 3.0, 0),
        (1, (0,), (0, 1), 7.0, 0.0, None, 0),
        (2, (1,), (), 0.0, 5.0, None, 1),
    ]
    assert rows[1].pinned == (0, 1) and rows[3].isolated and not rows[0].isolated


def test_without_a_frame_there_are_rows_and_no_numbers() -> None:
    rows = cpu_rows([device()], None, FOUR)
    assert len(rows) == 4 and all(r.load is None and r.irq_s is None for r in rows)
    assert all(line.busiest_text == "not measured" for line in cpu_grid(rows, FOUR).rows[:-1])


def test_the_grid_groups_and_names_the_busiest() -> None:
    now = frame(1.0, fio(9), block={0: 1_000.0, 1: 10.0, 3: 9_000.0}, busy={3: 99.0})
    grid = cpu_grid(cpu_rows([device()], now, FOUR), FOUR)
    assert grid.domains == (Domain(0, 0, (0, 1)), Domain(1, 1, (2, 3)))
    assert grid.notes == (NO_IRQ_TIME,)
    rows = {row.measure.name: row for row in grid.rows}
    assert rows["BLOCK/s"].busiest_text == "CPU 3 9.00k, CPU 0 1.00k, CPU 1 10.0 of 10.0k"
    assert rows["BLOCK/s"].scale == 9_000.0 and rows["busy"].scale == 100.0
    assert [rows["BLOCK/s"].level(cpu, 8) for cpu in (0, 1, 2, 3)] == [1, 1, 0, 8]
    assert rows["irq/s"].busiest_text == "not measured" and rows["irq/s"].level(0, 8) is None
    assert rows["busy"].busiest_text.startswith("CPU 3 99 %")
    assert rows["jobs"].busiest_text == "none"


@given(st.dictionaries(st.integers(0, 3), st.floats(0, 1e9), min_size=1), st.integers(1, 16))
def test_a_little_is_never_drawn_as_none_nor_none_as_a_little(
    block: dict[int, float], steps: int
) -> None:
    now = frame(1.0, fio(9), block=block)
    row = next(
        r for r in cpu_grid(cpu_rows([], now, FOUR), FOUR).rows if r.measure.name == "BLOCK/s"
    )
    for cpu in range(4):
        level = row.level(cpu, steps)
        assert level is not None and 0 <= level <= steps
        assert (level == 0) is (block.get(cpu, 0.0) == 0.0)
    assert [cpu for cpu, _ in row.busiest] == sorted(
        (c for c in block if block[c] > 0), key=lambda c: (-block[c], c)
    )[:3]


@given(
    st.lists(st.integers(1, 70), max_size=12), st.integers(1, 80), st.integers(0, 2)
)  # fmt: skip
def test_folded_lines_fit_and_hold_every_cpu_once(sizes: list[int], columns: int, gap: int) -> None:
    first, domains = 0, []
    for number, size in enumerate(sizes):
        domains.append(Domain(0, number, tuple(range(first, first + size))))
        first += size
    lines = fold_lines(domains, columns, gap)
    assert [cpu for line in lines for part in line for cpu in part.cpus] == list(range(first))
    for line in lines:
        assert sum(len(p.cpus) for p in line) + gap * (len(line) - 1) <= columns
    for domain in domains:
        parts = [p for line in lines for p in line if p.cache == domain.cache]
        assert len(parts) == max(1, -(-len(domain.cpus) // columns))


def test_waiting_for_io_is_no_busy_time() -> None:
    load = CpuLoad(usr=8.4, sys=61.0, iowait=5.0, irq=0.0, soft=0.5, idle=20.0, steal=0.0)
    assert CpuRow(3, load=load).busy == 75.0
    assert CpuRow(0, load=replace(load, idle=90.0, iowait=11.0)).busy == 0.0
    assert (CpuRow(0).jobs, CpuRow(0).pinned, CpuRow(0).hctxs) == ((), (), ())


def test_how_full_a_cell_is() -> None:
    rows = [CpuRow(cpu, block_s=value) for cpu, value in enumerate((10.0, 5.0, 0.0, None, 0.1))]
    row = next(r for r in cpu_grid(rows, FOUR).rows if r.measure.name == "BLOCK/s")
    assert [row.level(cpu, 8) for cpu in range(6)] == [8, 4, 0, None, 1, None]
    assert (row.scale, row.total) == (10.0, pytest.approx(15.1))
    nothing = cpu_grid([CpuRow(0, block_s=0.0)], FOUR).rows[2]
    assert (nothing.level(0, 8), nothing.busiest_text, nothing.scale) == (0, "none", 0.0)


def test_a_line_is_filled_as_far_as_it_goes() -> None:
    pair, other = Domain(0, 0, (0, 1)), Domain(1, 1, (2, 3))
    assert fold_lines([pair, other], 5) == [[pair, other]]
    assert fold_lines([pair, other], 4) == [[pair], [other]]
    assert fold_lines([pair, other], 4, gap=0) == [[pair, other]]
    assert fold_lines([], 4) == []
