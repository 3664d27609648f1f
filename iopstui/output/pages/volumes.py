"""Volume classes as a list, one class with its explanation, and both as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

from iopstui.catalog import Catalog
from iopstui.format import duration, latency
from iopstui.model.volumes.promised import Bucket, PromisedFigures
from iopstui.model.volumes.volume import (
    IOPS,
    READ,
    THROUGHPUT,
    WRITE,
    Formula,
    Instance,
    InstanceLimit,
    VolumeClass,
)
from iopstui.output.pages.jobs import lines_after
from iopstui.tables import aligned
from iopstui.text import printable

NARROWEST = 40
KINDS = ((IOPS, "IOPS"), (THROUGHPUT, "Throughput"))


def megabytes(bytes_s: float | None) -> str:
    """A rate in bytes per second as "350 MB/s"."""
    return "–" if bytes_s is None else f"{bytes_s / 1e6:,.4g} MB/s"


def figure_text(kind: str, value: float | None) -> str:
    """IOPS or MB/s, for people."""
    if kind == THROUGHPUT:
        return megabytes(value)
    return "–" if value is None else f"{value:,.0f} IOPS"


def volumes_table(catalog: Catalog, width: int) -> str:
    """Every class with its formulas, under its provider."""
    first = max((len(volume.id) for volume in catalog.classes.values()), default=5)
    lines = [f"{'VOLUME':<{first}}  DESCRIPTION"]
    above = ""
    for entry in catalog.classes.values():
        if entry.provider != above:
            above = entry.provider
            lines += ["", printable(catalog.titles.get(above, above))]
        text = f"{entry.title}: {summary(entry)}"
        lines += lines_after(text, width, f"{entry.id:<{first}}  ", " " * (first + 2))
    lines += ["", "Explain one: iopstui volumes NAME [--size 500g]",
              "Test one:    iopstui promise [TARGET] --volume NAME"]  # fmt: skip
    return "\n".join(lines)


def summary(volume: VolumeClass) -> str:
    """The formulas in one line."""
    parts = [volume.formulas[key].text() for key in _distinct(volume)]
    if volume.provision is not None and volume.provision.iops is not None:
        more = "more" if volume.formulas.get((IOPS, READ)) else "as"
        parts.append(f"{more} bought, up to {volume.provision.iops.text()}")
    return "; ".join(parts)


def _distinct(volume: VolumeClass) -> Iterator[tuple[str, str]]:
    formulas: list[Formula] = []
    for key, formula in volume.formulas.items():
        if formula not in formulas:
            formulas.append(formula)
            yield key


def instances_table(instances: Iterable[Instance]) -> str:
    """Instance sizes with their limits."""
    rows = [(each.id, *map(_limit, (each.uncached, each.cached, each.burst))) for each in instances]
    return "\n".join(aligned([("INSTANCE", "UNCACHED", "CACHED", "BURST"), *rows]))


def _limit(limit: InstanceLimit | None) -> str:
    if limit is None:
        return "–"
    iops = "–" if limit.iops is None else f"{limit.iops:,.0f} IOPS"
    return f"{iops}, {megabytes(limit.throughput)}"


def explain_volume(volume: VolumeClass, promised: PromisedFigures | None, width: int) -> str:
    """The formulas with their sources; with a size, also the ``promised`` figures."""
    lines = [*lines_after(f"{volume.id}: {volume.title}", width, "", ""), ""]
    for label, text, source in _rows(volume):
        cited = f" [{source}]" if source else ""
        lines += lines_after(text + cited, width, f"{label:<18}", " " * 18)
    if promised is not None:
        size = f" of {promised.size_gib:,g} GiB" if promised.size_gib else ""
        lines += ["", f"A volume{size}:"]
        for label, text in _figures(promised):
            lines += lines_after(text, width, f"  {label:<18}", " " * 20)
    lines += ["", "Sources:"]
    for key in sorted(set(_cited_sources(volume))):
        page = volume.sources[key]
        lines += lines_after(f"[{key}] {page.text} {page.url}".rstrip(), width, "  ", "    ")
    old = outdated(volume)
    if old:
        lines += ["", *lines_after(old, width, "", "")]
    return "\n".join(lines)


def outdated(volume: VolumeClass) -> str:
    """A sentence if figures of the class are from web pages older than two years; "" otherwise."""
    today = datetime.date.today()
    old = sorted(
        {
            volume.sources[key].date
            for key in _cited_sources(volume)
            if volume.sources[key].outdated(today)
        }
    )
    if not old:
        return ""
    return (f"Some figures are of {old[0]} and may have changed: compare them with the "
            "provider's page.")  # fmt: skip


def _rows(volume: VolumeClass) -> Iterator[tuple[str, str, str]]:
    if volume.sizes is not None:
        yield "Sizes", f"{volume.sizes[0]:,g} to {volume.sizes[1]:,g} GiB", volume.cited["size"]
    for kind, label in KINDS:
        for direction in (READ, WRITE):
            formula = volume.formulas.get((kind, direction))
            are_equal = volume.formulas.get((kind, READ)) == volume.formulas.get((kind, WRITE))
            if formula is not None and not (are_equal and direction == WRITE):
                yield (
                    label if are_equal else f"{label}, {direction}",
                    formula.text(),
                    formula.source,
                )
    offer = volume.provision
    if offer is not None and offer.iops is not None:
        prefix = "on top, up to" if offer.adds else "up to"
        yield "IOPS to buy", f"{prefix} {offer.iops.text()}", offer.iops.source
    if offer is not None and offer.throughput is not None:
        yield "MB/s to buy", f"up to {offer.throughput.text()}", offer.throughput.source
    yield from _burst_rows(volume)
    if volume.io_size is not None:
        larger = "a larger one counts as several" if volume.io_size.split else "of any size"
        yield (
            "One I/O",
            f"up to {volume.io_size.bytes // 1024} KiB; {larger}",
            volume.io_size.source,
        )
    if volume.latency is not None:
        prefix = f"{latency(volume.latency.mean_ns)} mean of {volume.latency.rw}"
        yield "Latency", prefix, volume.latency.source
    if volume.delivers is not None:
        share, often = volume.delivers
        yield "Delivers", f"at least {share * 100:g} % {often}".rstrip(), volume.cited["delivers"]
    if volume.warmup is not None:
        yield "Warm-up", volume.warmup.text, volume.warmup.source
    for note in volume.notes:
        yield "Note", note.text, note.source


def _burst_rows(volume: VolumeClass) -> Iterator[tuple[str, str, str]]:
    burst = volume.burst
    if burst is None:
        return
    for formula in (burst.iops, burst.throughput):
        if formula is not None:
            yield "Burst", formula.text(), formula.source
    for formula in (burst.credits, burst.credit_bytes):
        if formula is not None:
            yield "Burst bucket", f"{formula.text()}; refilled by the baseline", formula.source
    if burst.seconds:
        lasts = f"lasts {duration(burst.seconds)} at full burst"
        yield "Burst bucket", lasts, burst.seconds_source


def _figures(promised: PromisedFigures) -> Iterator[tuple[str, str]]:
    for kind, label in KINDS:
        read, write = promised.figure(kind, READ), promised.figure(kind, WRITE)
        if read is not None or write is not None:
            text = f"{figure_text(kind, read)} read, {figure_text(kind, write)} write"
            yield label, figure_text(kind, read) if read == write else text
        burst = promised.burst(kind, READ)
        if burst is not None:
            bucket = promised.bucket(kind)
            yield (
                f"{label} burst",
                figure_text(kind, burst) + (_burst_text(bucket) if bucket else ""),
            )
    if promised.instance is not None:
        yield "Instance", f"{promised.instance.id}: {_limit(promised.instance_limit())}"
        tightest = promised.limits(READ, promised.volume.random_size)[0]
        yield "Tightest", f"{tightest.name}: {tightest.rate:,.0f} random reads/s"


def _burst_text(bucket: Bucket) -> str:
    lasts, refills = bucket.lasts_s(), bucket.refills_s()
    return (f", for {duration(lasts or 0)} from a full bucket, full again after "
            f"{duration(refills or 0)} without I/O")  # fmt: skip


def _cited_sources(volume: VolumeClass) -> Iterator[str]:
    yield from (source for _, _, source in _rows(volume) if source)


def volume_json(volume: VolumeClass, promised: PromisedFigures | None = None) -> dict[str, Any]:
    """Return a class, ready for ``json.dumps``; rates per second, sizes in bytes unless named."""
    data: dict[str, Any] = {
        "id": volume.id, "provider": volume.provider, "name": volume.name, "title": volume.title,
        "drive": volume.drive or None,
        "size_gib": list(volume.sizes) if volume.sizes else None,
        "figures": [
            {"figure": label, "text": text, "source": source or None}
            for label, text, source in _rows(volume)
        ],
        "sources": {
            key: {"page": source.page, "url": source.url or None, "date": source.date,
                  "read": source.read}
            for key, source in volume.sources.items() if key in set(_cited_sources(volume))
        },
    }  # fmt: skip
    return data | {"volume": _promised_json(promised) if promised is not None else None}


def _promised_json(promised: PromisedFigures) -> dict[str, Any]:
    buckets = {IOPS: promised.io_bucket, THROUGHPUT: promised.byte_bucket}
    return {
        "size_gib": promised.size_gib or None,
        "iops": promised.iops,
        "bytes_s": promised.throughput,
        "burst": {
            "iops": promised.burst(IOPS, READ),
            "bytes_s": promised.burst(THROUGHPUT, READ),
            "buckets": {
                kind: {"size": bucket.size, "lasts_s": bucket.lasts_s(),
                       "refills_s": bucket.refills_s()}
                for kind, bucket in buckets.items() if bucket is not None
            },
        },
        "instance": instance_json(promised.instance) if promised.instance else None,
        "limits": [
            {"name": limit.name, "random_reads_s": limit.rate}
            for limit in promised.limits(READ, promised.volume.random_size)
        ],
    }  # fmt: skip


def instance_json(instance: Instance) -> dict[str, Any]:
    """Return an instance size, ready for ``json.dumps``; rates per second."""
    return {"id": instance.id} | {
        key: None if limit is None else {"iops": limit.iops, "bytes_s": limit.throughput}
        for key, limit in (("uncached", instance.uncached), ("cached", instance.cached),
                           ("burst", instance.burst))
    }  # fmt: skip


def catalog_json(catalog: Catalog) -> dict[str, Any]:
    return {
        "volumes": [volume_json(volume) for volume in catalog.classes.values()],
        "instances": [instance_json(instance) for instance in catalog.instances.values()],
        "problems": list(catalog.problems),
    }
