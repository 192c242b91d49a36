"""A formula as a torch module, whose constants can be trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.expressions.exports import HIDDEN, OPERANDS, form_of
from dgsr.expressions.expression import Expression
from dgsr.expressions.syntax import Tree

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "square": lambda a: a * a,
    "cube": lambda a: a * a * a,
    "cot": lambda a: 1.0 / torch.tan(a),
    **{
        name: getattr(torch, name)
        for name in (
            "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "abs",
            "arcsin", "arccos", "arctan",
        )
    },
}  # fmt: skip


class FormulaModule(nn.Module):
    """One equation; `Expression.to_torch` makes it.

    Parameters
    ----------
    expression : Expression

    Attributes
    ----------
    constants : nn.Parameter of shape (n_constants,), float64
        In the order of `Expression.constants`.

    Raises
    ------
    ValueError
        If an operator of the user's own has no sympy form.

    Notes
    -----
    A whole number that is the exponent of ``pow`` gets no gradient: for another one, negative bases have no
    power. Where the formula is undefined the gradients are NaN, so leave such rows out before the call.
    """

    def __init__(self, expression: Expression) -> None:
        super().__init__()
        self._expression = expression
        used = {expression.library.tokens[token].name for token in expression.tokens}
        self._forms = {
            name: form_of(operator) for name, operator in expression.library.functions.items() if name in used
        }
        self.constants = nn.Parameter(torch.tensor(expression.constants, dtype=torch.float64))
        self._fixed = _whole_exponents(expression)

    def forward(self, X: Tensor) -> Tensor:
        """Predict.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_features)

        Returns
        -------
        Tensor of shape (n_samples,)
            Not finite where the equation is undefined.

        Raises
        ------
        ValueError
            If `X` has another number of dimensions, or fewer columns than the equation uses.
        """
        library = self._expression.library
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; give (n_samples, n_features).")
        if not X.is_floating_point():
            X = X.to(torch.float64)
        next_constant = len(self.constants)
        stack: list[Tensor] = []
        for token in reversed(self._expression.tokens.tolist()):
            entry = library.tokens[token]
            if entry.name == "const":
                next_constant -= 1
                constant = self.constants[next_constant]
                stack.append(constant.detach() if next_constant in self._fixed else constant)
            elif entry.arity == 0:
                column = token - library.first_variable
                if column >= X.shape[1]:
                    raise ValueError(
                        f"X has {X.shape[1]} features; the expression uses feature {column + 1}."
                    )
                stack.append(X[:, column])
            else:
                stack.append(self._operate(entry.name, [stack.pop() for _ in range(entry.arity)]))
        return stack[0].expand(len(X))

    def _operate(self, name: str, operands: list[Tensor]) -> Tensor:
        if name == "inv":
            return self._operate("div", [torch.ones_like(operands[0]), operands[0]])
        if name in self._forms:
            result = _value(self._forms[name], dict(zip(OPERANDS, operands)))
            hidden = tuple(range(len(operands)))
        else:
            result = _FUNCTIONS[name](*operands)
            hidden = HIDDEN.get(name, ())
        # What is infinite on the way is not finite in the end, as in the compiled evaluator.
        for place in hidden:
            result = result + 0.0 * operands[place]
        return result

    @property
    def expression(self) -> Expression:
        """The equation with the constants as they are now."""
        constants = self.constants.detach().cpu().numpy().astype(np.float64)
        known = self._expression
        return Expression(known.library, known.tokens, constants, known.feature_names)

    def extra_repr(self) -> str:
        return self.expression.text


def _whole_exponents(expression: Expression) -> frozenset[int]:
    """Return which constants are whole numbers that something is raised to."""
    found = []
    next_constant = len(expression.constants)
    stack: list[int] = []  # of each operand its constant, or -1
    for token in reversed(expression.tokens.tolist()):
        entry = expression.library.tokens[token]
        operands = [stack.pop() for _ in range(entry.arity)]
        if entry.name == "const":
            next_constant -= 1
        if entry.name == "pow" and operands[1] >= 0 and expression.constants[operands[1]] % 1 == 0:
            found.append(operands[1])
        stack.append(next_constant if entry.name == "const" else -1)
    return frozenset(found)


def _value(tree: Tree, operands: Mapping[str, Tensor]) -> Any:
    if isinstance(tree, str):
        return operands[tree]
    if not isinstance(tree, tuple):
        return tree
    return _FUNCTIONS[tree[0]](*[_value(child, operands) for child in tree[1:]])
