"""Modules of the standard library that others of it import without needing them here.

``dataclasses`` looks with ``inspect`` at classes that have no docstring, ``urllib.parse`` (which
``pathlib`` takes) with ``ipaddress`` at addresses in brackets: a fifteenth of what a run loads.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def load_later(*names: str) -> None:
    """Whoever imports one of these gets what stands for it, and it is read when something of it is
    first asked for. What is loaded already stays. (With importlib's own LazyLoader a plain
    ``import`` of the module would read it before Python 3.12.)"""
    for name in names:
        sys.modules.setdefault(name, _Later(name))


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        # reached for what is not there yet: from now on it has all that the module has
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        module = importlib.import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)
