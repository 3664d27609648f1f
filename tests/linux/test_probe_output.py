"""bpftrace's lines as readings, and the script that makes it print them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.probe.availability import why_no_probe
from iopstui.linux.probe.output import ProbeOutput, midpoint
from iopstui.linux.probe.regions import regions
from iopstui.linux.probe.script import Region, missing_features, script
from iopstui.linux.probe.tracepoints import SIGNAL_GENERATE, parse_format, read_tracepoints
from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.probe import LATENCY, MATRIX, PARTS, PROCESSES, SIZES, WAY
from iopstui.model.samples import ProbeSample


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


VDA, PART = Region("vda", 254, 0), Region("vda1", 254, 0, 2048, 4095)
MD = Region("md0", 9, 0, bios=True)
HAVE = {
    name: frozenset({"dev", "sector", "nr_sector", "rwbs", "comm"})
    for name in (
        "block_getrq", "block_rq_issue", "block_rq_complete", "block_rq_requeue", "block_rq_merge",
        "block_bio_queue", "block_bio_complete", "block_bio_frontmerge", "block_bio_backmerge",
    )
}  # fmt: skip
READ_100, WRITE_100 = "100", str(1 << 12 | 100)


def told(
    *lines: object, parts: tuple[str, ...] = (LATENCY,), where: tuple[Region, ...] = (VDA,)
) -> tuple[ProbeOutput, ProbeSample | None]:
    output = ProbeOutput(where, parts, 1, 8192, lambda pid: f"/group{pid}")
    found = None
    for line in lines:
        text = line if isinstance(line, str) else json.dumps(line)
        found = output.feed(text, 7) or found
    return output, found


def maps(**values: object) -> list[object]:
    return [{"type": "map", "data": {f"@{name}": value}} for name, value in values.items()]


def whole(time_ns: int = 5) -> dict[str, object]:
    return {"type": "value", "data": time_ns}


def fio_index(latency: int) -> int:
    """fio's stat.c, plat_val_to_idx, with its 6 bits."""
    msb = latency.bit_length() - 1
    if msb <= 6:
        return latency
    return ((msb - 5) << 6) + ((latency >> (msb - 6)) & 63)


@given(st.integers(0, 1 << 47))
def test_a_bucket_s_number_is_that_of_fio(latency: int) -> None:
    assert midpoint(fio_index(latency), 6) == bucket_key(latency)


@given(st.integers(0, 1 << 47))
def test_the_coarse_buckets_of_tasks_hold_what_is_counted_in_them(latency: int) -> None:
    msb = latency.bit_length() - 1
    index = latency if latency < 16 else ((msb - 2) << 3) | ((latency >> (msb - 3)) & 7)
    assert midpoint(index, 3) == pytest.approx(latency, rel=0.0625, abs=0)


def test_a_reading_is_whole_with_its_time() -> None:
    output, found = told(*maps(d={READ_100: 3, WRITE_100: 2}, m=1, r=4), whole(9))
    assert found is not None and (found.time_ns, found.arrived_ns, output.unknown_lines) == (
        9,
        7,
        0,
    )
    assert found.device == {"vda": {"read": {100: 3}, "write": {100: 2}, "discard": {}}}
    assert (found.counts["missed"], found.counts["requeued"], found.counts["lost"]) == (1, 4, 0)
    assert told(*maps(d={READ_100: 3}))[1] is None


def test_maps_that_are_empty_are_not_printed() -> None:
    found = told(whole())[1]
    assert found is not None and found.device["vda"]["read"] == {} and found.matrix == {}


def test_what_a_partition_does_its_disk_does_too() -> None:
    second = str(1 << 16 | 100)
    found = told(*maps(d={READ_100: 3, second: 2}), whole(), where=(VDA, PART))[1]
    assert found is not None
    assert found.device["vda1"]["read"] == {100: 2} and found.device["vda"]["read"] == {100: 5}


def test_who_completes_for_whom_without_those_of_whom_nothing_is_known() -> None:
    keys = {str(0 << 16 | 3): 9, str(1 << 16 | 3): 4, str(4 << 16 | 0): 6}
    found = told(*maps(x=keys), whole(), parts=(LATENCY, MATRIX))[1]
    assert found is not None and found.matrix == {0: {3: 4}, 3: {0: 6}}


def test_processes_with_their_names_and_groups() -> None:
    task = 77 << 24
    lines = maps(q={str(task | 40): 5, str(task | 1 << 12 | 40): 1}, b={str(task): 48},
                 n={"77": "d\x1bd"})  # fmt: skip
    found = told(*lines, whole(), parts=(LATENCY, PROCESSES))[1]
    assert found is not None
    (one,) = found.tasks
    assert (one.pid, one.disk, one.group, one.sectors) == (77, "vda", "/group77", 48)
    assert "\x1b" not in one.comm and one.bins["read"] == {midpoint(40, 3): 5}


def test_sizes_are_rounded_down_and_counted_once_for_a_partition() -> None:
    sizes = {str(1 << 16 | 3): 5}
    found = told(*maps(z=sizes, s=2), whole(), parts=(LATENCY, SIZES), where=(VDA, PART))[1]
    assert found is not None and found.sizes["vda"]["read"] == {4096: 5}
    assert (found.counts["issued"], found.counts["sequential"]) == (5, 2)


def test_lost_events_and_full_maps_are_counted() -> None:
    full = {str(n): 1 for n in range(8192)}
    lost = {"type": "lost_events", "data": {"events": 3}}
    found = told(lost, lost, *maps(d=full), whole())[1]
    assert found is not None and (found.counts["lost"], found.counts["full"]) == (6, 1)


@pytest.mark.parametrize(
    "line",
    ["nonsense", "{", "[]", "7", '"text"', '{"type": "map", "data": 4}', '{"data": {}}', "\x00",
     '{"type": "map", "data": {"@d": {"x": 1}}}', "[" * 100_000],
)  # fmt: skip
def test_a_strange_line_costs_nothing_but_itself(line: str) -> None:
    output, found = told(line, *maps(d={READ_100: 3}), whole())
    assert output.unknown_lines <= 1
    assert found is not None and found.device["vda"]["read"] == {100: 3}


# -- the script


@pytest.mark.parametrize("parts", [(LATENCY,), (LATENCY, WAY), (LATENCY, PROCESSES), PARTS])
def test_numbers_alone_are_filled_into_the_script(parts: tuple[str, ...]) -> None:
    hostile = Region('"; system("x")', 254, 0)
    text = script(parts, [hostile, PART, MD], HAVE, 1000)
    assert "system" not in text and hostile.name not in text and "clear(@d" not in text
    assert set(re.findall(r'"([^"]*)"', text)) <= {"R", "D", "bpftrace"}


def test_what_was_not_asked_for_is_not_counted() -> None:
    text = script((LATENCY,), [VDA], HAVE, 250)
    assert "block_getrq" not in text and "merge" not in text and "interval:ms:250 " in text
    assert "bio" not in text and "cpu" not in text and "pid" not in text
    assert "block_bio_queue" in script((LATENCY,), [MD], HAVE, 250)


def test_it_prints_when_it_is_asked_or_by_the_clock() -> None:
    asked = script((LATENCY,), [VDA], {**HAVE, SIGNAL_GENERATE: frozenset({"sig"})}, 250)
    assert "interval" not in asked and "clear(@d" not in asked
    assert re.search(r"signal_generate /args->sig == 28 .*print\(@d\).*print\(nsecs\)", asked)


def test_a_kernel_without_a_tracepoint_or_field_is_told_of() -> None:
    assert missing_features(PARTS, [VDA, MD], HAVE) == []
    without = {name: fields for name, fields in HAVE.items() if name != "block_getrq"}
    assert missing_features((LATENCY,), [VDA], without) == []
    assert missing_features((LATENCY, WAY), [VDA], without) == ["block:block_getrq"]
    other = {**HAVE, "block_rq_issue": frozenset({"dev", "sector", "rwbs"})}
    assert missing_features((LATENCY,), [VDA], other) == ["nr_sector of block:block_rq_issue"]
    older = {name: fields for name, fields in HAVE.items() if name != "block_rq_merge"}
    assert "block_rq_merge" not in script(PARTS, [VDA], older, 1000)


@pytest.mark.parametrize("kernel", ["5.4", "6.12", "6.18"])
def test_the_fields_of_several_kernels(kernel: str, root: Path) -> None:
    folder = root / "tests/fixtures/tracepoints" / kernel
    found = {path.name: parse_format(path.read_text()) for path in folder.iterdir()}
    assert missing_features(PARTS, [VDA, MD], found) == []
    assert "common_type" not in found["block_rq_issue"] and "comm" in found["block_rq_issue"]


# -- where it can't run


def test_what_is_in_its_way_is_said(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "not installed" in (why_no_probe(tree.roots) or ("",))[0]
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert (why_no_probe(tree.roots) or ("", ""))[1] == "sudo iopstui ..."
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "tracefs is not mounted" in (why_no_probe(tree.roots) or ("",))[0]
    tree.sys("kernel/security/lockdown", "none integrity [confidentiality]")
    assert "locked down" in (why_no_probe(tree.roots) or ("",))[0]
    tree.sys("kernel/security/lockdown", "[none] integrity confidentiality")
    for name in HAVE:
        fields = "".join(f"\tfield:u64 {one};\toffset:8;\n" for one in sorted(HAVE[name]))
        tree.sys(f"kernel/tracing/events/block/{name}/format", fields)
    assert why_no_probe(tree.roots) is None
    assert read_tracepoints(tree.roots).keys() == HAVE.keys()


# -- which disks


def disk(name: str, minor: int, **changes: object) -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", 254, minor, "virtio-blk", 1 << 30, **changes)  # type: ignore[arg-type]


def test_a_partition_is_looked_at_on_its_disk(tree: Tree) -> None:
    queue = (Hctx(0, (0,), 128, 0),)
    devices = {
        "vda": disk("vda", 0, hctxs=queue),
        "vda1": disk("vda1", 1, disk="vda", hctxs=queue),
        "dm-0": disk("dm-0", 5),
        "hidden": BlockDevice("hidden", "", -1, -1, "nvme", None),
    }
    tree.sys("class/block/vda1/start", "2048")
    tree.sys("class/block/vda1/size", "2048")
    found = regions(("dm-0", "vda1", "vda", "hidden", "gone"), devices, tree.roots)
    assert found[:2] == [Region("dm-0", 254, 5, bios=True), Region("vda", 254, 0)]
    assert found[2:] == [Region("vda1", 254, 0, 2048, 4095)]
    assert found[1].devs == (254 << 20,)


def test_a_disk_of_several_paths_is_looked_at_on_all_of_them(tree: Tree) -> None:
    queue = (Hctx(0, (0,), 128, 0),)
    hidden = {
        name: BlockDevice(name, "", -1, -1, "nvme", None, hidden=True, hctxs=queue)
        for name in ("nvme1c1n1", "nvme1c2n1")
    }
    devices = {
        "nvme1n1": disk("nvme1n1", 1, slaves=("nvme1c1n1", "nvme1c2n1")),
        "nvme1n1p1": disk("nvme1n1p1", 2, disk="nvme1n1"),
        **hidden,
    }
    row = "0 0 0 0 0 0 0 0 0 0 0"
    tree.proc("diskstats", f" 259 0 nvme1c2n1 {row}\n 259 1 nvme1n1 {row}\n"
                           f" 259 3 nvme1c1n1 {row}\n")  # fmt: skip
    tree.sys("class/block/nvme1n1p1/start", "2048")
    tree.sys("class/block/nvme1n1p1/size", "2048")
    whole, part = regions(("nvme1n1", "nvme1c1n1", "nvme1n1p1"), devices, tree.roots)
    assert whole.devs == part.devs == (259 << 20, 259 << 20 | 3) and not whole.bios
    text = script((LATENCY,), [whole, part], HAVE, 250)
    assert text.count(f"(args->dev == {259 << 20} || args->dev == {259 << 20 | 3})") >= 3
    assert f"args->dev == {259 << 20 | 1}" not in text and "bio" not in text
    # one path's request and another's may have the same sector
    assert "<< 56 | args->sector" in text
