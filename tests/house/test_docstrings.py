"""Each name in double backquotes of a docstring exists, so that texts don't keep old names.

A name is looked up in the function (its arguments and what it uses), in its class and the class's
bases, in the classes of its arguments, in the module, and among what the package defines at the top
of a module. Names of figures, Python's own and the words below are known, too."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from program_source import PACKAGE as ROOT
from program_source import Parsed, modules

from iopstui.model.metrics.fields import FIELDS

QUOTED = re.compile(r"``([A-Za-z_][\w.]*\w)(?:\(\))?``")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function

FIO = """clat clat_ns job_runtime mixed setup_rate startdelay stddev stonewall thinktime thread
timestamp_ms verify"""
KERNEL = """block_bio_complete block_bio_queue block_getrq block_rq_complete block_rq_issue
block_rq_requeue cmd_flags iostats kworker max_sectors_kb read_ahead_kb"""
# words of the protocol between our own processes that no code spells out; a run's name in examples
# of lessons
WORDS = "alive beat deep go stop"
LIBRARIES = "choices main meta node_textfile_mtime_seconds null"
KINDS = (ast.Name, ast.Attribute, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
         ast.alias, ast.Constant)  # fmt: skip
OUTSIDE = {word for words in (FIO, KERNEL, WORDS, LIBRARIES) for word in words.split()}


class Source:
    """A module, with the names in it and the words of its strings."""

    def __init__(self, parsed: Parsed) -> None:
        self.tree = parsed.tree
        self.classes: list[ast.ClassDef] = []
        self.known: set[str] = set()
        names: list[tuple[int, str]] = []
        for node in parsed.nodes(*KINDS):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    names.append((node.lineno, name))
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.append((node.lineno, node.name))
                    self.classes += [node] if isinstance(node, ast.ClassDef) else []
                case ast.alias():
                    self.known.update((node.asname or node.name).split("."))
                case ast.Constant(value=str() | bytes() as value):
                    self.known.update(_words(value))
        self.top = {*self._top()}
        self.known |= self.top
        self._lines = sorted(names)

    def names(self, node: ast.AST) -> set[str]:
        """The names that a piece of code has or uses."""
        if isinstance(node, ast.Module):
            return {name for _, name in self._lines}
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        begin, end = bisect_left(self._lines, (first,)), bisect_right(self._lines, (last + 1,))
        return {name for _, name in self._lines[begin:end]}

    def _top(self) -> Iterator[str]:
        """What the module defines at its top, outside of functions and classes."""
        for node in self.tree.body:
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield node.name
                case ast.Assign(targets=targets):
                    parts = [part for target in targets for part in ast.walk(target)]
                    yield from (part.id for part in parts if isinstance(part, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield name


def _words(value: str | bytes) -> list[str]:
    """Strings that are single words: keys of JSON, orders. Not the words of sentences."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return [] if " " in text.strip() else re.findall(r"\w+", text)


@cache
def _sources() -> dict[Path, Source]:
    return {path: Source(parsed) for path, parsed in modules().items()}


@cache
def _classes() -> dict[str, list[tuple[Source, ast.ClassDef]]]:
    found: dict[str, list[tuple[Source, ast.ClassDef]]] = {}
    for source in _sources().values():
        for node in source.classes:
            found.setdefault(node.name, []).append((source, node))
    return found


@cache
def _members(name: str) -> frozenset[str]:
    """The names in the code of classes of this name and of their bases."""
    members: set[str] = set()
    for source, node in _classes().get(name, []):
        members |= source.names(node)
        for base in node.bases:
            part = base.value if isinstance(base, ast.Subscript) else base
            base_name = getattr(part, "id", getattr(part, "attr", name))
            members |= _members(base_name) if base_name != name else frozenset()
    return frozenset(members)


@cache
def _after_a_dot() -> frozenset[str]:
    """Members of classes, and names at the top of modules."""
    tops = (source.top for source in _sources().values())
    return frozenset().union(*map(_members, _classes()), *tops)


@cache
def _everywhere() -> frozenset[str]:
    """Names that are known in every docstring."""
    names = {*OUTSIDE, *dir(builtins), *keyword.kwlist, *sys.stdlib_module_names, *_classes()}
    for path, source in _sources().items():
        names.update(path.relative_to(ROOT.parent).with_suffix("").parts)
        # a lower-case word without underscore may mean anything
        names.update(name for name in source.top if "_" in name or name.isupper())
    names.update(part for field in FIELDS for part in re.findall(r"\w+", field.id))
    return frozenset(names)


def _docstrings(node: Documented) -> Iterator[str]:
    """The docstring of this node, and the docstrings of its constants and fields."""
    if text := ast.get_docstring(node):
        yield text
    for before, after in zip(node.body, node.body[1:], strict=False):
        match before, after:
            case ((ast.Assign() | ast.AnnAssign()), ast.Expr(ast.Constant(str() as text))):
                yield text


def _scope(source: Source, node: Documented) -> set[str]:
    """The names that this node's docstring may use, besides those of the surrounding code."""
    scope = source.names(node)
    match node:
        case ast.ClassDef():
            others = {node.name}
        case ast.Module():
            others = scope & _classes().keys()
        case _:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            others = {
                part.id
                for argument in arguments
                if argument.annotation is not None
                for part in ast.walk(argument.annotation)
                if isinstance(part, ast.Name)
            }
    return scope.union(*map(_members, others))


def _is_known(name: str, scope: set[str]) -> bool:
    first, *rest = name.split(".")
    # a placeholder: kernel.SOURCE.NAME
    if any(part.isupper() for part in rest):
        return True
    # the ending of a name
    if name[0] == "_" and any(known.endswith(name) for known in scope):
        return True
    if first in sys.stdlib_module_names and rest:
        return True
    return (first in scope or first in _everywhere() or first == "self") and all(
        part in scope or part in _everywhere() or part in _after_a_dot() for part in rest
    )


def unknown_names(source: Source) -> list[tuple[str, str]]:
    """Each function or class with a name in its docstrings that does not exist there."""

    def visit(node: Documented, around: set[str]) -> Iterator[tuple[str, str]]:
        words = QUOTED.findall(" ".join(_docstrings(node)))
        scope = around
        if words or isinstance(node, ast.ClassDef):
            scope = around | _scope(source, node)
        name = getattr(node, "name", "the module")
        yield from ((name, word) for word in words if not _is_known(word, scope))
        for part in node.body:
            if isinstance(part, ast.ClassDef | Function):
                yield from visit(part, source.known if isinstance(node, ast.Module) else scope)

    return [*visit(source.tree, source.known)]


def test_each_quoted_name_of_a_docstring_exists() -> None:
    unknown = [
        f"{path.relative_to(ROOT)}: {name}: ``{word}``"
        for path, source in _sources().items()
        for name, word in unknown_names(source)
    ]
    assert unknown == []


def test_a_stale_name_is_noticed() -> None:
    text = '''
class Run:
    """A run; ``began_at`` and ``ended`` are its times."""
    began: float
    ended: float
    def stop(self, seconds: float) -> None:
        """Stop after ``delay`` or ``seconds``, see ``json.dumps`` and ``Run.ended``."""
'''
    assert unknown_names(Source(Parsed(text))) == [("Run", "began_at"), ("stop", "delay")]
