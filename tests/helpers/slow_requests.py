"""Single requests, as the probe keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iopstui.model.metrics.probe import LatencyStats, RequestStats
from iopstui.model.samples import Exemplar


def exemplar(total_ns: int = 5_000_000, ended_ns: int = 10**9, **more: Any) -> Exemplar:
    """A slow read of fio on vda that completed at ``ended_ns``. It was inserted after 1 µs and
    issued after 11 µs."""
    began = ended_ns - total_ns
    made = Exemplar(
        disk="vda", kind="read", slow=True, sampled=False, sector=2048, offset=2048 << 9,
        size=4096, flags="R", pid=700, tid=701, comm="fio", group="/", cpu=0, cpu_done=1, hctx=0,
        allocated_ns=began, inserted_ns=began + 1000, issued_ns=began + 11_000,
        completed_ns=ended_ns,
    )  # fmt: skip
    return replace(made, **more)


def reads(count: int) -> dict[str, dict[str, RequestStats]]:
    """``count`` reads of vda in a second, as the probe counts them."""
    return {"vda": {"read": RequestStats(1.0, LatencyStats.from_bins({100_000: count}))}}
