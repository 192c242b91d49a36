"""Laws with a column in an exponent, such as compound interest, annuities and rates of reactions.

The first six are of the laws of textbooks, which `dgsr.finders.linear.powers` was developed on. The others
were written before the code was run on any of them, the laws of decay before it knew bases 1 - x, and the
last eight before it knew bases 1 + x/y. None is drawn.
"""

from __future__ import annotations

from _laws.law import Law

_MONEY, _RATE, _YEARS, _PERCENT = (100, 10000), (0.01, 0.15), (2, 40), (1, 15)

DEVELOPED_ON = (
    Law("compound interest", "P*(1 + r)**n", {"P": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("annuity due", "P*((1 + r)**n - 1)/r*(1 + r)", {"P": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("future value of an annuity", "P*((1 + r)**n - 1)/r", {"P": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("value of coupons", "c*(1 - (1 + r)**(-n))/r", {"c": (5, 100), "r": _RATE, "n": _YEARS}),
    Law("price of a bond", "p/(1 + r)**n + c*(1 - (1 + r)**(-n))/r",
        {"p": _MONEY, "c": (5, 100), "r": _RATE, "n": _YEARS}),
    Law("rate of a reaction", "k*A**m*B**n",
        {"k": (0.1, 10), "A": (0.1, 3), "m": (0.5, 2.5), "B": (0.1, 3), "n": (0.5, 2.5)}),
)  # fmt: skip

OTHERS = (
    Law("recovery of capital", "P*r*(1 + r)**n/((1 + r)**n - 1)", {"P": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("sinking fund", "F*r/((1 + r)**n - 1)", {"F": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("balance of a loan", "P*(1 + r)**k - A*((1 + r)**k - 1)/r",
        {"P": (5000, 10000), "A": (100, 400), "r": _RATE, "k": (1, 15)}),
    Law("present worth", "F/(1 + r)**n", {"F": _MONEY, "r": _RATE, "n": _YEARS}),
    Law("gradient", "G*(1/r - n/((1 + r)**n - 1))", {"G": (10, 500), "r": _RATE, "n": _YEARS}),
    Law("growing annuity", "C/(r - g)*(1 - ((1 + g)/(1 + r))**n)",
        {"C": _MONEY, "r": (0.06, 0.15), "g": (0.01, 0.05), "n": _YEARS}),
    Law("deferred perpetuity", "C/r/(1 + r)**n", {"C": (10, 500), "r": _RATE, "n": (1, 20)}),
    Law("real value", "P*((1 + i)/(1 + f))**n", {"P": _MONEY, "i": _RATE, "f": (0.0, 0.1), "n": _YEARS}),
    Law("bond, rates in percent", "c*(1 - (1 + y/100)**(-n))/(y/100) + 100/(1 + y/100)**n",
        {"c": (1, 12), "y": _PERCENT, "n": _YEARS}),
    Law("interest in percent", "P*(1 + r/100)**n", {"P": _MONEY, "r": _PERCENT, "n": _YEARS}),
    Law("compounded m times a year", "P*(1 + r/m)**(m*n)",
        {"P": _MONEY, "r": _RATE, "m": (1, 12), "n": (1, 20)}),
    Law("Q10", "R*Q**((T - 20)/10)", {"R": (0.5, 5), "Q": (1.5, 3.5), "T": (5, 40)}),
    Law("growth with harvest", "N*L**t - H*(L**t - 1)/(L - 1)",
        {"N": (50, 200), "L": (1.05, 1.5), "t": (1, 10), "H": (1, 9)}),
    Law("half-lives", "N*0.5**(t/h)", {"N": (1, 10), "t": (0, 10), "h": (1, 9)}),
    Law("doublings", "N*2**(t/d)", {"N": (1, 10), "t": (0, 10), "d": (2, 9)}),
    Law("Freundlich", "K*C**(1/n)", {"K": (0.5, 8), "C": (0.1, 20), "n": (1, 5)}),
    Law("Cobb-Douglas", "A*K**a*L**(1 - a)", {"A": (0.5, 3), "K": (1, 50), "L": (1, 50), "a": (0.1, 0.9)}),
    Law("polytropic", "p*(V/W)**k", {"p": (1, 9), "V": (1, 5), "W": (1, 5), "k": (1.0, 1.7)}),
    Law("adiabatic compression", "T*(q/p)**((k - 1)/k)",
        {"T": (250, 400), "q": (1, 9), "p": (1, 9), "k": (1.1, 1.7)}),
    Law("wind at a height", "v*(h/10)**a", {"v": (1, 15), "h": (5, 150), "a": (0.05, 0.4)}),
    Law("at least once", "1 - (1 - p)**n", {"p": (0.01, 0.4), "n": (1, 20)}),
    Law("cells that are hit", "N*(1 - (1 - 1/N)**k)", {"N": (5, 60), "k": (1, 100)}),
)  # fmt: skip

# Written before bases 1 - x were tried, of which the 28 laws before have one.
DECAYS = (
    Law("declining balance", "P*(1 - d)**t", {"P": _MONEY, "d": (0.05, 0.4), "t": (1, 15)}),
    Law("declining balance, percent", "P*(1 - d/100)**t", {"P": _MONEY, "d": (5, 40), "t": (1, 15)}),
    Law("charge of a year", "P*d*(1 - d)**(t - 1)", {"P": _MONEY, "d": (0.05, 0.4), "t": (1, 15)}),
    Law("geometric distribution", "p*(1 - p)**(k - 1)", {"p": (0.05, 0.6), "k": (1, 10)}),
    Law("exactly one", "n*p*(1 - p)**(n - 1)", {"n": (1, 20), "p": (0.01, 0.4)}),
    Law("one at most", "(1 - p)**n + n*p*(1 - p)**(n - 1)", {"n": (1, 20), "p": (0.01, 0.4)}),
    Law("doses that are left", "D*(1 - (1 - f)**n)/f", {"D": (5, 100), "f": (0.05, 0.6), "n": (1, 12)}),
    Law("light through panes", "I*(1 - r)**(2*n)", {"I": (50, 1000), "r": (0.02, 0.2), "n": (1, 8)}),
)  # fmt: skip

# Written before bases such as 1 + r/m were tried, of which the first 36 laws have one.
OF_QUOTIENTS = (
    Law("present value, m times a year", "F/(1 + r/m)**(m*n)",
        {"F": _MONEY, "r": _RATE, "m": (1, 12), "n": (1, 20)}),
    Law("a year's growth, m times", "P*(1 + r/m)**m", {"P": _MONEY, "r": (0.02, 0.9), "m": (1, 12)}),
    Law("velocity in a pipe", "v*(1 - r/R)**(1/n)",
        {"v": (0.5, 4), "r": (0, 2), "R": (2.1, 5), "n": (5, 10)}),
    Law("surface tension", "s*(1 - T/C)**(11/9)", {"s": (20, 80), "T": (250, 400), "C": (450, 700)}),
    Law("no parasites", "N*(1 + m/k)**(-k)", {"N": (10, 500), "m": (0.2, 6), "k": (0.3, 4)}),
    Law("washes", "c*(v/(v + w))**n", {"c": (1, 20), "v": (0.1, 1), "w": (0.5, 4), "n": (1, 6)}),
    Law("heat of vaporisation", "H*((1 - T/C)/(1 - U/C))**0.38",
        {"H": (20, 50), "T": (250, 400), "U": (250, 400), "C": (450, 700)}),
    Law("hyperbolic decline", "q/(1 + b*t/T)**(1/b)",
        {"q": (50, 900), "b": (0.2, 1), "t": (0, 60), "T": (5, 40)}),
)  # fmt: skip

WRITTEN = (*DEVELOPED_ON, *OTHERS, *DECAYS, *OF_QUOTIENTS)
