"""A formula as the source text of a C99 function."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from dgsr.expressions.exports.identifiers import C_MACROS
from dgsr.expressions.exports.source_code import Language, write_source
from dgsr.expressions.trees.evaluation import Functions
from dgsr.expressions.trees.trees import COMMON_FUNCTIONS, SHORT_NAMES, Tree

# Words of C that are no names of arguments: keywords, names in math.h, and names that compilers define.
_WORDS = """
    alignas alignof auto bool break case char const constexpr continue default do double else enum extern
    false float for goto if inline int long nullptr register restrict return short signed sizeof static
    static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile
    while asm fortran main linux unix i386
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1
    fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround
    log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo
    rint round scalb scalbln scalbn signgam significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal
    isunordered signbit issignaling iscanonical iszero issubnormal iseqsig math_errhandling double_t float_t
    NAN INFINITY SNAN HUGE HUGE_VAL HUGE_VALF HUGE_VALL MAXFLOAT DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS
    X_TLOSS EDOM ERANGE
"""


def _number(value: Any) -> str:
    if math.isfinite(value):
        return repr(float(value))  # the shortest text that is read back as the same number
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"


_C = Language(
    number=_number,
    functions={name: f"{SHORT_NAMES.get(name, name)}({{}})" for name in COMMON_FUNCTIONS}
    | {"abs": "fabs({})", "cot": "(1.0/tan({}))"},
    pow="pow({}, {})",
    largest_product=4,
    reserved=frozenset(_WORDS.split()),
    is_c=True,
)


def to_c(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write C99 source with one function of doubles; see `python_export.to_jax` for parameters and errors."""
    is_word = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
    if not is_word or name in _C.reserved or C_MACROS.fullmatch(name):
        raise ValueError(f"name={name!r} cannot be a function in C; write a word such as 'formula'.")
    source = write_source(tree, names, functions, name, _C)
    comment = "\n   ".join([*source.comment, "Not to be compiled with -ffast-math."])
    comment = comment.encode("ascii", "backslashreplace").decode().replace("*/", "* /").replace("/*", "/ *")
    lines = [f"(void){argument};" for argument in source.arguments if argument not in source.used]
    lines += [f"const double {operand} = {text};" for operand, text in source.lines]
    value = source.value
    if source.checked:
        finite = " && ".join(f"isfinite({operand})" for operand in source.checked)
        value = f"{finite} ? {value} : NAN"
    lines.append(f"return {value};")
    body = "\n".join(f"    {line}" for line in lines)
    parameters = ", ".join(f"double {argument}" for argument in source.arguments)
    return f"#include <math.h>\n\n/* {comment} */\ndouble {name}({parameters})\n{{\n{body}\n}}\n"
