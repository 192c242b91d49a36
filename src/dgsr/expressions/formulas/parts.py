"""The unknown functions and constants of a form, as a formula of that form has them."""

from __future__ import annotations

from collections.abc import Callable

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.form import Form
from dgsr.kernels.forms import NAMED, TOKEN

# Tokens and constants.
_Text = tuple[list[int], list[float]]


def parts_of(expression: Expression, form: Form) -> dict[str, str]:
    """Return the texts of the functions, each with the arguments of its first use, and of the constants.

    A constant that the formula lacks, in an argument that its function does not use, is shown by its name and
    has no text. Neither has a constant of the form with a value for each group. The result is empty for a
    formula of another form.

    Examples
    --------
    >>> from dgsr.expressions import get_library
    >>> library = get_library("koza-const", 2)
    >>> formula = Expression.from_text("exp(x1) - exp(x2)", library)
    >>> parts_of(formula, Form("f(x1) - f(x2)", library))
    {'f(x1)': 'exp(x1)'}
    """
    parts = form.read(expression.tokens, expression.constants)
    if parts is None:
        return {}
    part_of, letters = [-1] * len(expression.constants), tuple[str, ...]()
    if isinstance(expression, GroupedExpression):
        part_of, letters = expression.by_group.part_of.tolist(), expression.by_group.names
    of_program = [
        letters[part] if part >= 0 else value for part, value in zip(part_of, expression.constants.tolist())
    ]
    values: dict[int, float | str] = dict(enumerate(form.constants))
    values |= dict(zip(parts.origins.tolist(), of_program))
    names = [*dict.fromkeys([*expression.feature_names, *form.constants, *letters])]
    library = form.library.with_variables(len(names))

    def leaf(value: float | str) -> _Text:
        """Return a number, or a symbol for the name of one."""
        if isinstance(value, str):
            return [library.first_variable + names.index(value)], []
        return [form.tokens.constant], [value]

    found, at = {}, form.n_outside
    for f, (name, tree) in enumerate(zip(form.functions, parts.functions)):
        call = form.code.functions.tolist().index(f)
        arguments = [_argument(form, call, j, values, leaf) for j in range(form.n_arguments[f])]
        shown = ", ".join(str(Expression(library, *argument, names)) for argument in arguments)
        tokens, constants = list[int](), list[float]()
        for token in tree:
            its_tokens, its_constants = [token], list[float]()
            if token >= form.tokens.first_variable:
                its_tokens, its_constants = arguments[token - form.tokens.first_variable]
            elif token == form.tokens.constant:
                its_tokens, its_constants = leaf(values[at])
                at += 1
            tokens, constants = tokens + its_tokens, constants + its_constants
        found[f"{name}({shown})"] = str(Expression(library, tokens, constants, names))
    texts = {name: str(Expression(library, *leaf(values[i]), names)) for i, name in enumerate(form.constants)}
    return found | {name: text for name, text in texts.items() if text != name}


def with_names_in(form: Form, expression: Expression) -> Expression:
    """Return a formula whose constants by group are called as the form calls them, or by other free names.

    Examples
    --------
    >>> import numpy as np
    >>> from dgsr.expressions import get_library
    >>> from dgsr.expressions.formulas.grouped import ByGroup
    >>> library = get_library("koza-const", 2)
    >>> plain = Expression.from_text("0.5*exp(x1) + 2.5", library)
    >>> by_group = ByGroup.of_values(1, ("A", "B"), np.array([-1, 0]), np.array([[2.0, 3.0]]))
    >>> formula = GroupedExpression(library, plain.tokens, plain.constants, by_group)
    >>> formula.text, with_names_in(Form("a*exp(x1) + b", library), formula).text
    ('0.5*exp(x1) + a', '0.5*exp(x1) + b')
    """
    parts = form.read(expression.tokens, expression.constants)
    if not isinstance(expression, GroupedExpression) or parts is None:
        return expression
    by_group = expression.by_group
    origins = dict(zip(by_group.part_of.tolist(), parts.origins.tolist()))
    free = expression.free_names(len(by_group.values), form.constants)
    names = [
        form.constants[origins[part]] if 0 <= origins[part] < len(form.constants) else name
        for part, name in enumerate(free)
    ]
    return expression.with_groups(by_group._replace(names=tuple(names)))


def _argument(
    form: Form,
    call: int,
    argument: int,
    values: dict[int, float | str],
    leaf: Callable[[float | str], _Text],
) -> _Text:
    """Return the tokens and the constants of an argument of an application."""
    tokens, constants = list[int](), list[float]()
    for kind, n in form.arguments[call][argument]:
        its_tokens, its_constants = [n], list[float]()
        if kind != TOKEN:
            its_tokens, its_constants = leaf(values[n] if kind == NAMED else form.code.numbers.tolist()[n])
        tokens, constants = tokens + its_tokens, constants + its_constants
    return tokens, constants
