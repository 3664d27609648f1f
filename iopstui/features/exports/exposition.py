"""The two text formats that Prometheus reads.

The text format 0.0.4 (prometheus.io, "Exposition formats") is what node_exporter's textfile
collector takes; OpenMetrics 1.0 (RFC draft, "OpenMetrics, a cloud-native, highly scalable metrics
protocol") is what a scrape gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
UNITS = ("seconds", "bytes", "ratio")
INFINITE = "+Inf"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: the ``suffix`` after the family's name ("_bucket"), the labels, and the value."""

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name, in base units (seconds, bytes, ratios from 0 to 1). The name is
    without ``_total`` or ``_info``."""

    name: str
    kind: str
    help: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """The unit that the name ends with; "" for plain counts."""
        last = self.name.rpartition("_")[2]
        return last if last in UNITS else ""


def labels(**pairs: str) -> Labels:
    """Labels in this order."""
    return tuple(pairs.items())


def histogram_samples(
    counts: Mapping[float, int], total: int, sum_of: float, labels_: Labels
) -> Iterator[Sample]:
    """The lines of one classic histogram. ``counts`` says how many values lie up to each bound, so
    it is cumulative; it is in the order of the bounds. ``total`` counts all values."""
    for bound, count in counts.items():
        yield Sample("_bucket", (*labels_, ("le", number(bound))), count)
    yield Sample("_bucket", (*labels_, ("le", INFINITE)), total)
    yield Sample("_count", labels_, total)
    yield Sample("_sum", labels_, sum_of)


def text_format(families: Iterable[Family]) -> str:
    """The text format 0.0.4. It has no information metrics: they are gauges there."""
    return "".join(_lines(family, False) for family in families if family.samples)


def openmetrics(families: Iterable[Family]) -> str:
    """OpenMetrics 1.0, with its end."""
    lines = "".join(_lines(family, True) for family in families if family.samples)
    return lines + "# EOF\n"


def _lines(family: Family, modern: bool) -> str:
    suffix = {COUNTER: "_total", INFO: "_info"}.get(family.kind, "")
    name = family.name if modern else family.name + suffix
    kind = GAUGE if family.kind == INFO and not modern else family.kind
    lines = [f"# HELP {name} {_help(family.help, modern)}", f"# TYPE {name} {kind}"]
    if modern and family.unit:
        lines.append(f"# UNIT {name} {family.unit}")
    for sample in family.samples:
        lines.append(
            f"{family.name}{suffix}{sample.suffix}{_braces(sample.labels)} {number(sample.value)}"
        )
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """A finite value as text; whole numbers have no decimal point."""
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1 << 53)
    return str(int(value)) if is_whole else repr(value)


def _braces(labels_: Labels) -> str:
    if not labels_:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels_) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(text: str, modern: bool) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if modern else escaped
