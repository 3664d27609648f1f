"""scipy and numpy, imported when a test first uses them: that takes a second, collecting all tests
four."""

from __future__ import annotations

import importlib
from typing import Any


class _Later:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pytest asks everything in a module whether it is a test
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)


np = _Later("numpy")
integrate = _Later("scipy.integrate")
optimize = _Later("scipy.optimize")
stats = _Later("scipy.stats")
