"""A program in the forms that people use: text, sympy, LaTeX, source code and a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dgsr.expressions.exports.c_export import to_c
from dgsr.expressions.exports.python_export import to_jax, to_python
from dgsr.expressions.formulas.common_forms import outermost_named
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import (
    from_program,
    in_operators_of,
    places_of_constants,
    to_program,
)
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees import syntax
from dgsr.expressions.trees.evaluation import Functions, evaluate_strictly
from dgsr.expressions.trees.simple_numbers import DIGITS_OF_FAR, DIGITS_SHOWN, is_far, recognised
from dgsr.expressions.trees.trees import Tree, rename

if TYPE_CHECKING:
    import sympy as sympy_module

    from dgsr.expressions.exports.torch_export import FormulaModule

# Digits beyond the requested ones that a number may have and still be printed in full.
_FEW_MORE = 3


class Expression:
    """One equation.

    Parameters
    ----------
    library : Library
    tokens : array-like of shape (length,), int
        The program: token ids in prefix order, without padding.
    constants : array-like of shape (n_constants,), float
        Values of the ``const`` tokens in the order of the program; surplus values are ignored.
    feature_names : sequence of str, optional
        Names of the variables in text and sympy; x1 .. xd by default.

    Raises
    ------
    ValueError
        If the tokens are not one complete program, there are too few constants or names, or a name is
        repeated.

    Examples
    --------
    >>> from dgsr.expressions import get_library
    >>> expression = Expression.from_text("a*sin(b)", get_library("koza", 2), ["a", "b"])
    >>> print(expression)
    a*sin(b)
    >>> expression.complexity
    6
    """

    def __init__(
        self,
        library: Library,
        tokens: np.ndarray | Sequence[int],
        constants: np.ndarray | Sequence[float] = (),
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.library = library
        self.tokens = np.array(tokens, dtype=np.int64)
        self.feature_names = _names(library, feature_names)
        constants = np.asarray(constants, dtype=np.float64)
        self._tree = from_program(library, self.tokens, constants)
        n_constants = np.count_nonzero(self.tokens == library.index.get("const", -1))
        self.constants = constants[:n_constants].copy()
        self.tokens.setflags(write=False)
        self.constants.setflags(write=False)

    @classmethod
    def from_text(cls, text: str, library: Library, feature_names: Sequence[str] | None = None) -> Expression:
        """Read a formula with `dgsr.expressions.trees.syntax.parse`; nothing in the text is executed.

        Parameters
        ----------
        text : str
        library : Library
        feature_names : sequence of str, optional
            Names of the variables in `text`; x1 .. xd by default.

        Raises
        ------
        ValueError
            If the text cannot be read, or the library lacks tokens for it.
        """
        names = _names(library, feature_names)
        tree = syntax.parse(text, names, library.functions)
        tree = rename(tree, dict(zip(names, library.variable_names)))
        return cls.from_tree(in_operators_of(library, tree), library, feature_names)

    @classmethod
    def from_tree(
        cls, tree: Tree, library: Library, feature_names: Sequence[str] | None = None
    ) -> Expression:
        """Return the formula of a tree over x1 .. xd; ValueError if the library lacks tokens for it."""
        return cls(library, *to_program(tree, library, _names(library, feature_names)), feature_names)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Predict.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Not finite where the equation is undefined.
        """
        # These are imported here, so that formulas can be read and written without loading numba.
        from dgsr.kernels.evaluate import predictions
        from dgsr.kernels.programs import Programs

        columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        table = self.library.table
        if columns.ndim != 2:
            raise ValueError(f"X has {columns.ndim} dimensions; give (n_samples, n_features).")
        used = self.tokens[self.tokens >= self.library.first_variable]
        n_needed = int(table.argument[used].max(initial=-1)) + 1
        if len(columns) < n_needed:
            raise ValueError(f"X has {len(columns)} features; the expression uses {n_needed}.")
        # The arrays are copied, since the kernel would be compiled again for the type of read-only arrays.
        program = Programs(self.tokens[None].copy(), np.array([self.length]), self.constants[None].copy())
        return predictions(program, table, columns)[0]

    def with_feature_names(self, feature_names: Sequence[str] | None) -> Expression:
        """Return the same equation with other names of its variables."""
        return Expression(self.library, self.tokens, self.constants, feature_names)

    def with_constants(self, constants: np.ndarray | Sequence[float]) -> Expression:
        """Return the same program with other values of its constants."""
        return Expression(self.library, self.tokens, constants, self.feature_names)

    def shortened(self, digits: int = DIGITS_SHOWN) -> Expression:
        """Return the equation with its constants rounded to `digits` significant digits.

        A number with a few more digits, such as 1013.25, keeps them. A large number keeps all digits before
        the decimal point and one more, and an origin of a column, as in x - 1700012345, twelve digits, since
        the rest of the formula may be small in comparison.
        """
        constants = self.constants.tolist()
        columns = (column for _, column in places_of_constants(self.library, self.tokens))
        kept = [
            DIGITS_OF_FAR if column >= 0 and is_far(value) else _digits_shown(value, digits)
            for column, value in zip(columns, constants)
        ]
        return self.with_constants([float(f"{value:.{n}g}") for value, n in zip(constants, kept)])

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @property
    def complexity(self) -> int:
        """C(f) of the paper, appendix "Evaluation Metrics": the sum of the tokens' complexities."""
        return int(self.library.table.complexity[self.tokens].sum())

    @property
    def common_forms(self) -> tuple[tuple[str, str], ...]:
        """Names of the common forms of single columns that the formula has, each with its column.

        ``12.3*S/(6.7 + S)`` has the form of Michaelis and Menten. Parts within such a part are not examined.
        """
        if not self.library.has_constants:
            return ()
        first = self.library.first_variable
        return tuple(
            (part.form.name, self.feature_names[part.column - first])
            for part in outermost_named(self.library, self.tokens.tolist(), self.constants.tolist())
            if part.form.name
        )

    @cached_property
    def tree(self) -> Tree:
        """The syntax tree, its variables named by `feature_names`."""
        return rename(self._tree, dict(zip(self.library.variable_names, self.feature_names)))

    @cached_property
    def text(self) -> str:
        """The formula as text, its like terms and factors collected: 2*x1 for (x1 + x1)/x1*x1.

        `from_text` reads it back as a formula of the same values, up to rounding and intermediate overflow.
        In a library without constants, that formula may be defined where this one is not, or undefined where
        x1 is 0.
        """
        return syntax.to_text(tidy(self.tree, keeps_domain=self.library.has_constants))

    @cached_property
    def sympy(self) -> sympy_module.Expr:
        """The sympy expression, whose symbols are named by `feature_names`."""
        # This is imported here, as in `latex` and `mathml`, since importing sympy takes half a second.
        from dgsr.expressions.exports.symbolic import to_sympy

        return to_sympy(recognised(self.tree), functions=self.library.functions)

    @property
    def latex(self) -> str:
        """The sympy expression in LaTeX, its floats shortened to 5 digits."""
        from dgsr.expressions.exports.typesetting import to_latex

        return to_latex(recognised(self.tree), self.library.functions)

    @property
    def mathml(self) -> str:
        """The sympy expression in presentation MathML, its floats shortened to 5 digits."""
        from dgsr.expressions.exports.typesetting import to_mathml

        return to_mathml(recognised(self.tree), self.library.functions)

    def to_python(self, name: str = "formula") -> str:
        """Return the source text of a Python module that needs only numpy; numba can compile its function.

        Parameters
        ----------
        name : str
            Name of the module's one function. It takes an array for each feature, and they broadcast.
            Features whose names are no Python identifiers get similar names, which its docstring lists.

        Raises
        ------
        ValueError
            If `name` is no identifier of Python or a reserved one, or the formula has a user-defined operator
            without sympy form.
        """
        return to_python(self._tree, self.feature_names, self.library.functions, name)

    def to_jax(self, name: str = "formula") -> str:
        """Return the source text of a Python module that needs only jax, for ``jax.jit`` and ``jax.grad``.

        The parameter and the errors are those of `to_python`. The function computes with jax floats, which
        have 32 bits unless ``jax_enable_x64`` is set.
        """
        return to_jax(self._tree, self.feature_names, self.library.functions, name)

    def to_c(self, name: str = "formula") -> str:
        """Return the source text of a C99 function of one double for each feature, which returns a double.

        The parameter and the errors are those of `to_python`, for identifiers of C.
        """
        return to_c(self._tree, self.feature_names, self.library.functions, name)

    def to_torch(self) -> FormulaModule:
        """Return a torch module that predicts as this expression does; its parameters are the constants.

        ValueError if the formula has a user-defined operator without sympy form.
        """
        # This is imported here, so that expressions can be used without loading torch.
        from dgsr.expressions.exports.torch_export import FormulaModule

        return FormulaModule(self.library, self.tokens, self.constants, self.with_constants)

    def numpy_function(self) -> Callable[..., np.ndarray]:
        """Return the equation as a function of one array per variable that needs only numpy.

        The arrays broadcast. The function can be pickled if the user's operators in it can.
        """
        used = {self.library.tokens[token].name for token in self.tokens}
        functions = {name: f for name, f in self.library.functions.items() if name in used}
        return _ArrayFunction(self.tree, self.feature_names, functions)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Expression({self.text!r}, library={self.library.name!r})"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def _key(self) -> tuple:
        return self.library, self.tokens.tobytes(), self.constants.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


class _ArrayFunction:
    def __init__(self, tree: Tree, names: tuple[str, ...], functions: Functions) -> None:
        self.tree = tree
        self.names = names
        self.functions = functions

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        if len(arrays) != len(self.names):
            raise TypeError(f"{len(arrays)} arrays given; one for each of {', '.join(self.names)} is needed.")
        values = [np.asarray(array, dtype=np.float64) for array in arrays]
        result = evaluate_strictly(self.tree, dict(zip(self.names, values)), self.functions)
        return np.array(np.broadcast_to(result, np.broadcast_shapes(*[value.shape for value in values])))

    def __repr__(self) -> str:
        return f"<function of {', '.join(self.names)}: {syntax.to_text(self.tree)}>"


def _digits_shown(value: float, digits: int) -> int:
    """Return how many significant digits a number keeps that is shortened to `digits` or a few more."""
    if float(f"{value:.{digits + _FEW_MORE}g}") == value:
        return digits + _FEW_MORE
    before_the_point = len(f"{abs(value):.0f}") if abs(value) < 10.0**DIGITS_OF_FAR else 0
    return max(digits, before_the_point + 1)


def _names(library: Library, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the variables; raise ValueError if their number is wrong or one is repeated."""
    if given is None:
        return library.variable_names
    names = tuple(map(str, given))
    if len(names) != library.n_variables:
        raise ValueError(
            f"feature_names has {len(names)} names; the library has {library.n_variables} variables."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"feature_names repeats {', '.join(map(repr, repeated))}; name each variable once.")
    return names
