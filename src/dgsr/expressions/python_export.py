"""A formula as the source text of a Python module that needs numpy alone, and that numba can compile."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

from dgsr.expressions.evaluation import Functions
from dgsr.expressions.identifiers import fresh
from dgsr.expressions.source_code import Language, SourceCode, write_source
from dgsr.expressions.trees import COMMON_FUNCTIONS, Tree


def _number(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(float(value)) if math.isfinite(value) else f"np.{float(value)}".replace("np.-", "-np.")


_PYTHON = Language(
    number=_number,
    functions={name: f"np.{name}({{}})" for name in COMMON_FUNCTIONS} | {"cot": "(1/np.tan({}))"},
    pow="**",
    largest_product=1,
    reserved=frozenset((*keyword.kwlist, "__debug__", "np", "float")),
    is_c=False,
)


def to_python(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write a module with one function of numpy arrays.

    Parameters
    ----------
    tree : tree
        A formula whose variables are named x1 .. xd.
    names : sequence of str
        What the variables are called; made identifiers for the function's arguments.
    functions : mapping of str to UserOperator
    name : str
        Name of the function that is written.

    Raises
    ------
    ValueError
        If `name` cannot be a function's name, or an operator of the user's own has no form to export.
    """
    if not isinstance(name, str) or not name.isidentifier() or name in _PYTHON.reserved:
        raise ValueError(f"name={name!r} cannot be a function in Python; write a word such as 'formula'.")
    source = write_source(tree, names, functions, name, _PYTHON)
    text, *more = [line.replace("\\", r"\\").replace('"', r"\"") for line in source.comment]
    lines = [f'"""{text}', "", *more, '"""', *_statements(source)]
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    function = f'@np.errstate(all="ignore")\ndef {name}({", ".join(source.arguments)}):\n{body}'
    # Numba has no errstate; this is where it looks for the function that a decorator hides.
    for_numba = f'{name}.__numba__ = "__wrapped__"  # for numba.njit({name})'
    return f"import numpy as np\n\n\n{function}\n\n\n{for_numba}\n"


def _statements(source: SourceCode) -> list[str]:
    """Return the lines of the function below its docstring."""
    value, shape = fresh("value", source.taken), fresh("shape", source.taken)
    is_broadcast = len(source.used) < len(source.arguments)
    lines = []
    if is_broadcast:
        shapes = ", ".join(f"np.shape({argument})" for argument in source.arguments)
        lines.append(f"{shape} = np.broadcast_shapes({shapes})")
    lines += [f"{argument} = np.asarray({argument}, dtype=np.float64)" for argument in source.used]
    lines += [f"{operand} = {text}" for operand, text in source.lines]
    # The result is a copy of the argument, because callers who change it must not change their data.
    lines.append(f"{value} = {'+' if source.value in source.arguments else ''}{source.value}")
    result = value
    if source.checked:
        finite = " & ".join(f"np.isfinite({operand})" for operand in source.checked)
        result = f"np.where({finite}, {value}, np.nan)"
    if is_broadcast:
        result = f"np.broadcast_to({result}, {shape}).copy()"
    return [*lines, f"return {result}" + ("[()]" if result != value else "")]
