"""Common forms of laws of one column, and which of them a part of a formula has.

They are the functions that textbooks and programs for curve fitting list by name: growth and saturation,
decay, peaks, oscillation, dose response. A formula of such a form is more probable than an equally long one
that nobody has used (`dgsr.expressions.formulas.description_length`), and searches with constants fit all of
them to every column (`dgsr.finders.forms`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from dgsr.expressions.formulas.skeletons import NUMBER, Skeleton, parts_of, summed
from dgsr.expressions.programs.library import Library, get_library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import rename

# Values in place of the free numbers of a text; they are not simple, so that no rewriting removes them.
_LETTERS = re.compile(r"\b[abc]\b")
_PLACEHOLDERS = {"a": 0.7312, "b": 1.9183, "c": 2.4471}
# Simple exponents in place of a free one, which skeletons have literally: 1/(3 + x)**2 is a shifted power
# law.
_EXPONENTS = ("-3", "-2", "-3/2", "-1", "-1/2", "1/2", "3/2", "2", "3")


#: Tokens, and for every constant its value or its letter.
FormProgram = tuple[tuple[int, ...], tuple[str | float, ...]]


class CommonForm(NamedTuple):
    """A function of one column that has a name, without its scale and its offset."""

    name: str  # names of laws and models; empty for lines, parabolas, roots and simple powers
    text: str  # the function of ``x`` with the free numbers ``a``, ``b`` and ``c``
    weight: float  # how frequent the form is, relative to others
    # The ways in which people write it, the most customary first, as placements of
    # `dgsr.expressions.rewriting.merging`; empty for a form that people write in many ways.
    placements: tuple[str, ...] = ()

    @property
    def bits(self) -> float:
        """The bits that identify it among the forms."""
        return float(np.log2(_TOTAL / self.weight))

    @property
    def n_numbers(self) -> int:
        """How many free numbers it has besides scale and offset."""
        return len(set(_LETTERS.findall(self.text)))

    @property
    def n_copies(self) -> int:
        """How many further occurrences its free numbers have, as the exponent of Hill's law occurs twice."""
        return len(_LETTERS.findall(self.text)) - self.n_numbers

    def program(self, library: Library, column: int) -> FormProgram | None:
        """Return its program, with the token `column` for x; None where the library lacks an operator."""
        return _program(self.text, library, column)


@lru_cache(maxsize=4096)
def _program(text: str, library: Library, column: int) -> FormProgram | None:
    values = {**_PLACEHOLDERS, "x": library.tokens[column].name}
    tree = rename(parse(text), values)
    try:
        tokens, constants = to_program(tree, library)
    except ValueError:
        return None
    letters = {value: letter for letter, value in _PLACEHOLDERS.items()}
    return tuple(tokens.tolist()), tuple(letters.get(value, value) for value in constants.tolist())


# Relative frequencies of forms, which are judgements: no corpus was counted. Of the most frequent ones:
COMMON = 16.0
# Of ordinary forms: 2 bits more than for these.
USUAL = 4.0
# Of rare forms: 3 bits more than for ordinary ones.
RARE = 0.5

#: The forms, without scale and offset.
COMMON_FORMS = (
    CommonForm("", "x", COMMON),
    CommonForm("", "1/x", COMMON),
    CommonForm("", "x**2", COMMON),
    CommonForm("", "1/x**2", USUAL),
    CommonForm("", "x**3", USUAL),
    CommonForm("", "sqrt(x)", USUAL),
    CommonForm("", "a*x + x**2", USUAL),
    CommonForm("power law", "x**a", COMMON),
    CommonForm("shifted power law", "(a + x)**b", RARE),
    CommonForm("exponential", "exp(a*x)", COMMON),
    CommonForm("stretched exponential, Weibull, Avrami", "exp(a*x**b)", USUAL),
    CommonForm("Arrhenius, vapour pressure", "exp(a/x)", USUAL),
    CommonForm("modified Arrhenius", "x**a*exp(b/x)", USUAL),
    CommonForm("Antoine, Vogel-Fulcher-Tammann", "exp(a/(b + x))", USUAL, ("leading",)),
    CommonForm("hyperbola, second-order decay", "1/(a + x)", USUAL),
    CommonForm("Michaelis-Menten, Langmuir, Monod", "x/(a + x)", COMMON, ("leading", "number")),
    CommonForm("Hill of second order, Lorentz", "1/(a + x**2)", USUAL),
    CommonForm("Hill of second order, Holling III", "x**2/(a + x**2)", USUAL, ("leading", "number")),
    CommonForm("", "sqrt(1 + a*x**2)", USUAL),
    CommonForm("Lorentz factor, low-pass of first order", "1/sqrt(1 + a*x**2)", USUAL),
    CommonForm("Hill, log-logistic", "1/(a + x**b)", RARE, ("number", "leading")),
    CommonForm("Hill, log-logistic, Sips", "x**b/(a + x**b)", USUAL, ("leading", "number")),
    CommonForm("Redlich-Peterson", "x/(a + x**b)", RARE, ("number", "leading")),
    CommonForm("Haldane, substrate inhibition", "x/(a + b*x + x**2)", RARE),
    CommonForm("logistic", "1/(a + exp(b*x))", USUAL, ("number",)),
    CommonForm("Bose-Einstein, Fermi-Dirac", "1/(a + exp(b/x))", RARE, ("number",)),
    CommonForm("logistic, Boltzmann", "tanh(a*x + b)", RARE),
    CommonForm("saturation", "tanh(a*x)", RARE),
    CommonForm("Gompertz", "exp(a*exp(b*x))", USUAL),
    CommonForm("Chapman-Richards, von Bertalanffy", "(a - exp(b*x))**c", RARE),
    CommonForm("von Bertalanffy", "(a - exp(b*x))**3", RARE),
    CommonForm("Ricker, one-compartment", "x*exp(a*x)", USUAL),
    CommonForm("gamma", "x**a*exp(b*x)", USUAL),
    CommonForm("logarithm", "log(x)", COMMON),
    CommonForm("shifted logarithm", "log(a + x)", RARE),
    CommonForm("soft maximum of two lines", "log(a + exp(b*x))", RARE),
    CommonForm("Gauss", "exp(a*x**2)", USUAL),
    CommonForm("Gauss", "exp(a*x**2 + b*x)", RARE),
    CommonForm("Gauss", "exp(a*(b + x)**2)", USUAL),
    CommonForm("log-normal", "exp(a*(b + log(x))**2)", USUAL),
    CommonForm("Lorentz", "1/(a + (b + x)**2)", USUAL),
    CommonForm("sine", "sin(a*x)", USUAL),
    CommonForm("sine with a phase", "sin(a*x + b)", COMMON),
    CommonForm("damped oscillation", "exp(a*x)*sin(b*x)", USUAL),
    CommonForm("damped oscillation", "exp(a*x)*sin(b*x + c)", USUAL),
    CommonForm("two exponentials", "exp(a*x) + b*exp(c*x)", USUAL),
    CommonForm("exponential and straight line", "exp(a*x) + b*x", RARE),
    CommonForm("Morse", "(a + exp(b*x))**2", RARE),
    CommonForm("two lines that meet", "a*x + abs(b + x)", RARE),
)  # fmt: skip
_TOTAL = sum(form.weight for form in COMMON_FORMS)


class NamedPart(NamedTuple):
    """A subprogram that has a common form of one column."""

    form: CommonForm
    column: int  # the token of the column
    bits: float  # those that identify the form, and the simple exponent where it replaces a free one


def named_parts(
    library: Library, tokens: Sequence[int], constants: Sequence[float]
) -> list[NamedPart | None]:
    """Return the common form of the subprogram at each token of a program, or None where it has none."""
    found: list[NamedPart | None] = []
    for part in parts_of(library, tokens, constants):
        known = _known().get(part.skeleton) if len(part.columns) == 1 else None
        found.append(None if known is None else NamedPart(known[0], min(part.columns), known[1]))
    return found


def outermost_named(
    library: Library, tokens: Sequence[int], constants: Sequence[float]
) -> Iterator[NamedPart]:
    """Yield the parts of a program that have a common form and lie within no other such part."""
    n_open = 0  # subprograms that are left of the last part
    for token, part in zip(tokens, named_parts(library, tokens, constants)):
        if not n_open and part is not None:
            yield part
            n_open = 1
        if n_open:
            n_open += library.tokens[token].arity - 1


@cache
def _known() -> dict[Skeleton, tuple[CommonForm, float]]:
    """Return the forms and their bits by their skeletons, with and without an offset."""
    library = get_library("physics", 1)
    found: dict[Skeleton, tuple[CommonForm, float]] = {}

    def learn(form: CommonForm, text: str, bits: float) -> None:
        program = form._replace(text=text).program(library, library.first_variable)
        assert program is not None
        tokens, numbers = program
        constants = [_PLACEHOLDERS[value] if isinstance(value, str) else value for value in numbers]
        skeleton = parts_of(library, tokens, constants)[0].skeleton
        for known in (skeleton, summed([skeleton, NUMBER])):
            found.setdefault(known, (form, bits))

    for form in COMMON_FORMS:
        learn(form, form.text, form.bits)
    for form, letter, exponent in product(COMMON_FORMS, _PLACEHOLDERS, _EXPONENTS):
        text = form.text.replace(f"**{letter}", f"**({exponent})")
        if text != form.text:
            learn(form, text, form.bits + float(np.log2(len(_EXPONENTS))))
    return found
