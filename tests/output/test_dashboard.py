"""The Grafana dashboard, the alerts and the guide ask for metrics and labels that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from metrics_text import read
from session_frames import session

from iopstui.events import ExpectationChecked, FindingReported
from iopstui.model.block.target import Target
from iopstui.model.findings.finding import Finding
from iopstui.output.export.exposition import text_format
from iopstui.output.export.metrics import Metrics

NAME = re.compile(r"\biopstui_[a-z0-9_]+")
SELECTED = re.compile(r"\b(iopstui_[a-z0-9_]+)\{([^}]*)\}")
BY = re.compile(r"\bby \(([^)]*)\)\s*\(((?:[^()]|\([^()]*\))*)\)")
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds."""


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Every name that a scrape can find, with its labels."""
    metrics = Metrics("host-1")
    metrics.watches(Target("file", "/data/a", "vda", ("vda",)))
    judged = ExpectationChecked(
        1.0, 1, "iops>=5", "fio.total.iops", "1/s", ">=", 5, 5, 4.0, False, 0.0
    )
    said = FindingReported(1.0, Finding("deep", "words"))
    for event in (*session("3.42-a-randread-grp", probed=True), judged, said):
        metrics.handle(event)
    found: dict[str, set[str]] = {}
    for name, family in read(text_format(metrics.families()), modern=False).items():
        for suffix, labels in family.samples:
            found.setdefault(name + suffix, set()).update(label for label, _ in labels)
    return found


@pytest.fixture(scope="module")
def dashboard(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / "docs" / "monitoring" / "grafana.json").read_text())
    return loaded


def expressions(value: Any) -> Iterator[str]:
    """Whatever is asked of Prometheus, anywhere in it."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("expr", "query", "definition") and isinstance(one, str):
                yield one
            else:
                yield from expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one)


def wrong(text: str, exported: dict[str, set[str]]) -> Iterator[str]:
    """Names and labels in it that nothing has."""
    for name in NAME.findall(text):
        if name not in exported:
            yield name
    for name, inside in SELECTED.findall(text):
        for label in re.findall(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"', inside):
            if label not in exported.get(name, set()) | SCRAPED:
                yield f"{name}{{{label}}}"
    for labels, inside in BY.findall(text):
        for name in NAME.findall(inside):
            for label in re.split(r",\s*", labels):
                if label not in exported.get(name, set()) | SCRAPED:
                    yield f"by ({label}) of {name}"


def test_what_is_wrong_is_found(exported: dict[str, set[str]]) -> None:
    text = 'sum by (le, rule) (rate(iopstui_frames_total{disk="a"}[1m])) / iopstui_nothing'
    assert [*wrong(text, exported)] == [
        "iopstui_nothing", "iopstui_frames_total{disk}", "by (le) of iopstui_frames_total",
        "by (rule) of iopstui_frames_total",
    ]  # fmt: skip


def test_the_dashboard_asks_for_what_there_is(
    dashboard: dict[str, Any], exported: dict[str, set[str]]
) -> None:
    asked = [*expressions(dashboard)]
    assert len(asked) > 30
    assert [text for text in asked if any(wrong(text, exported))] == []
    # and leaves nothing out
    named = {name for text in asked for name in NAME.findall(text)}
    assert {name for name in exported if name not in named} == set()


def test_a_legend_names_labels_of_its_metrics(
    dashboard: dict[str, Any], exported: dict[str, set[str]]
) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            known = {label for name in NAME.findall(target["expr"]) for label in exported[name]}
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= known | SCRAPED, target
            by = re.search(r"by \(([^)]*)\)", target["expr"])
            assert not by or named <= set(by[1].split(", ")), target


def test_no_panel_covers_another(dashboard: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places) > 15
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, two in combinations(places, 2):
        assert (
            one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
            or one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"]
        ), (one, two)  # fmt: skip


@pytest.mark.parametrize("file", ["monitoring/alerts.yml", "guide/monitoring.md"])
def test_alerts_and_guide_ask_for_what_there_is(
    file: str, root: Path, exported: dict[str, set[str]]
) -> None:
    text = (root / "docs" / file).read_text()
    # the guide's own prefix, and the port's name for a counter
    text = re.sub(r"`iopstui_`", "", text)
    assert NAME.search(text) and [*wrong(text, exported)] == []
