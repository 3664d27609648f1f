"""Modules of the standard library that others of it import without needing them here.

``dataclasses`` looks with ``inspect`` at classes that have no docstring, ``urllib.parse`` with
``ipaddress`` at addresses in brackets; ``pathlib`` takes that for addresses of files, ``ntpath``
for Windows; ``argparse`` looks for translations of its words, which no system has, with
``gettext``, that and ``subprocess`` at the terminal's language with ``locale``; ``shutil`` looks
whether there are ``bz2`` and ``lzma``: a tenth of what a run loads.
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
        _stand_in(name, {})


def load_what_runs_need_later() -> None:
    """All of those in the module's first lines. Before ``argparse`` and ``pathlib`` are loaded."""
    load_later("bz2", "inspect", "ipaddress", "locale", "lzma", "ntpath")
    _stand_in("gettext", {"gettext": _as_written, "ngettext": _as_counted})
    if sys.version_info < (3, 13):  # later ones' pathlib asks for it when it needs it
        _stand_in("urllib.parse", {"quote_from_bytes": _quote_from_bytes})


def load_without(name: str, absent: str) -> None:
    """Load the module ``name`` as where Python was built without ``absent``, which it has to be
    able to do without. Where either is loaded already, as ever. Nobody who imports ``absent``
    afterwards notices."""
    if name in sys.modules or absent in sys.modules:
        importlib.import_module(name)
        return
    sys.modules[absent] = None  # type: ignore[assignment]  # so says the import system
    try:
        importlib.import_module(name)
    finally:
        del sys.modules[absent]


def _stand_in(name: str, has: dict[str, Any]) -> None:
    if name in sys.modules:
        return
    module = sys.modules[name] = _Later(name)
    vars(module).update(has)
    package, _, last = name.rpartition(".")
    if package:
        # as import does with one that it has read
        setattr(importlib.import_module(package), last, module)


def _as_written(text: str) -> str:
    return text


def _as_counted(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _quote_from_bytes(data: bytes, safe: str | bytes = "/") -> str:
    from urllib.parse import unquote  # noqa: F401  # what it has not yet: so all of it is read

    quoted: str = sys.modules["urllib.parse"].quote_from_bytes(data, safe)
    return quoted


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # whoever imports something from it asks whether it is a package
            raise AttributeError(name)
        # reached for what is not there yet: from now on it has all that the module has
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        module = importlib.import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)
