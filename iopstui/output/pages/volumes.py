"""Volume classes as a list, one class with its explanation, and both as JSON."""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from iopstui.catalog.library import Catalog
from iopstui.format import duration, latency
from iopstui.model.volumes.bucket import Bucket
from iopstui.model.volumes.formula import Formula
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import (
    IOPS,
    READ,
    THROUGHPUT,
    WRITE,
    Instance,
    InstanceLimit,
    VolumeClass,
)
from iopstui.text import printable

NARROWEST = 40
KINDS = ((IOPS, "IOPS"), (THROUGHPUT, "Throughput"))


def megabytes(bytes_s: float | None) -> str:
    """ "350 MB/s"."""
    return "–" if bytes_s is None else f"{bytes_s / 1e6:,.4g} MB/s"


def figure_text(kind: str, value: float | None) -> str:
    """IOPS or MB/s, for people."""
    if kind == THROUGHPUT:
        return megabytes(value)
    return "–" if value is None else f"{value:,.0f} IOPS"


def volumes_table(catalog: Catalog, width: int) -> str:
    """Every class with its formulas, under its provider."""
    first = max((len(one.id) for one in catalog.classes.values()), default=5)
    lines = [f"{'VOLUME':<{first}}  DESCRIPTION"]
    above = ""
    for one in catalog.classes.values():
        if one.provider != above:
            above = one.provider
            lines += ["", printable(catalog.titles.get(above, above))]
        words = f"{one.title}: {summary(one)}"
        lines += _wrapped(words, width, f"{one.id:<{first}}  ", " " * (first + 2))
    lines += ["", "Explain one: iopstui volumes NAME [--size 500g]",
              "Test one:    iopstui promise [TARGET] --volume NAME"]  # fmt: skip
    return "\n".join(lines)


def summary(one: VolumeClass) -> str:
    """The formulas in one line."""
    parts = [one.formulas[key].text() for key in _distinct(one)]
    if one.provision is not None and one.provision.iops is not None:
        more = "more" if one.formulas.get((IOPS, READ)) else "as"
        parts.append(f"{more} bought, up to {one.provision.iops.text()}")
    return "; ".join(parts)


def _distinct(one: VolumeClass) -> Iterator[tuple[str, str]]:
    seen: list[Formula] = []
    for key, formula in one.formulas.items():
        if formula not in seen:
            seen.append(formula)
            yield key


def instances_table(found: Iterable[Instance]) -> str:
    """Instance sizes with their limits."""
    rows = [("INSTANCE", "UNCACHED", "CACHED", "BURST")]
    for one in found:
        rows.append((one.id, _limit(one.uncached), _limit(one.cached), _limit(one.burst)))
    widths = [max(len(row[n]) for row in rows) for n in range(4)]
    return "\n".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _limit(one: InstanceLimit | None) -> str:
    if one is None:
        return "–"
    iops = "–" if one.iops is None else f"{one.iops:,.0f} IOPS"
    return f"{iops}, {megabytes(one.throughput)}"


def explain_volume(one: VolumeClass, found: PromisedFigures | None, width: int) -> str:
    """The formulas with their sources, and the figures of a volume (``found``), if it has a
    size."""
    lines = [*_wrapped(f"{one.id}: {one.title}", width, "", ""), ""]
    for label, text, source in _rows(one):
        cited = f" [{source}]" if source else ""
        lines += _wrapped(text + cited, width, f"{label:<18}", " " * 18)
    if found is not None:
        size = f" of {found.size_gib:,g} GiB" if found.size_gib else ""
        lines += ["", f"A volume{size}:"]
        for label, text in _figures(found):
            lines += _wrapped(text, width, f"  {label:<18}", " " * 20)
    lines += ["", "Sources:"]
    for key in sorted(set(_cited_sources(one))):
        page = one.sources[key]
        lines += _wrapped(f"[{key}] {page.text} {page.url}".rstrip(), width, "  ", "    ")
    old = outdated(one)
    if old:
        lines += ["", *_wrapped(old, width, "", "")]
    return "\n".join(lines)


def outdated(one: VolumeClass) -> str:
    """A sentence if figures of the class are from pages older than two years; "" otherwise."""
    today = datetime.date.today()
    old = sorted(
        {one.sources[key].date for key in _cited_sources(one) if one.sources[key].outdated(today)}
    )
    if not old:
        return ""
    return (f"Some figures are of {old[0]} and may have changed: compare them with the "
            "provider's page.")  # fmt: skip


def _rows(one: VolumeClass) -> Iterator[tuple[str, str, str]]:
    if one.sizes is not None:
        yield "Sizes", f"{one.sizes[0]:,g} to {one.sizes[1]:,g} GiB", one.cited["size"]
    for kind, label in KINDS:
        for direction in (READ, WRITE):
            formula = one.formulas.get((kind, direction))
            both = one.formulas.get((kind, READ)) == one.formulas.get((kind, WRITE))
            if formula is not None and not (both and direction == WRITE):
                yield label if both else f"{label}, {direction}", formula.text(), formula.source
    offer = one.provision
    if offer is not None and offer.iops is not None:
        what = "on top, up to" if offer.adds else "up to"
        yield "IOPS to buy", f"{what} {offer.iops.text()}", offer.iops.source
    if offer is not None and offer.throughput is not None:
        yield "MB/s to buy", f"up to {offer.throughput.text()}", offer.throughput.source
    yield from _burst_rows(one)
    if one.io_size is not None:
        larger = "a larger one counts as several" if one.io_size.split else "of any size"
        yield "One I/O", f"up to {one.io_size.bytes // 1024} KiB; {larger}", one.io_size.source
    if one.latency is not None:
        what = f"{latency(one.latency.mean_ns)} mean of {one.latency.rw}"
        yield "Latency", what, one.latency.source
    if one.delivers is not None:
        share, often = one.delivers
        yield "Delivers", f"at least {share * 100:g} % {often}".rstrip(), one.cited["delivers"]
    if one.warmup is not None:
        yield "Warm-up", one.warmup.text, one.warmup.source
    for note in one.notes:
        yield "Note", note.text, note.source


def _burst_rows(one: VolumeClass) -> Iterator[tuple[str, str, str]]:
    burst = one.burst
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


def _figures(found: PromisedFigures) -> Iterator[tuple[str, str]]:
    for kind, label in KINDS:
        read, write = found.figure(kind, READ), found.figure(kind, WRITE)
        if read is not None or write is not None:
            both = f"{figure_text(kind, read)} read, {figure_text(kind, write)} write"
            yield label, figure_text(kind, read) if read == write else both
        burst = found.burst(kind, READ)
        if burst is not None:
            bucket = found.bucket(kind)
            yield (
                f"{label} burst",
                figure_text(kind, burst) + (_burst_text(bucket) if bucket else ""),
            )
    if found.instance is not None:
        yield "Instance", f"{found.instance.id}: {_limit(found.instance_limit())}"
        tightest = found.limits(READ, found.volume.random_size)[0]
        yield "Tightest", f"{tightest.name}: {tightest.rate:,.0f} random reads/s"


def _burst_text(bucket: Bucket) -> str:
    lasts, refills = bucket.lasts_s(), bucket.refills_s()
    return (f", for {duration(lasts or 0)} from a full bucket, full again after "
            f"{duration(refills or 0)} without I/O")  # fmt: skip


def _cited_sources(one: VolumeClass) -> Iterator[str]:
    yield from (source for _, _, source in _rows(one) if source)


def volume_json(one: VolumeClass, found: PromisedFigures | None = None) -> dict[str, Any]:
    """Return a class, ready for ``json.dumps``; rates per second, sizes in bytes unless named."""
    data: dict[str, Any] = {
        "id": one.id, "provider": one.provider, "name": one.name, "title": one.title,
        "drive": one.drive or None,
        "size_gib": list(one.sizes) if one.sizes else None,
        "figures": [
            {"figure": label, "text": text, "source": source or None}
            for label, text, source in _rows(one)
        ],
        "sources": {
            key: {"page": source.page, "url": source.url or None, "date": source.date,
                  "read": source.read}
            for key, source in one.sources.items() if key in set(_cited_sources(one))
        },
    }  # fmt: skip
    return data | {"volume": _promised_json(found) if found is not None else None}


def _promised_json(found: PromisedFigures) -> dict[str, Any]:
    buckets = {IOPS: found.io_bucket, THROUGHPUT: found.byte_bucket}
    return {
        "size_gib": found.size_gib or None,
        "iops": found.iops,
        "bytes_s": found.throughput,
        "burst": {
            "iops": found.burst(IOPS, READ),
            "bytes_s": found.burst(THROUGHPUT, READ),
            "buckets": {
                kind: {"size": one.size, "lasts_s": one.lasts_s(), "refills_s": one.refills_s()}
                for kind, one in buckets.items() if one is not None
            },
        },
        "instance": instance_json(found.instance) if found.instance else None,
        "limits": [
            {"name": one.name, "random_reads_s": one.rate}
            for one in found.limits(READ, found.volume.random_size)
        ],
    }  # fmt: skip


def instance_json(one: Instance) -> dict[str, Any]:
    """Return an instance size, ready for ``json.dumps``; rates per second."""
    return {"id": one.id} | {
        key: None if limit is None else {"iops": limit.iops, "bytes_s": limit.throughput}
        for key, limit in (("uncached", one.uncached), ("cached", one.cached),
                           ("burst", one.burst))
    }  # fmt: skip


def catalog_json(catalog: Catalog) -> dict[str, Any]:
    """Everything."""
    return {
        "volumes": [volume_json(one) for one in catalog.classes.values()],
        "instances": [instance_json(one) for one in catalog.instances.values()],
        "problems": list(catalog.problems),
    }


def problems_text(problems: Iterable[str]) -> list[str]:
    """Each as a line for standard error."""
    return [f"warning: {printable(one)}" for one in problems]


def _wrapped(text: str, width: int, head: str, indent: str) -> list[str]:
    return textwrap.wrap(
        printable(text), max(width, len(indent) + NARROWEST), initial_indent=head,
        subsequent_indent=indent, break_on_hyphens=False, break_long_words=False,
    ) or [head.rstrip()]  # fmt: skip
