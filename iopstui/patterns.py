"""Regular expressions that cost nothing at the start: each is compiled when it is first used.

Compiling the sixty that the screen's modules name took as long as reading ten of their files, and
most of them look at what a start never sees: a job file, an error of fio, an odd device.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As ``re.compile``, for patterns whose methods are called; the functions of ``re`` don't take
    it. What is wrong with it is raised at its first use, so each needs a test that uses it."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


class _Later:
    def __init__(self, text: Any, flags: int) -> None:
        self._given = (text, flags)

    def __getattr__(self, name: str) -> Any:
        # reached for what is not there yet: from now on the methods are its own
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
