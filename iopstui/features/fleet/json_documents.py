"""Schemas of the documents that only a fleet writes."""

from __future__ import annotations

from iopstui.features.fleet.report.schema import fleet_report_schema

DOCUMENTS = {"fleet_report": fleet_report_schema}
