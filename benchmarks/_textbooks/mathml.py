"""Displayed formulas of textbooks in CNXML, read from presentation MathML into tokens and sides.

Presentation MathML says how a formula looks, not what it means: a letter with a subscript is read as one
symbol, and what no formula of real variables has becomes a token `("bad", reason)`, so that other sides of
the same chain of equalities can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

Token = tuple

_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_CNXML = "{http://cnx.rice.edu/cnxml}"
_FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "ln": "log",
    "log": "log", "exp": "exp", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "arcsin",
    "arccos": "arccos", "arctan": "arctan",
}  # fmt: skip
#: Names of several letters that are one symbol; other short groups of letters are products.
_NAMES = {
    "KE",
    "PE",
    "TE",
    "ME",
    "GPE",
    "emf",
    "FV",
    "PV",
    "FVa",
    "PVa",
    "PYMT",
    "NPV",
    "WACC",
    "pH",
    "pOH",
    "SHM",
}
_STOPS = {
    "and",
    "or",
    "where",
    "for",
    "so",
    "if",
    "with",
    "when",
    "in",
    "that",
    "is",
    "thus",
    "then",
    "since",
}
_SENTENCE = {"of", "the", "per", "by"}
#: Text that is several words, as names of quantities are in finance.
_PHRASE = re.compile(r"[A-Za-z’'-]+(?:\s+[A-Za-z’'-]+)*\s+[A-Za-z]{3,}|[A-Za-z]{3,}\s+[A-Za-z’'\s-]+")
_UNIT_SIGNS = set("°ºÅ%$")
_TIMES = {"×", "·", "⋅", "*", "•", "∗"}
_MINUS = {"−", "-", "–", "‒"}
_EQUAL = {"=", "≈", "≡", "≅", "≃", "∼"}
#: The closing bracket of every opening one.
BRACKETS = {"(": ")", "[": "]", "{": "}"}
_PRIMES = {"′", "'", "’", "″", "′′"}
_PIECE = re.compile(r"\d[\d,]*\.?\d*|\.\d+|[^\W\d_]+|\S", re.UNICODE)


_MANY = (
    "kg|mg|cm|mm|km|nm|pm|fm|eV|keV|MeV|GeV|mol|Hz|kHz|MHz|Pa|kPa|atm|kJ|MJ|kW|MW|rad|min|mL|kcal|cal|lb|ft"
    "|Wb|mA|torr"
)
#: Text that is a unit by its length or its form, or a single letter that may be one.
_UNIT = re.compile(rf"\s*(?:{_MANY}|[mNsJKVCATWgLFHΩ])(?:[/·⋅](?:{_MANY}|[mNsJKVCATW]))*\s*")


class LeftOut(Exception):
    """A formula that is not counted; the message is the reason."""


def equations(folder) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield the name of the book's folder and every displayed formula of the modules below `folder`."""
    for file in sorted(folder.glob("*/modules/*/index.cnxml")):
        for equation in ElementTree.parse(file).getroot().iter(_CNXML + "equation"):
            for formula in equation.iter(_MATHML + "math"):
                yield file.parts[-4], formula


def lines(formula: ElementTree.Element) -> list[list[ElementTree.Element]]:
    """Return the rows of a formula that is a table, and the whole formula otherwise.

    A row that begins with a sign of equality, plus or minus continues the row before.
    """
    tables = list(formula.iter(_MATHML + "mtable"))
    if len(tables) != 1:
        return [[formula]]
    found: list[list[ElementTree.Element]] = []
    for row in tables[0]:
        text = "".join(row.itertext()).strip()
        if found and text[:1] in _EQUAL | _MINUS | {"+"}:
            found[-1].extend(row)
        else:
            found.append(list(row))
    return found


def _words(text: str, italic: bool) -> list[Token]:
    """Return the tokens of the text of an element; `italic` where letters stand for symbols of one letter."""
    found: list[Token] = []
    if not italic and _PHRASE.fullmatch(text.strip()):
        return [("id", " ".join(text.split()))]
    for piece in _PIECE.findall(text):
        if piece in _UNIT_SIGNS:
            found.append(("bad", "number with a unit"))
        elif piece in _SENTENCE:
            found.append(("bad", "words of a sentence"))
        elif piece[0].isdigit() or piece[0] == ".":
            if piece in (".", ","):
                found.append(("stop",))
            else:
                found.append(("num", piece.replace(",", "").rstrip(".")))
        elif piece in _FUNCTIONS:
            found.append(("fn", _FUNCTIONS[piece]))
        elif piece in _STOPS:
            found.append(("stop",))
        elif piece in _NAMES or (len(piece) == 1 and piece.isalpha()):
            found.append(("id", piece))
        elif piece.isalpha():
            spoken = len(piece) > 2 and re.search("[aeiouy]", piece.lower()) and piece[1:].islower()
            found.extend([("id", piece)] if spoken else [("id", letter) for letter in piece])
        else:
            found.append(_sign(piece))
    return found


def _sign(piece: str) -> Token:
    if piece in (",", ".", ";", ":"):
        return ("stop",)
    if piece in _MINUS:
        return ("op", "-")
    if piece in _TIMES:
        return ("op", "*")
    if piece in _EQUAL:
        return ("eq",)
    if piece in _PRIMES:
        return ("sub", "'")
    if piece in BRACKETS:
        return ("open", piece)
    if piece in BRACKETS.values():
        return ("close", piece)
    if piece in ("+", "/"):
        return ("op", piece)
    if piece in ("|", "∣", "│"):
        return ("bar",)
    reasons = {"∫": "integral", "∮": "integral", "∬": "integral", "∑": "sum over an index", "∂": "derivative"}
    reasons |= dict.fromkeys("→⟶⇌↔⇒⇔", "reaction or implication") | dict.fromkeys("∇", "derivative")
    reasons |= dict.fromkeys("<>≤≥∝≠≪≫", "no equality")
    return ("bad", reasons.get(piece, "sign outside of the grammar"))


def tokens(element: ElementTree.Element) -> list[Token]:
    """Return the tokens of a MathML element."""
    name = element.tag.removeprefix(_MATHML)
    if "bold" in element.get("mathvariant", ""):
        return [("bad", "vector or matrix")]
    if name == "mtext" and _UNIT.fullmatch(element.text or ""):
        return [("unit", (element.text or "").strip())]
    if name in ("mi", "mtext", "mn", "mo"):
        return _words(element.text or "", name == "mi")
    if name in ("mspace", "mphantom"):
        return [("stop",)] if "em" in element.get("width", "") and _width(element) >= 1 else []
    parts = [child for child in element if isinstance(child.tag, str)]
    if name in ("math", "mrow", "mstyle", "mpadded", "mtd", "mtr"):
        return [token for part in parts for token in tokens(part)]
    if name == "mfenced":
        inner = [token for part in parts for token in tokens(part)]
        return [_sign(element.get("open", "(")), *inner, _sign(element.get("close", ")"))]
    if name == "mfrac":
        return [("frac", tuple(tokens(parts[0])), tuple(tokens(parts[1])))]
    if name == "msqrt":
        return [("root", tuple(token for part in parts for token in tokens(part)), (("num", "2"),))]
    if name == "mroot":
        return [("root", tuple(tokens(parts[0])), tuple(tokens(parts[1])))]
    if name in ("msub", "msup", "msubsup"):
        return _scripted(name, parts)
    if name == "mover":
        accent = "".join(parts[1].itertext()).strip()
        base = tokens(parts[0])
        if accent in ("¯", "‾", "_", "−", "–", "̄") and base and base[-1][0] == "id":
            return [*base[:-1], ("id", base[-1][1] + "_mean")]
        return [("bad", "vector or matrix")]
    reasons = {"menclose": "cancelled terms", "mtable": "table"}
    return [("bad", reasons.get(name, "sum over an index or a limit"))]


def _width(element: ElementTree.Element) -> float:
    return float(re.sub("[^0-9.]", "", element.get("width", "0")) or 0)


def _scripted(name: str, parts: list[ElementTree.Element]) -> list[Token]:
    found = tokens(parts[0])
    if name != "msup":
        text = re.sub(r"\s", "", "".join(parts[1].itertext())).strip(".,;")
        if not found or found[-1][0] not in ("id", "unit"):
            return [("bad", "subscript of something other than a symbol")]
        found[-1] = ("id", f"{found[-1][1]}_{text}" if text else found[-1][1])
    if name != "msub":
        text = "".join(parts[-1].itertext()).strip()
        if text in _PRIMES | {"*"}:
            return [*found, ("sub", "'")]
        if text in ("+", "−", "–", "2+", "2−", "°", "∘", "º"):
            return [("bad", "ion or number with a unit")]
        found.append(("sup", tuple(tokens(parts[-1]))))
    return found


def joined(found: list[Token]) -> list[Token]:
    """Return tokens in which a prime, a difference sign and names of several words are part of a symbol."""
    result: list[Token] = []
    for token in found:
        last = result[-1] if result else ("",)
        if token[0] == "unit":
            # After a number that no law has as a factor a letter is a unit; elsewhere it is a symbol.
            after_number = last[0] == "unit" or (last[0] == "num" and last[1] not in "1234")
            token = ("bad", "number with a unit") if after_number or len(token[1]) > 1 else ("id", token[1])
        if token[0] == "sub":
            if last[0] != "id":
                raise LeftOut("prime of something other than a symbol")
            result[-1] = ("id", last[1] + token[1])
        elif token[0] == "id" and last[0] == "id" and last[1] in ("Δ", "∆"):
            result[-1] = ("id", "Δ" + token[1])
        elif token[0] == "id" == last[0] and _is_word(token[1]) and _is_word(last[1]):
            result[-1] = ("id", last[1] + token[1])
        else:
            result.append(token)
    return result


def _is_word(name: str) -> bool:
    return len(name.partition("_")[0]) > 2 and "Δ" not in name


def clauses(row: list[Token]) -> list[list[list[Token]]]:
    """Return the equations of a row of tokens, each as its sides between the signs of equality."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in row:
        depth += {"open": 1, "close": -1}.get(token[0], 0)
        if token[0] == "stop" and depth <= 0:
            found.append([])
        elif len(found) > 1 and not found[-1] and _continues(found[-2], token):
            found[-2:] = [found[-2] + [token]]
        else:
            found[-1].append(token)
    sides = []
    for clause in found:
        sides.append([[]])
        for token in clause:
            if token[0] == "eq":
                sides[-1].append([])
            else:
                sides[-1][-1].append(token)
    return sides


def _continues(clause: list[Token], token: Token) -> bool:
    """Return whether the gap between a clause and the next token lies within an equation."""
    return token[0] in ("eq", "op") or (bool(clause) and clause[-1][0] in ("eq", "op"))


def defined_symbol(side: list[Token]) -> str | None:
    """Return the symbol a formula defines, or None.

    The left side is one symbol, a power or a function of it, or the symbol as a function of listed symbols.
    """
    found = joined(side)
    if len(found) == 2 and (found[0][0] == "fn" or (found[1][0] == "sup" and found[1][1][0][0] == "num")):
        found = [token for token in found if token[0] == "id"]
    if not found or found[0][0] != "id":
        return None
    rest = found[1:]
    listed = len(rest) > 2 and rest[0][0] == "open" and rest[-1][0] == "close"
    if rest and not (listed and all(token[0] in ("id", "stop") for token in rest[1:-1])):
        return None
    return found[0][1]
