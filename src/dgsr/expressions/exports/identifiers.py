"""Names of columns as identifiers of a programming language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

# Words that C reserves for compilers and for macros of its headers.
C_MACROS = re.compile(r"_.*|(?:M|FP|MATH)_\w*")


def identifiers(names: Sequence[str], taken: Collection[str], is_c: bool = False) -> list[str]:
    """Make distinct identifiers of the names of columns.

    A name that is an identifier is not changed; in others, invalid characters become "_". No identifier is
    among the words in `taken`. With `is_c` it is ASCII and starts with no underscore, as in C; else it is one
    of Python.

    Examples
    --------
    >>> identifiers(["mass", "a b", "a-b", "lambda", "2nd"], {"lambda"})
    ['mass', 'a_b', 'a_b_2', 'lambda_', 'x_2nd']
    """
    words = [unicodedata.normalize("NFKC", name) for name in names]  # as Python normalises its source

    def is_usable(word: str) -> bool:
        is_taken = word in taken or (is_c and (not word.isascii() or C_MACROS.fullmatch(word)))
        return word.isidentifier() and not is_taken

    kept: set[str] = set(filter(is_usable, words))
    used = {*taken, *kept}
    result = []
    for i, word in enumerate(words):
        if word in kept:
            kept.remove(word)  # the first of equal names has it
        else:
            word = _cleaned(word, is_c) or f"x{i + 1}"
            if not word.isidentifier() or (is_c and C_MACROS.fullmatch(word)):
                word = "x_" + word
            if word in taken:
                word += "_"
            word = fresh(word, used)
            used.add(word)
        result.append(word)
    return result


def _cleaned(word: str, is_c: bool) -> str:
    if is_c:
        decomposed = unicodedata.normalize("NFKD", "".join(map(spelled, word)))
        word = "".join(c for c in decomposed if not unicodedata.combining(c))
    word = re.sub(r"\W+", "_", word, flags=re.ASCII if is_c else 0)
    # Some characters count as letters or digits but are not allowed in identifiers.
    word = "".join(c if ("x" + c).isidentifier() else "_" for c in word)
    return word.strip("_")


def spelled(character: str) -> str:
    """Return the English name of a Greek letter, and other characters unchanged."""
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if match is None:
        return character
    word = match[2].replace("LAMDA", "LAMBDA")
    return word.lower() if match[1] == "SMALL" else word.capitalize()


def fresh(word: str, used: Collection[str], start: int = 0) -> str:
    """Return the word, followed by a number if it is used already or `start` is given."""
    if not start and word not in used:
        return word
    number, link = (start, "") if start else (2, "_")
    while f"{word}{link}{number}" in used:
        number += 1
    return f"{word}{link}{number}"
