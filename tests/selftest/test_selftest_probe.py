"""The probe against /proc/diskstats, iopstui against iostat: true figures pass."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from iopstui.features.selftest import collect
from iopstui.features.selftest.collect import IostatLog
from iopstui.features.selftest.evidence import (
    FAIL,
    MISSING,
    OK,
    Check,
    Evidence,
    read_bundle,
    selftest_text,
)
from iopstui.features.selftest.judge import judge

BUNDLES = Path(__file__).parents[1] / "fixtures" / "selftest"
FOUND = read_bundle(BUNDLES / "virtio-1-queue-probe.gz")


def verdicts(found: Evidence) -> dict[str, str]:
    return {one.name: one.verdict for one in judge(found)}


def test_all_of_a_real_machine_s_figures_are_judged() -> None:
    made = verdicts(FOUND)
    assert {name for name in made if name.startswith("probe")} == {
        "probe: reads", "probe: ms of reads in the device", "probe: writes",
        "probe: ms of writes in the device",
    }  # fmt: skip
    assert {name for name in made if name.startswith("iostat")} == {
        "iostat: r/s", "iostat: sectors of rMB/s", "iostat: r_await", "iostat: w/s",
        "iostat: sectors of wMB/s", "iostat: w_await", "iostat: ms of aqu-sz",
        "iostat: ms of util",
    }  # fmt: skip


def each_probe(change: Callable[[dict[str, float]], None], side: str) -> Callable[[Evidence], None]:
    def wrong(found: Evidence) -> None:
        for frame in found.probe_frames:
            change(frame[side])

    return wrong


def each_report(column: str, factor: float) -> Callable[[Evidence], None]:
    """Multiply this figure in each of iostat's reports."""

    def wrong(found: Evidence) -> None:
        for row in found.iostat:
            words = row[2].split()
            if row[1] == "head":
                place = words.index(column)
            else:
                words[place] = str(float(words[place]) * factor)
                row[2] = " ".join(words)

    return wrong


@pytest.mark.parametrize(("flushes", "verdict"), [(20000, OK), (0, FAIL)])
def test_writes_without_sectors_are_not_the_probe_s(flushes: int, verdict: str) -> None:
    # three programs flush at a time: diskstats counts each flush as a write, the device gets only
    # one
    found = copy.deepcopy(FOUND)
    rows = [row for row in found.probe_counters if row[1] == "diskstats"]
    for index, row in enumerate(rows):
        words, part = row[2].split(), index / len(rows)
        words[7] = str(int(words[7]) + round(60000 * part))
        words[18] = str(int(words[18]) + round(flushes * part))
        row[2] = " ".join(words)
    assert verdicts(found)["probe: writes"] == verdict


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (each_probe(lambda d: d.update(ios=d["ios"] * 2), "read"), "probe: reads"),
        (each_probe(lambda d: d.update(ios=d["ios"] // 2), "write"), "probe: writes"),
        (each_probe(lambda d: d.update(mean=d["mean"] * 1000), "read"),
         "probe: ms of reads in the device"),
        (each_probe(lambda d: d.update(mean=d["mean"] / 1000), "write"),
         "probe: ms of writes in the device"),
        (lambda e: e.probe_frames[0].update(full=3), "probe: requests without room"),
        (each_report("r/s", 1.2), "iostat: r/s"),
        (each_report("wkB/s", 1.2), "iostat: sectors of wMB/s"),
        (each_report("r_await", 2), "iostat: r_await"),
        (each_report("aqu-sz", 0.8), "iostat: ms of aqu-sz"),
        (each_report("%util", 0.5), "iostat: ms of util"),
    ],
)  # fmt: skip
def test_wrong_figures_fail(wrong: Callable[[Evidence], None], check: str) -> None:
    found = copy.deepcopy(FOUND)
    wrong(found)
    assert verdicts(found)[check] == FAIL


def test_requests_that_the_probe_says_it_missed_are_no_failure() -> None:
    found = copy.deepcopy(FOUND)
    for frame in found.probe_frames:
        frame["missed"], frame["read"]["ios"] = 60.0, int(frame["read"]["ios"] * 0.4)
    assert verdicts(found)["probe: reads"] == OK


@pytest.mark.parametrize("line", ["vda x y", "vda", "vda nan inf", ""])
def test_what_iostat_never_prints_is_not_its_report(line: str) -> None:
    found = copy.deepcopy(FOUND)
    for row in found.iostat:
        row[2] = "Device r/s w/s" if row[1] == "head" else line
    assert verdicts(found)["iostat"] == MISSING


@pytest.mark.parametrize("name", ["probe", "iostat"])
def test_a_bundle_without_them_says_so(name: str) -> None:
    found = copy.deepcopy(FOUND)
    found.probe_frames.clear()
    found.iostat.clear()
    found.missing |= {"probe": "needs root", "iostat": "iostat is not installed"}
    assert verdicts(found)[name] == MISSING
    # the first bundles have no such evidence
    assert verdicts(read_bundle(BUNDLES / "nvme-4-queues.gz"))[name] == MISSING


def test_counters_that_begin_again_are_a_gap() -> None:
    found = copy.deepcopy(FOUND)
    last = found.probe_counters[-1]
    while last[1] != "diskstats":
        found.probe_counters.pop()
        last = found.probe_counters[-1]
    words = last[2].split()
    last[2] = " ".join([*words[:3], "0", *words[4:]])
    assert verdicts(found)["probe"] == MISSING


# -- iostat's output


def test_its_reports_are_kept_with_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "iostat"
    program.write_text(
        f"#!{sys.executable}\n"
        "import time\n"
        "print('Linux 6.1 (db1) \\t01/02/26\\n\\nDevice r/s\\nsda 5.00\\n', flush=True)\n"
        "time.sleep(60)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(collect, "which", lambda name: str(program))
    log, begun = IostatLog("sda"), time.time() * 1000
    log.begin()
    while len(log.rows) < 2:
        time.sleep(0.01)
    rows = log.finish()
    assert [row[1:] for row in rows] == [["head", "Device r/s"], ["row", "sda 5.00"]]
    assert all(isinstance(row[0], float) and row[0] >= begun for row in rows)
    # the host's name is not in it
    assert "db1" not in str(rows)


def test_without_iostat_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "which", lambda name: None)
    monkeypatch.setattr(subprocess, "Popen", None)
    log = IostatLog("sda")
    log.begin()
    assert log.finish() == []


# -- machines with many CPUs


def test_one_row_for_many_cpus_that_are_right() -> None:
    checks = [Check(f"interrupts of the disk on CPU {n}", "1 to 2", "2", OK, "") for n in range(64)]
    text = selftest_text(checks, Evidence(), 80)
    assert "interrupts of the disk on CPU 0 to 63  64 ranges  each within its range  OK" in text
    assert text.count("interrupts") == 1 and "64 passed" in text
    checks[7] = Check(checks[7].name, "1 to 2", "3", FAIL, "wrong CPU")
    text = selftest_text(checks, Evidence(), 80)
    assert "interrupts of the disk on CPU 7 " in text and "CPU 8 to 63" in text
    assert "63 passed, 1 failed" in text
