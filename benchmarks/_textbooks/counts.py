"""Count the operators, shapes and numbers of the formulas of textbooks.

Read are the displayed formulas (`equation` elements), as `mathml` and `formulas` say. The left side must be
one symbol, or a power or function of one, and of a chain a = b = c the last side that can be read and has a
symbol is counted: in derivations the result, and not the numbers put into it. A formula that stands in
several places counts once: order of factors and terms, and subscripts that tell no two of its symbols apart,
make no difference. Left out are single symbols, formulas with integrals, sums over an index, derivatives,
vectors, units or decimals, formulas whose left side is in the right, and every formula that is a problem of
dgsr after its symbols, named constants among them, are renamed.

Named constants (c, h, k_B, G, R with T, e, g and the like, see `named_constants`) count as constants. Every
table is there twice: over the formulas, and over the shapes, where formulas that differ in the names of their
symbols alone count once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from _textbooks.formulas import Node, Parser, power_of, product, total
from _textbooks.mathml import LeftOut, Token, clauses, defined_symbol, equations, lines, tokens
from _textbooks.tables import measure, walk
from dgsr.problems import list_sets, load_set

#: Constants that every formula that names them means.
_ALWAYS = {"c", "ℏ", "G", "N_A", "k_B", "k_e", "ε_0", "μ_0", "ε_o", "μ_o", "μ_B"}
_ALWAYS |= {"m_e", "m_p", "m_n", "q_e", "a_0", "R_H", "e", "g"}
#: Symbols that mean a constant beside one of others, given by what those begin with.
_BESIDE = {"h": ("f", "ν", "λ", "p", "m", "e", "k"), "k": ("T", "q", "Q"), "R": ("T",), "σ": ("T",)}
#: Words and letters of sentences and of units that were read as symbols.
_PROSE = {"inside", "outside", "constant", "const", "undefined", "through", "over", "units", "turning"}
_UNIT_LETTERS = set("mskgNJKVCATWLΩuμ")
#: Most letters that stand side by side before they are read as a word.
_LONGEST_PRODUCT = 5
#: Largest numerator of a law, and beside letters that may all be units; beyond are worked examples.
_LARGEST_OF_A_LAW, _LARGEST_BESIDE_UNITS = 32, 3


def symbols(tree: Node) -> Iterator[str]:
    """Yield the names of the variables of a tree, once for each place."""
    if tree[0] == "var":
        yield tree[1]
    elif tree[0] == "sum":
        for _, term in tree[1]:
            yield from symbols(term)
    elif tree[0] == "prod":
        for factor in tree[2] + tree[3]:
            yield from symbols(factor)
    elif tree[0] not in ("const", "num", "pi"):
        for child in tree[1:]:
            yield from symbols(child)


def mapped(tree: Node, names: dict[str, Node]) -> Node:
    """Return the tree with its variables replaced."""
    if tree[0] == "var":
        return names.get(tree[1], tree)
    if tree[0] == "sum":
        return ("sum", tuple((sign, mapped(term, names)) for sign, term in tree[1]))
    if tree[0] == "prod":
        return (*tree[:2], *(tuple(mapped(factor, names) for factor in side) for side in tree[2:]))
    if tree[0] in ("const", "num", "pi"):
        return tree
    return (tree[0], *(mapped(child, names) for child in tree[1:]))


def named_constants(tree: Node, book: str) -> set[str]:
    """Return the symbols of a tree that stand for constants of nature, or for g."""
    names = set(symbols(tree))
    if book.endswith(("finance", "statistics")):
        return set()
    found = names & _ALWAYS
    if any(name.startswith("ΔT") for name in names) or {"a", "b"} <= names:
        found.discard("c")  # a specific heat, a third edge or exponent
    for name, neighbours in _BESIDE.items():
        if name in names and any(other[0] in neighbours for other in names - {name}):
            found.add(name)
    if names & {"g", "ρ"}:
        found.discard("h")  # a height
    if "t" in names:
        found.discard("k")  # a spring's, beside a period T
    return found


def ordered(tree: Node, colours: dict[str, str]) -> str:
    """Return a text that is the same for trees that differ in the order of terms and factors."""
    if tree[0] == "var":
        return colours[tree[1]]
    if tree[0] == "sum":
        return "sum" + str(sorted(f"{sign}{ordered(term, colours)}" for sign, term in tree[1]))
    if tree[0] == "prod":
        sides = [sorted(ordered(factor, colours) for factor in side) for side in tree[2:]]
        return f"prod{tree[1]}{sides}"
    if tree[0] == "const":
        return "const"
    if tree[0] in ("num", "pi"):
        return str(tree)
    return f"{tree[0]}({','.join(ordered(child, colours) for child in tree[1:])})"


def shape(tree: Node) -> str:
    """Return a text that is the same for trees that differ in the names and order of their symbols.

    The symbols are distinguished by colours, refined by what the tree looks like from each of them.
    """
    names = sorted(set(symbols(tree)))
    colours = dict.fromkeys(names, "v")
    for _ in range(3):
        seen = {name: ordered(tree, colours | {name: f"<{colours[name]}>"}) for name in names}
        ranks = {text: f"v{rank}" for rank, text in enumerate(sorted(set(seen.values())))}
        colours = {name: ranks[seen[name]] for name in names}
    return ordered(tree, colours)


def same_formula(defined: str, tree: Node) -> str:
    """Return a text that is the same for repetitions of a formula with other subscripts."""
    names = set(symbols(tree))
    plain = {name: re.sub("[_'].*", "", name) for name in names}
    if len(set(plain.values())) < len(names):
        plain = {name: name for name in names}
    return re.sub("[_'].*", "", defined) + ordered(tree, plain)


def problem_shapes() -> set[str]:
    """Return the shapes of all problems of dgsr."""
    found = set()
    # The set of laws is younger than these counts, and its laws are no problems of a benchmark.
    for name in (name for name in list_sets() if name != "laws"):
        for problem in load_set(name):
            tree = _from_dgsr(problem.truth)
            found.add(shape(tree))
    return found


def _from_dgsr(tree) -> Node:
    if isinstance(tree, str):
        return ("var", tree)
    if not isinstance(tree, tuple):
        return ("num", Fraction(tree).limit_denominator(10**6))
    name, *children = tree
    parts = [_from_dgsr(child) for child in children]
    if name in ("add", "sub"):
        return total([(1, parts[0]), (1 if name == "add" else -1, parts[1])])
    if name in ("mul", "div"):
        return product([(parts[0], 1), (parts[1], 1 if name == "mul" else -1)])
    if name == "neg":
        return total([(-1, parts[0])])
    if name in ("pow", "square", "cube", "sqrt"):
        exponents = {"square": Fraction(2), "cube": Fraction(3), "sqrt": Fraction(1, 2)}
        return power_of(parts[0], parts[1] if name == "pow" else ("num", exponents[name]))
    return (name, *parts)


def right_side(sides: list[list[Token]], left_out: Counter) -> tuple[str, Node] | None:
    """Return the symbol that an equation defines and the last of its sides that can be counted."""
    reason = "left side is not one symbol"
    defined = defined_symbol(sides[0])
    found = None
    for side in sides[1:] if defined is not None else ():
        try:
            tree = Parser(side).all()
            check(defined, tree)
            found = tree
        except LeftOut as left:
            reason = str(left)
    if found is None:
        left_out[reason] += 1
        return None
    return defined, found


def check(defined: str, tree: Node) -> None:
    """Raise `LeftOut` for a side that is no law."""
    names = set(symbols(tree))
    nodes = list(walk(tree))
    if not names or any(node[0] == "const" for node in nodes):
        raise LeftOut("numbers with units or decimals")
    if tree[0] == "var" or (tree[0] == "prod" and [node[0] for node in nodes[1:]] == ["var"] and tree[2]):
        raise LeftOut("single symbol, or a number times one")
    if defined in names:
        raise LeftOut("left side stands in the right side")
    largest = max(map(_numerator, nodes))
    if largest > (_LARGEST_BESIDE_UNITS if names <= _UNIT_LETTERS else _LARGEST_OF_A_LAW):
        raise LeftOut("numbers with units or decimals")
    letters = [name for name in names if len(name) == 1]
    if {name.lower() for name in names} & _PROSE or (letters and any(" " in name for name in names)):
        raise LeftOut("words of a sentence")
    if "i" in names and any(node[0] in ("exp", "sin", "cos") for node in nodes):
        raise LeftOut("complex number")
    for node in nodes:
        if node[0] == "prod":
            if (node[2] + node[3]).count(("var", "d")) > 1:
                raise LeftOut("derivative")
            if sum(factor[0] == "var" and len(factor[1]) == 1 for factor in node[2]) > _LONGEST_PRODUCT:
                raise LeftOut("words of a sentence")


def _numerator(tree: Node) -> int:
    return abs(tree[1].numerator) if tree[0] in ("num", "prod") else 0


def read(folder: Path, left_out: Counter) -> Iterator[tuple[str, str, Node]]:
    """Yield the book, the defined symbol and the right side of every formula that can be counted."""
    for book, formula in equations(folder):
        left_out["displayed formulas"] += 1
        for row in lines(formula):
            try:
                found = clauses([token for element in row for token in tokens(element)])
            except LeftOut as left:
                left_out[str(left)] += 1
                continue
            for sides in found:
                if len(sides) < 2:
                    continue
                left_out["equations"] += 1
                try:
                    pair = right_side(sides, left_out)
                except LeftOut as left:
                    left_out[str(left)] += 1
                    continue
                if pair is not None:
                    yield book, *pair


def with_constants(tree: Node, book: str) -> Node:
    """Return the tree with its named constants marked as such."""
    return mapped(tree, {name: ("const", name) for name in named_constants(tree, book)})


def counted_in(folder: Path) -> dict[str, Any]:
    """Return the counts of the sources in a folder, as the package ships them."""
    left_out: Counter = Counter()
    held_out = problem_shapes()
    once: dict[str, tuple[str, Node]] = {}
    repetitions = 0
    for book, defined, tree in read(folder, left_out):
        key = same_formula(defined, tree)
        repetitions += key in once
        once.setdefault(key, (book, tree))
    benchmark = [tree for _, tree in once.values() if shape(tree) in held_out]
    counted = [
        (book, with_constants(tree, book)) for book, tree in once.values() if shape(tree) not in held_out
    ]
    left_out["named constants alone"] = sum(not set(symbols(tree)) for _, tree in counted)
    counted = [(book, tree) for book, tree in counted if set(symbols(tree))]
    trees = [tree for _, tree in counted]
    shapes = list({shape(tree): tree for tree in trees}.values())
    commits = {path.parent.name: path.read_text().strip() for path in sorted(folder.glob("*/COMMIT"))}
    return {
        "source": {
            "name": "OpenStax textbooks, CNXML with presentation MathML, displayed formulas",
            "repositories_and_commits": {name.replace("+", "/"): commit for name, commit in commits.items()},
            "note": "counts alone; nothing here is text of the books",
            "displayed_formulas": left_out.pop("displayed formulas"),
            "equations": left_out.pop("equations"),
            "left_out": dict(left_out.most_common()),
            "repetitions": repetitions,
            "problems_of_dgsr_left_out": len(benchmark),
            "problems_of_dgsr_left_out_by_symbols": histogram(len(set(symbols(tree))) for tree in benchmark),
            "counted_formulas": len(trees),
            "counted_shapes": len(shapes),
            "counted_by_book": dict(Counter(book.replace("+", "/") for book, _ in counted)),
        },
        "formulas": measure(trees),
        "shapes": measure(shapes),
    }


def histogram(values) -> dict[str, int]:
    return {str(value): count for value, count in sorted(Counter(values).items())}
