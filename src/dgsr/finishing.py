"""Turn the programs a search ends with into formulas a person would write.

Each program is put back into the raw variables, functions that change nothing on the data (the abs of what is
positive) are left out, its redundant constants are merged, and its constants
are *snapped*: each becomes the simplest number in its 95% interval, while the others are fitted again.
A snap is taken back if the fit becomes worse than chance explains. Constants that come out as 0 or 1 drop
out of the formula, which is then merged again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dgsr.constants import fit_constants
from dgsr.expressions.expansion import expanded, gathered
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library, Opcode
from dgsr.expressions.merging import PLACEMENTS, merge
from dgsr.expressions.programs import to_program
from dgsr.expressions.simple_numbers import cost, exact, simple_numbers
from dgsr.expressions.syntax import Tree, is_number, map_leaves
from dgsr.expressions.tidy import tidy
from dgsr.population import DataSet, Population

#: ``refit(tokens, constants, free) -> (constants, nmse)``: least squares on the data of one program over
#: the constants where `free` is True, from the values given.
Refit = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]

# A snapped constant may cost so much of n log(NMSE): two standard deviations, squared.
_SIGNIFICANT = 4.0
# An NMSE below this is rounding noise, and one as good as another.
_ROUNDING_NMSE = 1e-20
# A change of the predictions by this share of the standard deviation of y is none.
_NEGLIGIBLE_EFFECT = 1e-11
# Decimals of so many digits are sought. Without noise, longer ones would be found by chance.
_MAX_DIGITS = 9
_REFUSALS, _ROUNDS, _MAX_REFITS = 4, 10, 60
# Relative singular value below which a direction of constants has no effect.
_RANK = 1e-8

_QUARTER_TURN = math.pi / 2


def _as_power(exponent: Tree) -> Tree:
    """Return b**f for exp(c*f)."""
    if isinstance(exponent, tuple) and exponent[0] == "mul" and is_number(exponent[1]):
        base = math.exp(exponent[1])
        return ("pow", base if isinstance(exponent[1], float) else Fraction(base), exponent[2])
    return ("pow", Fraction(math.e), exponent)


# What merging writes and the library may lack, in terms of what it then has.
_INSTEAD: dict[str, Callable[[Tree], Tree]] = {
    "abs": lambda f: ("sqrt", ("pow", f, 2)),
    "exp": _as_power,
    "sin": lambda f: ("cos", ("sub", f, Fraction(_QUARTER_TURN))),
    "cos": lambda f: ("sin", ("add", f, Fraction(_QUARTER_TURN))),
}


@dataclass(frozen=True)
class _Program:
    """One program; `free` says which constants are fitted, the others are exact."""

    tokens: np.ndarray  # (length,) int64
    constants: np.ndarray  # (n_constants,) float64
    free: np.ndarray  # (n_constants,) bool


@dataclass(frozen=True)
class _Finished:
    program: _Program
    nmse: float


def finish(
    programs: Population,
    column_scales: np.ndarray,
    data: DataSet,
    library: Library,
    tolerance: float,
    refit: Refit | None = None,
) -> list[Expression]:
    """Return each program as the formula a person would write for it.

    Parameters
    ----------
    programs : Population
        In the scaled variables x_i / column_scales[i].
    column_scales : ndarray of shape (n_features,)
    data : DataSet
        All rows, in the raw variables.
    library : Library
        Of the programs and of the result.
    tolerance : float
        NMSE that counts as exact.
    refit : callable, optional
        ``refit(tokens, constants, free) -> (constants, nmse)``: fits the constants where `free` is True
        of one program to `data`, starting from the values given. By default Levenberg-Marquardt,
        `dgsr.constants.fit_constants`.

    Returns
    -------
    list of Expression
        One for each program, in their order. The fit of each is as good as the program's, within what
        chance explains: n log(NMSE) grows by less than 4 for each constant made simpler.

    Raises
    ------
    ValueError
        If a program needs a column scale and `library` has no constants to write it.
    """
    finisher = _Finisher(data, library, tolerance, refit or _compiled_refit(data, library))
    return [
        finisher.finish(programs.tokens[i, : programs.lengths[i]], programs.constants[i], column_scales)
        for i in range(len(programs))
    ]


def rescaled(expression: Expression, column_scales: np.ndarray) -> Expression:
    """Return an expression of the scaled variables over the raw ones, as it stands."""
    tokens, constants = to_program(_unscaled(expression.tree, column_scales), expression.library)
    return Expression(expression.library, tokens, constants)


def _compiled_refit(data: DataSet, library: Library) -> Refit:
    def refit(tokens: np.ndarray, constants: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, float]:
        program = Population(
            library,
            np.asarray(tokens, dtype=np.int64)[None],
            np.array([len(tokens)]),
            np.array(constants, dtype=np.float64)[None],
        )
        fit = fit_constants(
            program, data, scaled=False, free=free[None], n_iterations=50, n_starts=0, precision=1e-9
        )
        return program.constants[0], float(fit.nmse[0])

    return refit


class _Finisher:
    """What is the same for all programs of one front."""

    def __init__(self, data: DataSet, library: Library, tolerance: float, refit: Refit) -> None:
        self.data = data
        self.library = library
        self.fit = refit
        self.n_rows = data.n_effective
        # The root of each row's share of the NMSE: weighted residuals squared add up to it.
        self.row_weights = np.sqrt(data.weights / (len(data.y) * data.variance))
        self.tolerance = tolerance
        self.floor = min(_ROUNDING_NMSE, tolerance)
        self.n_refits = 0

    def finish(self, tokens: np.ndarray, constants: np.ndarray, column_scales: np.ndarray) -> Expression:
        n_constants = int(np.sum(self.library.table.opcode[tokens] == Opcode.CONSTANT))
        free = np.ones(n_constants, dtype=bool)
        tree = _unscaled(self._tree(_Program(tokens, constants[:n_constants], free)), column_scales)
        start = self._refitted(self._plain(tree))
        finished = [self._snapped(form, start.nmse) for form in self._forms(start)]
        # The simplest, and of the equally simple the one that fits best.
        best = min(finished, key=lambda f: (round(self._score(f.program), 6), f.nmse))
        return Expression(self.library, best.program.tokens, best.program.constants)

    # Programs and trees --------------------------------------------------------------------------

    def _plain(self, tree: Tree) -> _Program:
        """Write a tree without the functions that change nothing on the data."""
        program, plainer = self._written(tree), self._without_needless(tree)
        if plainer == tree:
            return program
        shorter = self._written(plainer)
        return shorter if self._is_as_good(self._nmse(shorter), self._nmse(program)) else program

    def _without_needless(self, tree: Tree) -> Tree:
        """Return f or -f for abs(f) where f has one sign on the data, and exp(c*f) for b**f."""
        if not isinstance(tree, tuple):
            return tree
        name, *children = tree
        children = [self._without_needless(child) for child in children]
        if name == "abs":
            sign = self._sign(children[0])
            if sign != 0:
                return children[0] if sign > 0 else ("neg", children[0])
        if (
            name == "pow"
            and isinstance(children[0], float)
            and children[0] > 0
            and "exp" in self.library.index
        ):
            return ("exp", ("mul", math.log(children[0]), children[1]))
        return (name, *children)

    def _sign(self, tree: Tree) -> int:
        """Return 1 or -1 where the values on all rows have one sign, 0 where they have not."""
        program = self._written(tree)
        values = self._predicted(program.tokens, program.constants[None])[0]
        return int(np.all(values >= 0)) or -int(np.all(values <= 0))

    def _merged(self, tree: Tree, placement: str = "simplest") -> _Program:
        """Merge the constants, also those that are alike on the data only."""
        merged = merge(tree, placement)
        plainer = self._without_needless(merged)
        return self._written(merged if plainer == merged else merge(plainer, placement))

    def _rewritten(self, tree: Tree, rewrite: Callable[[Tree], Tree]) -> _Program:
        return self._written(rewrite(merge(tree, PLACEMENTS[0])))

    def _tree(self, program: _Program) -> Tree:
        """Return the tree: its floats are the free constants, its other numbers are exact."""
        numbers = [
            float(value) if is_free else exact(float(value))
            for value, is_free in zip(program.constants, program.free, strict=True)
        ]
        stack: list[Tree] = []
        for token in program.tokens[::-1]:
            entry = self.library.tokens[token]
            if entry.name == "const":
                stack.append(numbers.pop())
            elif entry.arity == 0:
                stack.append(entry.name)
            else:
                stack.append((entry.name, *(stack.pop() for _ in range(entry.arity))))
        return _with_exact_exponents(stack[0])

    def _written(self, tree: Tree) -> _Program:
        """Write a tree as a program; a constant is free where a change of the floats changes it."""
        tree = self._with_own_tokens(tree)
        tokens, constants = to_program(tree, self.library)
        moved = map_leaves(tree, lambda leaf: 1.37 * leaf + 0.1 if isinstance(leaf, float) else leaf)
        try:
            _, changed = to_program(moved, self.library)
        except ValueError:  # a part of numbers alone that has no value there
            changed = constants
        if len(changed) != len(constants):
            raise ValueError("The program's constants depend on their values.")
        return _Program(tokens, constants, changed != constants)

    def _with_own_tokens(self, tree: Tree) -> Tree:
        """Use the library's tokens for a square, a cube, a root and an inverse, and none that it lacks."""
        if not isinstance(tree, tuple):
            return tree
        name, *children = tree
        children = [self._with_own_tokens(child) for child in children]
        if name in _INSTEAD and name not in self.library.index:
            return _INSTEAD[name](children[0])
        if name == "pow" and is_number(children[1]):
            short = {2: "square", 3: "cube", Fraction(1, 2): "sqrt"}.get(children[1])
            if short in self.library.index:
                return (short, children[0])
        if (
            name == "div"
            and isinstance(children[0], int)
            and children[0] == 1
            and "inv" in self.library.index
        ):
            return ("inv", children[1])
        return (name, *children)

    def _forms(self, start: _Finished) -> list[_Finished]:
        """Return the ways to place the constants, refitted; the program itself where none is simpler."""
        tree = self._tree(start.program)
        forms: dict[tuple, _Finished] = {}
        ways = [partial(self._merged, tree, placement) for placement in PLACEMENTS[:-1]]
        ways += [partial(self._rewritten, tree, rewrite) for rewrite in (_expanded, _gathered)]
        for way in ways:
            try:
                program = way()
            except (ValueError, ArithmeticError):
                continue
            key = (program.tokens.tobytes(), program.free.tobytes())
            if key not in forms:
                forms[key] = self._refitted(program, copies=True)
        kept = [form for form in forms.values() if self._is_as_good(form.nmse, start.nmse)]
        simplest = min((self._complexity(form.program) for form in kept), default=math.inf)
        return kept if simplest <= self._complexity(start.program) else [*kept, start]

    def _complexity(self, program: _Program) -> int:
        return int(self.library.table.complexity[program.tokens].sum())

    def _score(self, program: _Program) -> float:
        return self._complexity(program) + sum(map(cost, program.constants.tolist()))

    # Fits ----------------------------------------------------------------------------------------

    def _predicted(self, tokens: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """Return the program's values, a row for each row of `constants`."""
        n = len(constants)
        programs = Population(
            self.library, np.tile(tokens, (n, 1)), np.full(n, len(tokens), dtype=np.int64), constants
        )
        with np.errstate(all="ignore"):
            return programs.predict(self.data.columns.T)

    def _residuals(self, tokens: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """Return weighted residuals for each row of `constants`; their squares add up to the NMSE."""
        with np.errstate(all="ignore"):
            return (self._predicted(tokens, constants) - self.data.y) * self.row_weights

    def _nmse(self, program: _Program) -> float:
        residuals = self._residuals(program.tokens, program.constants[None])[0]
        with np.errstate(all="ignore"):
            nmse = float(residuals @ residuals)
        return nmse if math.isfinite(nmse) else math.inf

    def _refitted(self, program: _Program, copies: bool = False) -> _Finished:
        """Fit the free constants; with `copies` those that start equal stay equal."""
        nmse = self._nmse(program)
        if not program.free.any():
            return _Finished(program, nmse)
        self.n_refits += 1
        constants, _ = self.fit(program.tokens, program.constants.copy(), program.free.copy())
        constants = np.where(program.free, constants, program.constants)
        is_phase = self._are_phases(program.tokens) & program.free
        constants[is_phase] -= 2 * math.pi * np.round(constants[is_phase] / (2 * math.pi))
        for group in _groups(program) if copies else []:
            constants[group] = constants[group].mean()
        fitted = replace(program, constants=constants)
        new_nmse = self._nmse(fitted)
        return _Finished(fitted, new_nmse) if new_nmse < nmse else _Finished(program, nmse)

    def _is_as_good(self, nmse: float, limit: float, allowed: float = _SIGNIFICANT) -> bool:
        """Whether n log(NMSE) has grown by less than `allowed`."""
        if not (math.isfinite(nmse) and math.isfinite(limit)):
            return math.isfinite(nmse)
        return self.n_rows * math.log(max(nmse, self.floor) / max(limit, self.floor)) < allowed

    def _half_widths(self, fit: _Finished, groups: list[np.ndarray]) -> np.ndarray:
        """Return two standard errors of each group of constants; inf where the data say nothing."""
        program = fit.program
        steps = np.array([6e-6 * abs(program.constants[group[0]]) or 1e-6 for group in groups])
        moved = np.tile(program.constants, (2 * len(groups), 1))  # (2k, n_constants)
        for i, group in enumerate(groups):
            moved[2 * i, group] += steps[i]
            moved[2 * i + 1, group] -= steps[i]
        residuals = self._residuals(program.tokens, moved)
        with np.errstate(all="ignore"):
            jacobian = ((residuals[::2] - residuals[1::2]) / (2 * steps[:, None])).T  # (n_rows, k)
            jacobian[~np.isfinite(jacobian)] = 0.0
            norms = np.sqrt((jacobian**2).sum(axis=0))  # (k,)
            unit = jacobian / np.where(norms > 0, norms, 1.0)
            _, singular, directions = np.linalg.svd(unit, full_matrices=False)
            is_seen = singular > _RANK * singular.max()
            inverse = np.where(is_seen, 1.0 / singular, 0.0)
            variances = ((directions * inverse[:, None]) ** 2).sum(axis=0)
            n_rows = max(self.n_rows - len(groups), 1)
            half = 2.0 * np.sqrt(variances * fit.nmse / n_rows) / norms
            # A fit that ended a little early, 1.0000000002*x: all of its residuals may be the constant's.
            early = 3.0 * math.sqrt(fit.nmse) if fit.nmse <= self.tolerance else 0.0
            half = np.maximum(half, max(_NEGLIGIBLE_EFFECT, early) / norms)
        is_lost = (np.abs(directions[~is_seen]) > 1e-3).any(axis=0)
        return np.where(is_lost | (norms == 0), np.inf, half)

    # Snapping ------------------------------------------------------------------------------------

    def _snapped(self, fit: _Finished, limit: float) -> _Finished:
        """Snap the constants, merge what that makes mergeable, and again until nothing changes."""
        n_snapped = self.n_refits = 0
        for _ in range(_ROUNDS):
            fit, n_snapped = self._snap_constants(fit, limit, n_snapped)
            try:
                program = self._merged(self._tree(fit.program))
            except (ValueError, ArithmeticError):
                break
            old = fit.program
            if self._score(program) > self._score(old) or (
                np.array_equal(program.tokens, old.tokens)
                and np.allclose(program.constants, old.constants, rtol=1e-14, atol=0)
            ):
                break
            merged = self._refitted(program, copies=True)
            if not self._is_as_good(merged.nmse, max(limit, fit.nmse)):
                break
            fit = merged
        return fit

    def _snap_constants(self, fit: _Finished, limit: float, n_snapped: int) -> tuple[_Finished, int]:
        """Snap one constant after the other, the one with the simplest number in its interval first."""
        refused: dict[int, set[float]] = {}
        while self.n_refits < _MAX_REFITS:
            groups = [g for g in _groups(fit.program) if len(refused.get(int(g[0]), ())) < _REFUSALS]
            if not groups:
                break
            proposals = self._proposals(fit, groups, refused)
            together = self._all_at_once(fit, groups, proposals, limit, n_snapped)
            if together is not None:
                return together, n_snapped + len(groups)
            accepted = None
            for at, value, value_cost in sorted(proposals, key=lambda proposal: proposal[2]):
                trial = self._refitted(_with(fit.program, groups[at], value), copies=True)
                if self._is_as_good(trial.nmse, fit.nmse) and self._is_as_good(
                    trial.nmse, limit, _SIGNIFICANT * (n_snapped + 1)
                ):
                    accepted = trial, value_cost
                    break
                refused.setdefault(int(groups[at][0]), set()).add(value)
            if not proposals:
                break
            if accepted is None:
                continue
            fit, n_snapped = accepted[0], n_snapped + 1
            if accepted[1] < 0:
                break  # a part drops out, and with it perhaps other constants
        return fit, n_snapped

    def _are_phases(self, tokens: np.ndarray) -> np.ndarray:
        """Return for each constant whether it is a term of the argument of a sine or cosine."""
        phases: list[bool] = []
        is_term = [False]  # of the nodes to come, the next one last
        for token in tokens:
            entry, inside = self.library.tokens[token], is_term.pop()
            if entry.name == "const":
                phases.append(inside)
            leads_on = entry.name in ("sin", "cos") or (inside and entry.name in ("add", "sub", "neg"))
            is_term += [leads_on] * entry.arity
        return np.array(phases, dtype=bool)

    def _proposals(
        self, fit: _Finished, groups: list[np.ndarray], refused: dict[int, set[float]]
    ) -> list[tuple[int, float, float]]:
        """Return (which group, the simplest number for it, its cost); none for a group without a simple one.

        Quarter turns in a sine or cosine are as simple as 0: sin(f + pi/2) is cos(f).
        """
        proposals = []
        is_phase = self._are_phases(fit.program.tokens)
        for i, half in enumerate(self._half_widths(fit, groups)):
            value = float(fit.program.constants[groups[i][0]])
            tried = refused.get(int(groups[i][0]), set())
            numbers = [(number, cost(number)) for number in simple_numbers(value, half, _MAX_DIGITS)]
            turn = _QUARTER_TURN * round(value / _QUARTER_TURN)
            if is_phase[groups[i]].all() and turn != 0 and abs(turn - value) <= half:
                numbers.insert(numbers[:1] == [(0.0, cost(0))], (turn, cost(0)))
            number = next((number for number in numbers if number[0] not in tried), None)
            if number is not None:
                proposals.append((i, *number))
        return proposals

    def _all_at_once(
        self,
        fit: _Finished,
        groups: list[np.ndarray],
        proposals: list[tuple[int, float, float]],
        limit: float,
        n_snapped: int,
    ) -> _Finished | None:
        """Take all proposals if they fit together: so they do without noise."""
        if len(proposals) < len(groups) or len(groups) < 2:
            return None
        program = fit.program
        for at, value, _ in proposals:
            program = _with(program, groups[at], value)
        nmse, k = self._nmse(program), len(groups)
        # The 95% quantile of chi squared with k degrees of freedom, nearly.
        is_good = self._is_as_good(nmse, fit.nmse, k + 2 * math.sqrt(2 * k))
        is_good = is_good and self._is_as_good(nmse, limit, _SIGNIFICANT * (n_snapped + k))
        return _Finished(program, nmse) if is_good else None


def _with(program: _Program, group: np.ndarray, value: float) -> _Program:
    constants, free = program.constants.copy(), program.free.copy()
    constants[group], free[group] = value, False
    return replace(program, constants=constants, free=free)


def _groups(program: _Program) -> list[np.ndarray]:
    """Return the places of each free constant: copies of one number belong together."""
    places: dict[float, list[int]] = {}
    for i in np.flatnonzero(program.free):
        places.setdefault(float(program.constants[i]), []).append(int(i))
    return [np.array(group) for group in places.values()]


def _unscaled(tree: Tree, column_scales: np.ndarray) -> Tree:
    """Write x_i / s_i for every x_i of another scale than 1."""
    scaled = {
        f"x{i + 1}": ("mul", 1 / Fraction(repr(float(scale))), f"x{i + 1}")
        for i, scale in enumerate(column_scales)
        if scale != 1
    }
    return map_leaves(tree, lambda leaf: scaled.get(leaf, leaf) if isinstance(leaf, str) else leaf)


def _expanded(tree: Tree) -> Tree:
    return merge(expanded(tree), PLACEMENTS[0])


def _gathered(tree: Tree) -> Tree:
    return tidy(expanded(gathered(tree)))  # merging would take the number out of the logarithm again


def _with_exact_exponents(tree: Tree) -> Tree:
    """Return the tree with exponents that are whole or a half as exact numbers."""
    if not isinstance(tree, tuple):
        return tree
    name, *children = tree
    children = [_with_exact_exponents(child) for child in children]
    if name == "pow" and isinstance(children[1], float) and 2 * children[1] == round(2 * children[1]):
        children[1] = exact(children[1])
    return (name, *children)
