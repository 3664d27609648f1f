"""Judge the evidence of a self-test. Nothing is read from this machine here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.selftest.bundle import read_bundle
from iopstui.selftest.check import FAIL, OK, Check, check_equal, check_within, unchecked
from iopstui.selftest.evidence import Evidence
from iopstui.selftest.judge_fio import judge_fio
from iopstui.selftest.judge_kernel import judge_kernel
from iopstui.selftest.judge_probe import judge_iostat, judge_probe

CLOCK_MS = 50.0
OWN_SHARE = 10.0
"""Percent of all CPUs together."""
LATENCY_ERROR = 0.3
"""A known latency is met a little late: timers, interrupts and fio itself take their time."""
MAX_CPU = 1 << 16
_QUEUE_OF = (re.compile(r"virtio\d+-req\.(\d+)"), re.compile(r"nvme\d+q(\d+)"))


def judge_bundle(path: Path) -> tuple[list[Check], Evidence]:
    """The checks of a bundle, and its evidence. UsageError if it is damaged."""
    found = read_bundle(path)
    try:
        return judge(found), found
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is damaged: its figures are not those of a self-test.") from error


def judge(found: Evidence) -> list[Check]:
    """All checks, in the order in which they are shown."""
    return [
        *judge_fio(found), *judge_kernel(found), *judge_iostat(found), *_queues(found),
        *judge_probe(found), *_latency(found), *_fence(found), *_restore(found), *_clock(found),
        *_cost(found),
    ]  # fmt: skip


def _queues(found: Evidence) -> Iterator[Check]:
    if "queues" in found.missing:
        yield unchecked("queue map", found.missing["queues"])
        return
    text = {queue: _cpus(words) for queue, words in found.queue_text.items()}
    yield check_equal("queue map: CPUs of each queue", _map_text(text),
                      _map_text({queue: set(cpus) for queue, cpus in found.queues.items()}),
                      "the queue map would be wrong")  # fmt: skip
    named: dict[str, int] = {}
    for irq, name in found.vector_names.items():
        for place, pattern in enumerate(_QUEUE_OF):
            match = pattern.fullmatch(name)
            if match is not None and int(match[1]) - place >= 0:
                named[irq] = int(match[1]) - place
    shown = {str(one["irq"]): one["hctx"] for one in found.vectors if str(one["irq"]) in named}
    if named:
        yield check_equal("queue map: queue of each interrupt", _pairs(named), _pairs(shown),
                          "interrupts would be shown at the wrong queue")  # fmt: skip
    else:
        yield unchecked("queue map: queue of each interrupt", "their names do not say it")
    goes = {irq: _cpus(words) for irq, words in found.affinity.items()}
    if goes:
        has = {str(one["irq"]): set(one["cpus"]) for one in found.vectors
               if str(one["irq"]) in goes}  # fmt: skip
        yield check_equal("queue map: CPU of each interrupt", _map_text(goes), _map_text(has),
                          "interrupts would be shown on the wrong CPU")  # fmt: skip


def _latency(found: Evidence) -> Iterator[Check]:
    if not found.known_latency:
        yield unchecked("known latency", found.missing.get("latency", "not measured"))
        return
    expected = found.known_latency["expected_ns"]
    for key, name in (("clat_ns", "fio"), ("await_ns", "device")):
        measured = found.known_latency.get(key)
        if measured is None:
            yield Check(f"known latency: {name}, ns", f"{expected:,}", "–", FAIL,
                        "nothing was measured")  # fmt: skip
        else:
            yield check_within(
                f"known latency: {name}, ns",
                float(expected),
                expected * (1 + LATENCY_ERROR),
                measured,
                "latencies would be wrong, or this machine's timers are",
            )


def _fence(found: Evidence) -> Iterator[Check]:
    if not found.fence:
        yield unchecked("fence", found.missing.get("fence", "not tried"))
        return
    yield check_equal(
        "fence: write where it is allowed",
        "done",
        "done" if found.fence["inside"] else "refused",
        "jobs that write fail",
    )
    yield check_equal("fence: write outside", "refused",
                      "done" if found.fence["outside"] else "refused",
                      "a job could overwrite other files")  # fmt: skip


def _restore(found: Evidence) -> Iterator[Check]:
    if not found.restore:
        yield unchecked("tunables", found.missing.get("restore", "not tried"))
        return
    yield check_equal(
        "tunables: changed for a run",
        found.restore["wanted"],
        found.restore["during"],
        "--knob has no effect",
    )
    yield check_equal(
        "tunables: restored after it",
        found.restore["before"],
        found.restore["after"],
        "a setting stays changed",
    )


def _clock(found: Evidence) -> Iterator[Check]:
    if len(found.frames) < 2:
        yield unchecked("clock", "fewer than two seconds were measured")
        return
    first = found.frames[0]
    off = max(abs(one["wall_ms"] - first["wall_ms"] - 1000 * (one["t"] - first["t"]))
              for one in found.frames)  # fmt: skip
    yield check_within("clock: wall against monotonic, ms", 0.0, CLOCK_MS, off,
                       "the clock was set meanwhile, or seconds have the wrong length")  # fmt: skip


def _cost(found: Evidence) -> Iterator[Check]:
    used = [one["own_cpu"] for one in found.frames[1:] if one["own_cpu"] is not None]
    if not used:
        yield unchecked("own CPU use", "not measured")
        return
    share = sum(used) / len(used) / max(1, len(found.frames[0]["cpus"]))
    verdict = OK if share <= OWN_SHARE else FAIL
    yield Check("own CPU use, of all CPUs", f"at most {OWN_SHARE:g} %", f"{share:.2f} %", verdict,
                "iopstui disturbs what it measures")  # fmt: skip


def _cpus(words: str) -> set[int]:
    """ "0-2, 5" as sysfs has it."""
    found: set[int] = set()
    for part in words.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            # a bundle may come from anybody
            if int(last or first) > MAX_CPU:
                raise ValueError(f"no machine has CPU {last or first}")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def _map_text(cpus: dict[str, set[int]]) -> str:
    return "; ".join(f"{key}: {','.join(map(str, sorted(cpus[key])))}"
                     for key in sorted(cpus, key=int))  # fmt: skip


def _pairs(queues: dict[str, int]) -> str:
    return ", ".join(f"{irq}→{queues[irq]}" for irq in sorted(queues, key=int))
