"""A formula as a torch module, whose constants can be trained."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import tree_of_tokens
from dgsr.expressions.trees.evaluation import ARITHMETIC, HIDDEN_OPERANDS
from dgsr.expressions.trees.trees import COMMON_FUNCTIONS, Tree, nodes
from dgsr.expressions.trees.user_operators import OPERANDS

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    **{name: getattr(torch, name) for name in COMMON_FUNCTIONS},
    "pow": operator.pow,
    "cot": lambda a: 1.0 / torch.tan(a),
}


class FormulaModule(nn.Module):
    """One equation; `Expression.to_torch` makes it.

    Parameters
    ----------
    library : Library
    tokens : ndarray of shape (length,), int64
        The program in prefix order.
    constants : ndarray of shape (n_constants,), float64
    with_constants : callable
        Returns the `Expression` of the same program with other constants.

    Attributes
    ----------
    constants : nn.Parameter of shape (n_constants,), float64
        The numbers of the formula, in the order of `Expression.constants`.

    Raises
    ------
    ValueError
        If a user-defined operator has no sympy form.

    Notes
    -----
    A whole number that is the exponent of ``pow`` gets no gradient, since powers of negative bases exist for
    whole exponents only. Where the formula is undefined the gradients are NaN, so leave such rows out before
    the call.
    """

    def __init__(
        self,
        library: Library,
        tokens: np.ndarray,
        constants: np.ndarray,
        with_constants: Callable[[np.ndarray], Any],
    ) -> None:
        super().__init__()
        self._variables = {name: i for i, name in enumerate(library.variable_names)}
        # A constant is a node with its index.
        self._tree = tree_of_tokens(library, tokens, [("const", i) for i in range(len(constants))])
        self._with_constants = with_constants
        self._forms = _forms(library, tokens)
        self.constants = nn.Parameter(torch.tensor(constants, dtype=torch.float64))
        exponents = [node[2] for node in nodes(self._tree) if node[0] == "pow"]
        places = [exponent[1] for exponent in exponents if exponent[0] == "const"]
        self._fixed = {place for place in places if constants[place] % 1 == 0}

    def forward(self, X: Tensor) -> Tensor:
        """Predict.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_features)
            ValueError if it has another number of dimensions, or fewer columns than the equation uses.

        Returns
        -------
        Tensor of shape (n_samples,)
            Not finite where the equation is undefined.
        """
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; give (n_samples, n_features).")
        if not X.is_floating_point():
            X = X.to(torch.float64)
        return self._value(self._tree, X).expand(len(X))

    def _value(self, tree: Tree, X: Tensor) -> Any:
        if isinstance(tree, str):
            column = self._variables[tree]
            if column >= X.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features; the expression uses feature {column + 1}.")
            return X[:, column]
        if not isinstance(tree, tuple):
            return tree
        if tree[0] == "const":
            constant = self.constants[tree[1]]
            return constant.detach() if tree[1] in self._fixed else constant
        operands = [self._value(child, X) for child in tree[1:]]
        hidden = HIDDEN_OPERANDS.get(tree[0], ())
        if tree[0] in self._forms:
            result = _form_value(self._forms[tree[0]], dict(zip(OPERANDS, operands)))
            hidden = tuple(range(len(operands)))
        else:
            result = _FUNCTIONS[tree[0]](*operands)
        # As in the compiled evaluator, an infinite intermediate value makes the result not finite.
        for place in hidden:
            result = result + 0.0 * operands[place]
        return result

    @property
    def expression(self) -> Any:
        """The `Expression` with the present values of the constants."""
        return self._with_constants(self.constants.detach().cpu().numpy().astype(np.float64))

    def extra_repr(self) -> str:
        return self.expression.text


def _forms(library: Library, tokens: np.ndarray) -> dict[str, Tree]:
    """Return the trees of the user-defined operators that a program uses."""
    used = {library.tokens[token].name for token in tokens} & set(library.functions)
    if not used:
        return {}
    # This is imported here, since most formulas need no sympy, which takes half a second to import.
    from dgsr.expressions.exports.symbolic import form_of

    return {name: form_of(library.functions[name]) for name in used}


def _form_value(tree: Tree, operands: Mapping[str, Tensor]) -> Any:
    if isinstance(tree, str):
        return operands[tree]
    if not isinstance(tree, tuple):
        return tree
    return _FUNCTIONS[tree[0]](*[_form_value(child, operands) for child in tree[1:]])
