"""Simulated seconds of requests, as the probe keeps them: the slowest 10 and a random sample of 10.

Without ``cause``, a request is slow only by chance and by its place in a burst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from iopstui.model.samples import Exemplar

KEPT = 10
SECOND = 10**9
Cause = Callable[[Exemplar], int]
"""The additional time of a request (ns)."""


def independent(chance: Random, count: int = 500) -> list[Exemplar]:
    """Requests at random times, of random processes, CPUs and places."""
    return [
        _request(chance, SECOND + chance.randrange(SECOND), chance.randrange(1 << 24))
        for _ in range(count)
    ]


def bursts(chance: Random) -> list[Exemplar]:
    """Bursts of 1 to 64 requests of one process, CPU and region, which the disk serves one after
    another. A third of the bursts is delayed as a whole."""
    made: list[Exemplar] = []
    for _ in range(chance.randrange(10, 40)):
        began = SECOND + chance.randrange(SECOND)
        first = _request(chance, began, chance.randrange(1 << 24))
        pause = chance.choice((0, 0, chance.randrange(1_000_000, 30_000_000)))
        ended = began + pause
        for place in range(chance.choice((1, 2, 8, 64))):
            ended += chance.randrange(50_000, 400_000)
            sector = first.sector + 8 * place if first.sector is not None else None
            made.append(_ended(replace(first, sector=sector), ended))
    return made


def kept(requests: list[Exemplar], chance: Random, cause: Cause | None = None) -> list[Exemplar]:
    """The requests that the probe would keep."""
    if cause is not None:
        later = ((one, cause(one)) for one in requests)
        requests = [_ended(one, one.completed_ns + ns) if ns else one for one, ns in later]
    order = sorted(range(len(requests)), key=lambda n: -requests[n].total_ns)
    slow = set(order[:KEPT])
    sampled = set(chance.sample(range(len(requests)), min(KEPT, len(requests))))
    return [
        replace(requests[n], slow=n in slow, sampled=n in sampled) for n in sorted(slow | sampled)
    ]


def _request(chance: Random, began: int, place: int) -> Exemplar:
    pid, group = chance.choice((70, 71, 72)), chance.choice(("/a", "/b"))
    cpu, cpu_done, hctx = chance.randrange(4), chance.randrange(4), chance.randrange(2)
    size, flags = chance.choice((4096, 8192, 65536)), chance.choice(("R", "RS"))
    ended = began + int(100_000 * (1 + chance.expovariate(0.5)))
    # not exemplar(): that makes two objects for each of 500 requests a second
    return Exemplar(
        disk="vda", kind="read", slow=True, sampled=False, sector=8 * place, offset=place << 12,
        size=size, flags=flags, pid=pid, tid=701, comm="fio", group=group, cpu=cpu,
        cpu_done=cpu_done, hctx=hctx, allocated_ns=began, inserted_ns=began + 1000,
        issued_ns=began + 11_000, completed_ns=ended,
    )  # fmt: skip


def _ended(one: Exemplar, ended_ns: int) -> Exemplar:
    offset = None if one.sector is None else one.sector << 9
    return replace(one, completed_ns=ended_ns, offset=offset)
