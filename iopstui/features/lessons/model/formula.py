"""Formulas over measured figures: the small expression language of lessons.

Numbers, names ("deep.iops"), + - * /, comparisons, and/or/not, abs, min, max, known; nothing else,
so a lesson file can do no harm. A figure that was not measured makes the result unknown (``None``),
never an error; ``and`` and ``or`` still decide if their other parts suffice."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

MAX_LENGTH = 500
Value = float | str | bool
Lookup = Callable[[str], "Value | None"]

# figures are in ns, bytes and plain counts: these make literals readable
CONSTANTS: Mapping[str, Value] = {
    "true": True, "false": False,
    "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
    "k": 1e3, "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3,
}  # fmt: skip
_MATH: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_VARIADIC: Mapping[str, Callable[..., float]] = {"min": min, "max": max}
FUNCTIONS = ("abs", "known", *_VARIADIC)


class FormulaError(ValueError):
    """A mistake in a formula, described in words."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula. ``text`` is the source; ``names`` are all figures it uses."""

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(repr=False, compare=False)

    @property
    def name(self) -> str | None:
        """The figure's name, if the formula is only a figure."""
        return _dotted_name(self._tree)

    def value(self, lookup: Lookup) -> Value | None:
        """The result, with the values that ``lookup`` has for the figures; ``None``: unknown."""
        return _evaluate(self._tree, lookup)

    def as_boolean(self, lookup: Lookup) -> bool | None:
        """The result as True, False or ``None`` (unknown); a number is unknown, too."""
        value = self.value(lookup)
        return value if isinstance(value, bool) else None


def parse_formula(text: str) -> Formula:
    """Parse a formula. FormulaError for anything else."""
    bare = " ".join(text.split())
    if not bare:
        raise FormulaError("the formula is empty")
    if len(bare) > MAX_LENGTH:
        raise FormulaError(f"the formula is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(bare, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"{bare!r} is not a formula: {_syntax_problem(bare, error)}") from None
    try:
        names = frozenset(_names(tree, bare))
    except RecursionError:
        raise FormulaError(f"{bare[:40]!r}... is nested too deeply") from None
    return Formula(bare, names, tree)


def _syntax_problem(text: str, error: Exception) -> str:
    if re.search(r"(?<![<>=!])=(?!=)", text):
        return "equal is written =="
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return message or "it can't be read"


def _names(node: ast.expr, text: str) -> Iterator[str]:
    """All figures that the formula uses. Raises FormulaError for anything the language does not
    have."""
    if isinstance(node, ast.Constant):
        _check_constant(node, text)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = _dotted_name(node)
        if name is None:
            raise FormulaError(f"{text!r}: only names can have a dot after them")
        if name in FUNCTIONS:
            raise FormulaError(f"{text!r}: {name} needs its arguments in ( )")
        if name not in CONSTANTS:
            yield name
    else:
        for part in _operands(node, text):
            yield from _names(part, text)


def _operands(node: ast.expr, text: str) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in _MATH:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd, ast.Not)):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Compare):
        for op in node.ops:
            if type(op) not in _ORDER and not isinstance(op, (ast.Eq, ast.NotEq)):
                raise FormulaError(f"{text!r}: compare with < <= > >= == !=")
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        return _arguments(node, text)
    raise FormulaError(
        f"{text!r}: a formula has numbers, names, + - * /, comparisons, and, or, not, "
        f"{', '.join(FUNCTIONS)}"
    )


def _arguments(node: ast.Call, text: str) -> list[ast.expr]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS:
        raise FormulaError(f"{text!r}: the functions are {', '.join(FUNCTIONS)}")
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise FormulaError(f"{text!r}: {name} takes plain values")
    if name in _VARIADIC:
        if len(node.args) < 2:
            raise FormulaError(f"{text!r}: {name} takes two values or more")
    elif len(node.args) != 1:
        raise FormulaError(f"{text!r}: {name} takes one value")
    return node.args


def _check_constant(node: ast.Constant, text: str) -> None:
    if isinstance(node.value, (bool, str)):
        return
    if isinstance(node.value, (int, float)):
        try:
            if math.isfinite(float(node.value)):
                return
        except OverflowError:
            pass
        raise FormulaError(f"{text[:40]!r}: a number is too large")
    raise FormulaError(f"{text!r}: {node.value!r} is neither a number nor a text")


def _dotted_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted_name(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _evaluate(node: ast.expr, lookup: Lookup) -> Value | None:
    if isinstance(node, ast.Constant):
        return _real_number(node.value)  # type: ignore[arg-type]
    name = _dotted_name(node)
    if name is not None:
        return CONSTANTS[name] if name in CONSTANTS else _real_number(lookup(name))
    if isinstance(node, ast.BinOp):
        return _evaluate_arithmetic(node, lookup)
    if isinstance(node, ast.UnaryOp):
        return _evaluate_unary(node, lookup)
    if isinstance(node, ast.BoolOp):
        return _evaluate_boolean(node, lookup)
    if isinstance(node, ast.Compare):
        return _evaluate_comparison(node, lookup)
    assert isinstance(node, ast.Call)
    return _call_function(node, lookup)


def _real_number(value: Value | None) -> Value | None:
    """Numbers are floats, and only real ones."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return float(value) if math.isfinite(value) else None


def _number(value: Value | None) -> float | None:
    return None if value is None or isinstance(value, (bool, str)) else value


def _evaluate_arithmetic(node: ast.BinOp, lookup: Lookup) -> float | None:
    left, right = _number(_evaluate(node.left, lookup)), _number(_evaluate(node.right, lookup))
    if left is None or right is None:
        return None
    try:
        result = _MATH[type(node.op)](left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def _evaluate_unary(node: ast.UnaryOp, lookup: Lookup) -> Value | None:
    value = _evaluate(node.operand, lookup)
    if isinstance(node.op, ast.Not):
        return not value if isinstance(value, bool) else None
    number = _number(value)
    return -number if number is not None and isinstance(node.op, ast.USub) else number


def _evaluate_boolean(node: ast.BoolOp, lookup: Lookup) -> bool | None:
    """Three-valued: one False decides an ``and``, one True an ``or``."""
    decisive = isinstance(node.op, ast.Or)
    values = [_evaluate(part, lookup) for part in node.values]
    if any(value is decisive for value in values):
        return decisive
    return not decisive if all(isinstance(value, bool) for value in values) else None


def _evaluate_comparison(node: ast.Compare, lookup: Lookup) -> bool | None:
    values = [_evaluate(part, lookup) for part in (node.left, *node.comparators)]
    results = [_compare(op, values[n], values[n + 1]) for n, op in enumerate(node.ops)]
    if any(result is False for result in results):
        return False
    return None if any(result is None for result in results) else True


def _compare(op: ast.cmpop, left: Value | None, right: Value | None) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)):
        is_equal = left == right and _type_of(left) is _type_of(right)
        return is_equal if isinstance(op, ast.Eq) else not is_equal
    left_number, right_number = _number(left), _number(right)
    return (
        None
        if left_number is None or right_number is None
        else _ORDER[type(op)](left_number, right_number)
    )


def _type_of(value: Value) -> type:
    return type(value)


def _call_function(node: ast.Call, lookup: Lookup) -> Value | None:
    assert isinstance(node.func, ast.Name)
    values = [_evaluate(part, lookup) for part in node.args]
    if node.func.id == "known":
        return values[0] is not None
    numbers = [_number(value) for value in values]
    present = [number for number in numbers if number is not None]
    if len(present) < len(numbers):
        return None
    return abs(present[0]) if node.func.id == "abs" else _VARIADIC[node.func.id](*present)
