"""Quotients of polynomials of several columns, or a root or an exponential of one.

Thirty laws are written out, from kinetics, optics, circuits and mechanics. The first twelve are those that
`dgsr.finders.linear.quotients` was developed on. Others are drawn: one to four columns, up to three terms in
the numerator and four in the denominator, each a product of at most two columns, every one of which moves the
target by a twentieth of its standard deviation or more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _laws.law import Law

_USUAL = (0.1, 10.0)
#: Columns of drawn laws are uniform in one of these.
RANGES = (_USUAL, (1.0, 5.0), (0.05, 1.0), (20.0, 80.0))

WRITTEN = (
    Law("two substrates", "12.5*A*B/(6.5 + 2.1*A + 0.8*B + A*B)", {"A": _USUAL, "B": _USUAL}),
    Law("competitive inhibition", "8.5*S/(2.4*(1 + I/1.7) + S)", {"S": _USUAL, "I": _USUAL}),
    Law("substrate inhibition", "9.2*S*T/(3.2 + S + S**2/4.1)", {"S": _USUAL, "T": _USUAL}),
    Law("Langmuir, two gases", "3.9*a/(1 + 1.2*a + 0.45*b)", {"a": _USUAL, "b": _USUAL}),
    Law("Hougen-Watson", "(2.2*a - 0.6*b)/(1 + 0.9*a + 0.35*b + 0.15*c)",
        {"a": _USUAL, "b": _USUAL, "c": _USUAL}),
    Law("resistors in parallel", "1/(1/a + 1/b + 1/c)", {"a": (1, 100), "b": (1, 100), "c": (1, 100)}),
    Law("parallel and in series", "a*b*c/(a*b + b*c + a*c) + 2.1*a",
        {"a": (1, 10), "b": (1, 10), "c": (1, 10)}),
    Law("lens maker", "(n - 1)*(1/r - 1/s + (n - 1)*d/(n*r*s))",
        {"n": (1.1, 5), "r": (1.1, 5), "s": (1.1, 5), "d": (1.1, 5)}),
    Law("gravity", "6.7*m*n/(x**2 + y**2 + z**2)",
        {"m": (1, 5), "n": (1, 5), "x": (1, 5), "y": (1, 5), "z": (1, 5)}),
    Law("Pade", "(1 + 0.5*x + 0.2*x*z)/(1 + 0.3*z + 0.4*z**2)", {"x": (0.1, 5), "z": (0.1, 5)}),
    Law("response surface", "2.3*a**2 - 1.7*a*b + 0.4*b*c**2 - 3.1*c + 5.2",
        {"a": (-3, 3), "b": (-3, 3), "c": (-3, 3)}),
    Law("Monod, twice", "0.8*x*s/(0.5 + s)*o/(1.2 + o)", {"s": (0.1, 5), "o": (0.1, 5), "x": (0.1, 5)}),
    Law("ping-pong", "7.3*A*B/(1.9*A + 3.4*B + A*B)", {"A": _USUAL, "B": _USUAL}),
    Law("uncompetitive inhibition", "6.4*S/(1.8 + S*(1 + I/2.6))", {"S": _USUAL, "I": _USUAL}),
    Law("mixed inhibition", "5.7*S/(1.6*(1 + I/0.9) + S*(1 + I/4.2))", {"S": _USUAL, "I": _USUAL}),
    Law("Langmuir-Hinshelwood", "4.4*a*b/(1 + 0.7*a + 0.3*b)**2", {"a": _USUAL, "b": _USUAL}),
    Law("Eley-Rideal", "2.9*a*b/(1 + 0.6*a)", {"a": _USUAL, "b": _USUAL}),
    Law("Beddington-DeAngelis", "3.3*N*P/(1 + 0.8*N + 0.5*P)", {"N": _USUAL, "P": _USUAL}),
    Law("two preys", "1.4*N/(1 + 0.35*N + 0.9*M)", {"N": _USUAL, "M": _USUAL}),
    Law("Doppler", "440*(343 + v)/(343 - u)", {"v": (0, 60), "u": (0, 60)}),
    Law("addition of velocities", "(u + v)/(1 + u*v/9.3)", {"u": (0.1, 2.9), "v": (0.1, 2.9)}),
    Law("bridge", "5.5*(b/(a + b) - d/(c + d))", {"a": (1, 9), "b": (1, 9), "c": (1, 9), "d": (1, 9)}),
    Law("divider under load", "12.6*b*c/(a*b + b*c + a*c)", {"a": (1, 9), "b": (1, 9), "c": (1, 9)}),
    Law("van der Waals", "8.314*T/(V - 0.043) - 0.364/V**2", {"T": (250, 400), "V": (0.1, 2)}),
    Law("resonance", "3.6/((w - 2.5)**2 + 0.16*g)", {"w": (0.5, 5), "g": (1, 9)}),
    Law("Stern-Volmer, two quenchers", "9.1/((1 + 0.4*q)*(1 + 0.15*s))", {"q": _USUAL, "s": _USUAL}),
    Law("speed after a fall", "sqrt(v**2 + 19.62*h)", {"v": (0, 9), "h": (0.1, 9)}),
    Law("time dilation", "t/sqrt(1 - v**2/9.3)", {"t": (1, 9), "v": (0.1, 2.8)}),
    Law("impedance", "sqrt(R**2 + (w*0.7 - 4.2/w)**2)", {"R": (1, 9), "w": (0.5, 5)}),
    Law("Antoine", "10**(8.07 - 1730.6/(233.4 + T))", {"T": (1, 100)}),
)  # fmt: skip


def drawn(n: int, seed: int) -> Iterator[Law]:
    """Yield quotients of random polynomials, one in six under a root and one in six under an exponential."""
    rng = np.random.default_rng(seed)
    k = 0
    while k < n:
        columns = {f"x{i + 1}": RANGES[rng.integers(len(RANGES))] for i in range(1 + k % 4)}
        low, high = np.array(list(columns.values())).T
        X = rng.uniform(low, high, (500, len(columns)))
        above, below = (_terms(rng, X, most) for most in (3, 4))
        texts = [" + ".join(text for text, _ in terms).replace("+ -", "- ") for terms in (above, below)]
        outer = ("{}", "{}", "{}", "{}", "sqrt({})", "exp({})")[rng.integers(6)]
        text = outer.format(f"({texts[0]})/({texts[1]})")
        law = Law(f"drawn {k}", text, columns)
        with np.errstate(all="ignore"):
            y = law.values(X)
            p, q = (sum(values for _, values in terms) for terms in (above, below))
            lacking = [(p - values) / q for _, values in above] + [p / (q - values) for _, values in below]
        inverse = {"s": np.sqrt, "e": np.exp}.get(outer[0], np.asarray)
        names_used = all(name in text for name in columns)
        if not (np.isfinite(y).all() and names_used and y.std() > 0.1 * np.abs(y).mean()):
            continue
        if np.abs(q).min() < 0.1 * np.abs(q).mean() or np.abs(y).max() > 20.0 * np.abs(y).mean():
            continue
        with np.errstate(all="ignore"):
            moves = [np.std(inverse(other) - y) / y.std() for other in lacking]
        if all(move > 0.05 for move in moves if np.isfinite(move)):
            yield law
            k += 1


def _terms(rng: np.random.Generator, X: np.ndarray, most: int) -> list[tuple[str, np.ndarray]]:
    """Return the texts and the values of different random terms of a polynomial, all of a size."""
    found: dict[str, tuple[str, np.ndarray]] = {}
    for _ in range(int(rng.integers(1, most + 1))):
        chosen = sorted(rng.integers(X.shape[1], size=rng.choice(3, p=(0.25, 0.45, 0.3))))
        product = "*".join(f"x{i + 1}" for i in chosen)
        values = np.prod(X[:, chosen], axis=1)
        number = float(f"{rng.uniform(0.3, 2.0) * rng.choice((1, 1, 1, -1)) / values.mean():.3g}")
        found[product] = (f"{number!r}*{product}" if product else repr(number), number * values)
    return list(found.values())
