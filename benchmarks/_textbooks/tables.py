"""Tables of counts over trees of `formulas`: operators, shapes, arguments of functions, numbers.

In a table of a product's sizes the key "3/1" says three factors above and one below the line, numbers apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from _textbooks.formulas import Node

Tables = dict[str, Counter]

_POWERS = {"square": Fraction(2), "cube": Fraction(3), "sqrt": Fraction(1, 2)}
_TOKENS = {"exp", "log", "sin", "cos", "tanh", "abs", "arcsin", "arccos"}
_LEAVES = {"var": "variable", "const": "constant", "num": "integer", "pi": "pi"}
#: What counts as a function of a formula; squares and cubes do not.
_FUNCTIONS = _TOKENS | {"sqrt", "pow", "other"}


def measure(trees: Iterable[Node]) -> dict[str, dict[str, int]]:
    """Return every table, summed over the trees."""
    tables: Tables = defaultdict(Counter)
    for tree in trees:
        _formula(tree, tables)
        _node(tree, "root", tables)
    return {name: dict(sorted(table.items(), key=_by_number)) for name, table in sorted(tables.items())}


def _by_number(item: tuple[str, int]) -> tuple:
    return (0, int(item[0]), "") if item[0].isdigit() else (1, -item[1], item[0])


def kind(tree: Node) -> str:
    """Return what a tree is: a leaf, a sum, a product, or the token of its function."""
    name = tree[0]
    if name in _LEAVES:
        return _LEAVES[name]
    if name == "prod":
        return "product"
    return name if name == "sum" or name == "pow" or name in _POWERS or name in _TOKENS else "other"


def children(tree: Node) -> tuple[Node, ...]:
    """Return the children of a node, the coefficient of a product left aside."""
    if tree[0] in _LEAVES:
        return ()
    if tree[0] == "sum":
        return tuple(term for _, term in tree[1])
    if tree[0] == "prod":
        return tree[2] + tree[3]
    return tree[1:]


def walk(tree: Node) -> Iterator[Node]:
    """Yield every node of a tree."""
    yield tree
    for child in children(tree):
        yield from walk(child)


def _formula(tree: Node, tables: Tables) -> None:
    """Count what is counted once a formula."""
    nodes = list(walk(tree))
    variables = Counter(node[1] for node in nodes if node[0] == "var")
    constants = Counter(node[1] for node in nodes if node[0] == "const")
    coefficients = sum(node[0] == "prod" and abs(node[1]) != 1 for node in nodes)
    kinds = Counter(kind(node) for node in nodes)
    functions = sum(count for name, count in kinds.items() if name in _FUNCTIONS)
    n_leaves = sum(node[0] in _LEAVES for node in nodes) + coefficients
    n = str(len(variables))
    tables["variables"][n] += 1
    tables["symbols_with_named_constants"][str(len(variables) + len(constants))] += 1
    tables["named_constants"][str(len(constants))] += 1
    tables["leaves"][str(n_leaves)] += 1
    tables["leaves_in_all_by_variables"][n] += n_leaves
    tables["functions_per_formula"][str(functions)] += 1
    tables["functions_in_all_by_variables"][n] += functions
    tables["formulas_with"].update(kinds.keys())
    tables["sums_per_formula"][str(kinds["sum"])] += 1
    tables["formulas_with_a_sum_by_variables"][n] += kinds["sum"] > 0
    tables["occurrences_of_a_variable"].update(str(count) for count in variables.values())
    tables["occurrences_of_a_named_constant"].update(str(count) for count in constants.values())
    repeated = sum(count > 1 for count in variables.values())
    tables["variables_that_occur_again_per_formula"][str(repeated)] += 1
    tables["formulas_with_a_variable_again_by_variables"][n] += repeated > 0
    tables["depth"][str(_depth(tree))] += 1
    tables["top_level"][_top_level(tree)] += 1
    tables["top_level_kind"][kind(tree)] += 1
    for name in _FUNCTIONS:
        if kinds[name] > 0:
            tables["times_a_function_of_the_formula_occurs"][f"{name} {kinds[name]}"] += 1


def _depth(tree: Node) -> int:
    return 1 + max(map(_depth, children(tree)), default=0)


def _top_level(tree: Node) -> str:
    if tree[0] == "sum":
        return f"sum of {len(tree[1])}"
    if tree[0] != "prod":
        return kind(tree)
    sums = [("above", factor) for factor in tree[2] if factor[0] == "sum"]
    sums += [("below", factor) for factor in tree[3] if factor[0] == "sum"]
    if not sums:
        functions = sum(kind(factor) in _FUNCTIONS for factor in tree[2] + tree[3])
        return f"product, no sum, {min(functions, 3)} functions"
    if len(sums) == 1:
        return f"product, sum of {len(sums[0][1][1])} {sums[0][0]}"
    return f"product, {len(sums)} sums"


def _node(tree: Node, parent: str, tables: Tables) -> None:
    """Count a node below `parent`, and all below it."""
    name = kind(tree)
    tables["parent_to_child"][f"{parent} > {name}"] += 1
    if tree[0] == "sum":
        _sum(tree, parent, tables)
        for _, term in tree[1]:
            _node(term, "sum", tables)
    elif tree[0] == "prod":
        _product(tree, parent, tables)
        for side, factors in (("above", tree[2]), ("below", tree[3])):
            for factor in factors:
                _node(factor, f"product {side}", tables)
    elif tree[0] not in _LEAVES:
        tables["operators"][name] += 1
        tables["above_a_function"][f"{name} < {parent}"] += 1
        tables["argument_of_a_function"][f"{name}: {argument(tree[1])}"] += 1
        if name == "other":
            tables["other_functions"][tree[0]] += 1
        if name in _POWERS:
            tables["numbers_as_exponents"][str(_POWERS[name])] += 1
        if name == "pow":
            _power(tree, tables)
        _node(tree[1], "pow base" if name == "pow" else name, tables)


def _sum(tree: Node, parent: str, tables: Tables) -> None:
    signs = [sign for sign, _ in tree[1]]
    minus = signs.count(-1)
    tables["terms_of_a_sum"][str(len(signs))] += 1
    tables["terms_of_a_sum_and_where"][f"{parent}: {len(signs)}"] += 1
    tables["minus_signs_of_a_sum"][f"{minus} of {len(signs)}"] += 1
    tables["operators"]["neg"] += minus == len(signs)
    tables["operators"]["sub"] += min(minus, len(signs) - 1)
    tables["operators"]["add"] += len(signs) - 1 - min(minus, len(signs) - 1)
    for sign, term in tree[1]:
        tables["term_of_a_sum"][argument(term)] += 1
        if term[0] == "num":
            tables["numbers_as_terms"][str(term[1])] += 1
            tables["sums_with_a_number"]["number minus" if sign > 0 and minus else "other"] += 1


def _product(tree: Node, parent: str, tables: Tables) -> None:
    _, coefficient, above, below = tree
    numbers = abs(coefficient).as_integer_ratio()
    n_above, n_below = len(above) + (numbers[0] != 1), len(below) + (numbers[1] != 1)
    operators = tables["operators"]
    operators["mul"] += max(n_above - 1, 0) + max(n_below - 1, 0)
    operators["neg"] += coefficient < 0
    operators["div"] += n_below > 0
    operators["div with 1 above (inv)"] += n_above == 0
    place = parent if parent in ("root", "sum") else "elsewhere"
    symbols = [sum(factor != ("pi",) for factor in side) for side in (above, below)]
    tables["factors_above_and_below"][f"{symbols[0]}/{symbols[1]}"] += 1
    tables[f"factors_above_and_below_{place}"][f"{symbols[0]}/{symbols[1]}"] += 1
    tables["factors_of_a_product"][str(sum(symbols))] += 1
    if abs(coefficient) != 1:
        tables["numbers_as_factors"][str(abs(coefficient))] += 1
        tables["parent_to_child"]["product > integer or fraction"] += 1
    tables["products_with_number"]["yes" if abs(coefficient) != 1 else "no"] += 1
    tables["products_with_minus"]["yes" if coefficient < 0 else "no"] += 1
    for side, factors in (("above", above), ("below", below)):
        tables["pi_as_factor"][side] += factors.count(("pi",))
        tables[f"sums_among_factors_{side}"][str(sum(factor[0] == "sum" for factor in factors))] += 1
        for factor in factors:
            if factor[0] == "sum":
                tables["terms_of_a_sum_that_is_a_factor"][f"{side}: {len(factor[1])}"] += 1
    functions = sum(kind(factor) in _FUNCTIONS for factor in above + below)
    tables["functions_among_factors"][str(functions)] += 1


def _power(tree: Node, tables: Tables) -> None:
    exponent = tree[2]
    if exponent[0] == "num":
        tables["exponents_of_pow"][str(exponent[1])] += 1
        tables["numbers_as_exponents"][str(exponent[1])] += 1
    else:
        tables["exponents_of_pow"]["with symbols: " + argument(exponent)] += 1
        tables["base_of_pow_with_symbols_in_exponent"][argument(tree[1])] += 1
        _node(exponent, "pow exponent", tables)


def argument(tree: Node) -> str:
    """Return the class of a tree as an argument of a function or a term of a sum."""
    if tree[0] in _LEAVES:
        return kind(tree)
    if tree[0] == "sum":
        return f"sum of {len(tree[1])}"
    minus = "minus " if tree[0] == "prod" and tree[1] < 0 else ""
    below = (
        list(walk(tree))[1:]
        if tree[0] != "prod"
        else [node for part in children(tree) for node in walk(part)]
    )
    if tree[0] != "prod":
        inside = "sum" if any(node[0] == "sum" for node in below) else "no sum"
        return f"{kind(tree)} with {inside} inside"
    if any(node[0] == "sum" for node in below):
        return minus + "product with a sum"
    if any(kind(node) in _FUNCTIONS for node in below):
        return minus + "product with a function"
    return f"{minus}{'quotient' if tree[3] else 'product'} of {len(tree[2]) + len(tree[3])}"
