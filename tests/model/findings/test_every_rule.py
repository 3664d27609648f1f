"""Every rule that is written is also called."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from iopstui.model import findings
from iopstui.model.findings.diagnosis import RULES

ONE_FINDING = ("Evidence", "Finding | None")


def test_every_rule_is_asked() -> None:
    written = set()
    for module in pkgutil.walk_packages(findings.__path__, f"{findings.__name__}."):
        for name, one in inspect.getmembers(import_module(module.name), inspect.isfunction):
            types = tuple(one.__annotations__.values())
            if types == ONE_FINDING and not name.startswith("_"):
                written.add(one)
    assert written - set(RULES) == set()
