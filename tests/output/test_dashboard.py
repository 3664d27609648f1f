"""The Grafana dashboard, the alerts and the guide use existing metrics and labels only."""

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
from iopstui.features.exports.metrics import Metrics, text_format
from iopstui.model.block.target import Target
from iopstui.model.findings.finding import Finding

NAME = re.compile(r"\biopstui_[a-z0-9_]+")
SELECTED = re.compile(r"\b(iopstui_[a-z0-9_]+)\{([^}]*)\}")
BY = re.compile(r"\bby \(([^)]*)\)\s*\(((?:[^()]|\([^()]*\))*)\)")
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds."""


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Every exported name with its labels."""
    metrics = Metrics("host-1")
    metrics.watches(Target("file", "/data/a", "vda", ("vda",)))
    judged = ExpectationChecked(
        1.0, 1, "iops>=5", "fio.total.iops", "1/s", ">=", 5, 5, 4.0, False, 0.0
    )
    reported = FindingReported(1.0, Finding("deep", "words"))
    for event in (*session("3.42-a-randread-grp", probed=True), judged, reported):
        metrics.handle(event)
    labels_of: dict[str, set[str]] = {}
    for name, family in read(text_format(metrics.families()), modern=False).items():
        for suffix, labels in family.samples:
            labels_of.setdefault(name + suffix, set()).update(label for label, _ in labels)
    return labels_of


@pytest.fixture(scope="module")
def dashboard(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / "docs" / "monitoring" / "grafana.json").read_text())
    return loaded


def expressions(value: Any) -> Iterator[str]:
    """All Prometheus expressions of the dashboard."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("expr", "query", "definition") and isinstance(item, str):
                yield item
            else:
                yield from expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)


def unknown_names(text: str, exported: dict[str, set[str]]) -> Iterator[str]:
    """Metrics and labels in ``text`` that are not exported."""
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


def test_unknown_metrics_and_labels_are_found(exported: dict[str, set[str]]) -> None:
    text = 'sum by (le, rule) (rate(iopstui_frames_total{disk="a"}[1m])) / iopstui_nothing'
    assert [*unknown_names(text, exported)] == [
        "iopstui_nothing", "iopstui_frames_total{disk}", "by (le) of iopstui_frames_total",
        "by (rule) of iopstui_frames_total",
    ]  # fmt: skip


def test_the_dashboard_queries_existing_metrics_and_all_of_them(
    dashboard: dict[str, Any], exported: dict[str, set[str]]
) -> None:
    queries = [*expressions(dashboard)]
    assert len(queries) > 30
    assert [text for text in queries if any(unknown_names(text, exported))] == []
    queried = {name for text in queries for name in NAME.findall(text)}
    assert {name for name in exported if name not in queried} == set()


def test_a_legend_names_labels_of_its_metrics(
    dashboard: dict[str, Any], exported: dict[str, set[str]]
) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            labels = {label for name in NAME.findall(target["expr"]) for label in exported[name]}
            legend_labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert legend_labels <= labels | SCRAPED, target
            by = re.search(r"by \(([^)]*)\)", target["expr"])
            assert not by or legend_labels <= set(by[1].split(", ")), target


def test_no_panel_covers_another(dashboard: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places) > 15
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for first, two in combinations(places, 2):
        assert (
            first["x"] + first["w"] <= two["x"] or two["x"] + two["w"] <= first["x"]
            or first["y"] + first["h"] <= two["y"] or two["y"] + two["h"] <= first["y"]
        ), (first, two)  # fmt: skip


@pytest.mark.parametrize("file", ["monitoring/alerts.yml", "guide/monitoring.md"])
def test_alerts_and_guide_name_existing_metrics(
    file: str, root: Path, exported: dict[str, set[str]]
) -> None:
    text = (root / "docs" / file).read_text()
    # the guide explains the prefix by itself
    text = re.sub(r"`iopstui_`", "", text)
    assert NAME.search(text) and [*unknown_names(text, exported)] == []
