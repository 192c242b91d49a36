"""A formula as the source text of a Python module that uses numpy, so that numba can compile it, or jax."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from dgsr.expressions.exports.identifiers import fresh
from dgsr.expressions.exports.source_code import Language, SourceCode, write_source
from dgsr.expressions.trees.evaluation import Functions
from dgsr.expressions.trees.trees import COMMON_FUNCTIONS, Tree


def _number(module: str, value: Any) -> str:
    # jax reads an integer with 32 bits.
    if isinstance(value, int) and (module != "jnp" or abs(value) < 2**31):
        return str(value)
    if math.isfinite(value):
        return repr(float(value))
    return f"{'-' if value < 0 else ''}{module}.{abs(float(value))}"


def _language(module: str) -> Language:
    """Return Python with a module that has numpy's interface."""
    functions = {name: f"{module}.{name}({{}})" for name in COMMON_FUNCTIONS}
    return Language(
        number=partial(_number, module),
        functions=functions | {"cot": f"(1/{module}.tan({{}}))"},
        pow="**",
        largest_product=1,
        reserved=frozenset((*keyword.kwlist, "__debug__", module, "float")),
        is_c=False,
    )


def to_python(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write a module with one function of numpy arrays; see `to_jax` for the parameters and errors."""
    function = _function(tree, names, functions, name, "np", "np.float64")
    # Numba does not know errstate. By this attribute it finds the function inside a decorated one.
    for_numba = f'{name}.__numba__ = "__wrapped__"  # for numba.njit({name})'
    return f'import numpy as np\n\n\n@np.errstate(all="ignore")\n{function}\n\n\n{for_numba}\n'


def to_jax(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write a module with one function of jax arrays.

    Parameters
    ----------
    tree : tree
        A formula whose variables are named x1 .. xd.
    names : sequence of str
        Names of the variables, which are turned into identifiers for the function's arguments.
    functions : mapping of str to UserOperator
    name : str
        Name of the function; ValueError if it cannot be one, or if a user-defined operator has no form to
        export.
    """
    function = _function(tree, names, functions, name, "jnp", "float")
    return f"import jax.numpy as jnp\n\n\n{function}\n"


def _function(
    tree: Tree, names: Sequence[str], functions: Functions, name: str, module: str, dtype: str
) -> str:
    """Return the text of the function, without a final line break."""
    language = _language(module)
    if not isinstance(name, str) or not name.isidentifier() or name in language.reserved:
        raise ValueError(f"name={name!r} cannot be a function in Python; write a word such as 'formula'.")
    source = write_source(tree, names, functions, name, language)
    text, *more = [line.replace("\\", r"\\").replace('"', r"\"") for line in source.comment]
    lines = [f'"""{text}', "", *more, '"""', *_statements(source, module, dtype)]
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"def {name}({', '.join(source.arguments)}):\n{body}"


def _statements(source: SourceCode, module: str, dtype: str) -> list[str]:
    """Return the lines of the function below its docstring."""
    value, shape = fresh("value", source.taken), fresh("shape", source.taken)
    is_broadcast = len(source.used) < len(source.arguments)
    lines = []
    if is_broadcast:
        shapes = ", ".join(f"{module}.shape({argument})" for argument in source.arguments)
        lines.append(f"{shape} = {module}.broadcast_shapes({shapes})")
    lines += [f"{argument} = {module}.asarray({argument}, dtype={dtype})" for argument in source.used]
    lines += [f"{operand} = {text}" for operand, text in source.lines]
    # A value that is an argument is copied, so that a caller who changes the result does not change the data.
    lines.append(f"{value} = {'+' if source.value in source.arguments else ''}{source.value}")
    result = value
    if source.checked:
        finite = " & ".join(f"{module}.isfinite({operand})" for operand in source.checked)
        result = f"{module}.where({finite}, {value}, {module}.nan)"
    if is_broadcast:
        result = f"{module}.broadcast_to({result}, {shape}).copy()"
    return [*lines, f"return {result}" + ("[()]" if result != value else "")]
