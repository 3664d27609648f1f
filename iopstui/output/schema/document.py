"""A document with all schemas: a JSON line at the top, each kind of line and document in
``$defs``."""

from __future__ import annotations

import json

from iopstui.discovery import feature_modules
from iopstui.linux.devices.smart import DiskHealth
from iopstui.linux.devices.zones import Zones
from iopstui.linux.nvme.topology import DriveFacts, NamespaceTopology
from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.metrics.paths import SCHEMA
from iopstui.output.pages.nvme import PATH
from iopstui.output.schema.lines import line_schemas
from iopstui.output.schema.notation import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array,
    keyed,
    of_dataclass,
    of_type,
    or_null,
    record,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENT = "document."
"""Before the name of what is no line."""


def schema(strict: bool = False) -> Schema:
    """The whole schema. ``strict``: unknown keys are an error."""
    lines = line_schemas(strict)
    return {
        "$schema": DRAFT,
        "title": "iopstui: one JSON line (--format jsonl), and documents in $defs",
        "$comment": f"schema {SCHEMA}; keys may be added, see docs/guide/data.md",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {
            **lines,
            **{DOCUMENT + n: document for n, document in _documents(strict).items()},
        },
    }


def schema_text() -> str:
    """Return the schema as printed by `iopstui fields --format schema`."""
    return json.dumps(schema(), indent=1)


def _documents(strict: bool) -> dict[str, Schema]:
    """Schemas of `iopstui NAME --format json` and `iopstui report`."""
    texts = ("name", "title", "measures", "source", "look_at", "teaches", "path", "text")
    job = record({**dict.fromkeys(texts, TEXT), "writes": BOOLEAN, "run": or_null(TEXT)}, strict)
    field = record(dict.fromkeys(("id", "title", "unit", "source", "meaning"), TEXT), strict)
    version = {"const": 1}
    return {
        "devices": _devices(strict),
        "jobs": {"anyOf": [array(job), job]},
        "fields": record({"schema": {"const": SCHEMA}, "fields": array(field)}, strict),
        **{
            name: make(strict)
            for module in feature_modules("json_documents")
            for name, make in module.DOCUMENTS.items()
        },
        "report": record(
            {"report": version, "iopstui": TEXT, "recordings": array(_report())}, strict
        ),
    }


def _devices(strict: bool) -> Schema:
    devices = record({"schema": {"const": 1}, "devices": array(_device(strict))}, strict)
    rates = dict.fromkeys((row.name for row in PATH), NUMBER)
    nvme = {
        "namespace": of_type(NamespaceTopology, strict),
        "rates": keyed(record(rates, strict)),
        "drive": of_type(DriveFacts, strict),
    }
    # only of `devices DEVICE`, and of an NVMe drive, a zoned device, or a SATA or SAS disk
    devices["properties"]["nvme"] = record(nvme, strict)
    devices["properties"]["zones"] = of_type(Zones, strict)
    devices["properties"]["smart"] = of_type(DiskHealth, strict)
    return devices


def _device(strict: bool) -> Schema:
    keys = of_dataclass(BlockDevice, strict)
    hctx = {**of_dataclass(Hctx, strict), "irqs": array(INTEGER)}
    keys["hctxs"] = array(record(hctx, strict))
    more = {
        "in_use": BOOLEAN, "in_use_by": array(TEXT),
        "rq_affinity_cannot_matter": or_null(TEXT),
    }  # fmt: skip
    return record({**keys, **more}, strict)


def _report() -> Schema:
    """Schema of the report of one recording; its parts are the events of the lines above."""
    schema_: Schema = {"type": "object"}
    overview = {"state": or_null(TEXT), "reason": TEXT,
                "measured": TEXT, "answer": or_null(TEXT), "compared": or_null(TEXT)}  # fmt: skip
    lists = ("answers", "devices", "experiments", "runs", "side_by_side", "findings", "marks",
             "changes", "notices")  # fmt: skip
    return record(
        {
            "file": TEXT, "overview": record(overview, strict=False), "header": schema_,
            "duration_s": NUMBER, "samples": INTEGER, "incomplete": or_null(TEXT),
            **dict.fromkeys(lists, array(schema_)),
            "series": keyed(array(NUMBER)),
        },
        strict=False,
    )  # fmt: skip
