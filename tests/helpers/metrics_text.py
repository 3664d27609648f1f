"""A strict reader of the two formats that Prometheus scrapes, written from their specifications.
Prometheus's own readers check the same text: both must accept it and find the same."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as newer

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
META = re.compile(rf"# (HELP|TYPE|UNIT) ({NAME}) (.+)")
LINE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?Inf|NaN")
SUFFIXES = {
    "counter": ("_total",), "gauge": ("",), "info": ("_info",),
    "histogram": ("_bucket", "_count", "_sum"),
}  # fmt: skip


@dataclass
class Read:
    """One family of metrics: (suffix, labels) of each sample, with its value."""

    kind: str = ""
    help: str = ""
    unit: str = ""
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    def value(self, suffix: str = "", **labels: str) -> float:
        return self.samples[suffix, frozenset(labels.items())]


def read(text: str, modern: bool) -> dict[str, Read]:
    """All families by name. ``modern``: OpenMetrics 1.0, else the text format 0.0.4."""
    assert text.endswith("\n") and "\r" not in text
    lines = text[:-1].split("\n") if text != "\n" else []
    if modern:
        assert lines.pop() == "# EOF", "the end"
    found: dict[str, Read] = {}
    name = ""
    for line in lines:
        assert line and line != "# EOF"
        if line.startswith("#"):
            meta = META.fullmatch(line)
            assert meta, line
            what, name, words = meta.groups()
            if what == "HELP":
                assert name not in found, "a family in one place"
                found[name] = Read()
            attribute = what.lower() if what != "TYPE" else "kind"
            assert not found[name].samples and not getattr(found[name], attribute), line
            setattr(found[name], attribute, words)
        else:
            _sample(line, name, found[name], modern)
    for name, family in found.items():
        _whole(name, family, modern)
    _as_prometheus_reads_it(text, found, modern)
    return found


def _as_prometheus_reads_it(text: str, found: dict[str, Read], modern: bool) -> None:
    theirs = (newer if modern else older).text_string_to_metric_families(text)
    assert {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in theirs for sample in family.samples
    } == {
        (name + suffix, labels): value
        for name, family in found.items() for (suffix, labels), value in family.samples.items()
    }  # fmt: skip


def _sample(line: str, name: str, family: Read, modern: bool) -> None:
    match = LINE.fullmatch(line)
    assert match, line
    full, inside, number = match.groups()
    suffix = full.removeprefix(name)
    assert full.startswith(name) and suffix in _suffixes(family.kind, modern), line
    assert NUMBER.fullmatch(number), line
    labels = _labels(inside or "")
    key = suffix, frozenset(labels.items())
    assert key not in family.samples, f"twice: {line}"
    family.samples[key] = float(number)


def _suffixes(kind: str, modern: bool) -> tuple[str, ...]:
    # the older format has the whole name in its TYPE
    return SUFFIXES[kind] if modern or kind == "histogram" else ("",)


def _labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    while text:
        match = LABEL.match(text)
        assert match, text
        name, value, more = match.groups()
        assert name not in found and not name.startswith("__")
        found[name] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value)
        text = text[match.end() :]
        assert bool(more) == bool(text), "no comma at the end"
    return found


def _whole(name: str, family: Read, modern: bool) -> None:
    assert family.kind and family.help and family.samples, name
    assert not family.unit or (modern and name.endswith(f"_{family.unit}"))
    if not modern:
        assert family.kind != "info", "it knows none"
        assert (family.kind == "counter") == name.endswith("_total"), name
    elif family.kind in ("counter", "info"):
        assert not name.endswith(("_total", "_info")), name
    for (suffix, _), value in family.samples.items():
        if family.kind == "counter" or suffix in ("_bucket", "_count"):
            assert value >= 0 and math.isfinite(value)
    if family.kind == "histogram":
        _histograms(family)


def _histograms(family: Read) -> None:
    groups: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
    for (suffix, labels), value in family.samples.items():
        if suffix == "_bucket":
            bound = float(dict(labels)["le"])
            own = frozenset(pair for pair in labels if pair[0] != "le")
            groups.setdefault(own, []).append((bound, value))
    counts = {labels for suffix, labels in family.samples if suffix == "_count"}
    assert set(groups) == counts == {labels for s, labels in family.samples if s == "_sum"}
    for own, buckets in groups.items():
        assert buckets == sorted(buckets), "bounds and counts grow"
        assert math.isinf(buckets[-1][0])
        assert buckets[-1][1] == family.samples["_count", own]
