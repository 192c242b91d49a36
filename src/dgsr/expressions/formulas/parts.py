"""The unknown functions and constants of a form, as a formula of that form has them."""

from __future__ import annotations

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.form import Form
from dgsr.kernels.forms import NAMED, TOKEN


def parts_of(expression: Expression, form: Form) -> dict[str, str]:
    """Return the texts of the functions, each with the arguments of its first use, and of the constants.

    A constant that the formula lacks, in an argument that its function does not use, is shown by its name and
    has no text. The result is empty for a formula of another form.

    Examples
    --------
    >>> from dgsr.expressions import get_library
    >>> library = get_library("koza-const", 2)
    >>> formula = Expression.from_text("exp(x1) - exp(x2)", library)
    >>> parts_of(formula, Form("f(x1) - f(x2)", library))
    {'f(x1)': 'exp(x1)'}
    """
    parts = form.read(expression.tokens.tolist())
    if parts is None:
        return {}
    values = dict(zip(parts.origins.tolist(), expression.constants.tolist()))
    names = [*expression.feature_names, *form.constants]
    library = form.library.with_variables(len(names))
    found, at = {}, form.n_outside
    for f, (name, tree) in enumerate(zip(form.functions, parts.functions)):
        call = form.code.functions.tolist().index(f)
        arguments = [_argument(form, call, j, values) for j in range(form.n_arguments[f])]
        shown = ", ".join(str(Expression(library, *argument, names)) for argument in arguments)
        tokens, constants = list[int](), list[float]()
        for token in tree:
            if token >= form.tokens.first_variable:
                its_tokens, its_constants = arguments[token - form.tokens.first_variable]
                tokens, constants = tokens + its_tokens, constants + its_constants
                continue
            tokens.append(token)
            if token == form.tokens.constant:
                constants.append(values[at])
                at += 1
        found[f"{name}({shown})"] = str(Expression(library, tokens, constants, names))
    constant = [form.tokens.constant]
    return found | {
        name: str(Expression(library, constant, [values[i]]))
        for i, name in enumerate(form.constants)
        if i in values
    }


def _argument(
    form: Form, call: int, argument: int, values: dict[int, float]
) -> tuple[list[int], list[float]]:
    """Return the tokens and the constants of an argument of an application."""
    begin, end = form.code.arguments[call, argument : argument + 2].tolist()
    tokens, constants = list[int](), list[float]()
    for kind, n in zip(form.code.kinds[begin:end].tolist(), form.code.values[begin:end].tolist()):
        if kind == TOKEN or (kind == NAMED and n not in values):
            tokens.append(n if kind == TOKEN else len(form.library) + n)  # constants follow the columns
            continue
        tokens.append(form.tokens.constant)
        constants.append(values[n] if kind == NAMED else form.code.numbers.tolist()[n])
    return tokens, constants
