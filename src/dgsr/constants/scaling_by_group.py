"""Linear scaling by group: every group of rows has a slope and an intercept of its own, in closed form.

In this file `point` is a `dgsr.constants.jacobian.Point`, and the weighted mean of y is 0 in every group.
"""

from __future__ import annotations

import numpy as np

from dgsr.kernels.compilation import allocation_free

#: Largest squared relative spread of values that count as constant, whose rounding a slope would scale up.
CONSTANT_SHARE = 1e-16


@allocation_free
def scale_by_group(point, data):
    """Fit slope and intercept of every group, and write them and the residuals into `point`.

    The values of `point` are centred. Return the weighted sum of squared residuals. `scale[0]` becomes 0 if
    all slopes are 0, and else 1.
    """
    values, residuals, y, w, groups = point.values, point.residuals, data.y, data.weights, data.groups
    totals, means, squares, slopes, _, _ = point.by_group
    point.by_group[...] = 0.0
    n, has_slope, loss = len(y), 0.0, 0.0
    for j in range(n):
        totals[groups[j]] += w[j]
        means[groups[j]] += w[j] * values[j]
    for k in range(len(totals)):
        if totals[k] > 0.0:
            means[k] /= totals[k]
    for j in range(n):
        k = groups[j]
        values[j] -= means[k]
        squares[k] += w[j] * values[j] * values[j]
        slopes[k] += w[j] * values[j] * y[j]
    for k in range(len(totals)):
        least = CONSTANT_SHARE * (squares[k] + totals[k] * means[k] * means[k])
        if least < squares[k] < np.inf:
            slopes[k] /= squares[k]
            has_slope = 1.0
        else:
            slopes[k] = 0.0
    for j in range(n):
        residuals[j] = y[j] - slopes[groups[j]] * values[j]
        loss += w[j] * residuals[j] * residuals[j]
    point.scale[0], point.scale[1] = has_slope, 0.0
    return loss


@allocation_free
def project_by_group(derivatives, point, data):
    """Replace the derivatives of f by a constant by those of the fit, whose slopes and intercepts move.

    Return the weighted sum of squares of those at fixed slopes.
    """
    values, w, groups = point.values, data.weights, data.groups
    totals, _, squares, slopes, means, shares = point.by_group
    means[:] = 0.0
    shares[:] = 0.0
    for j in range(len(w)):
        means[groups[j]] += w[j] * derivatives[j]
        shares[groups[j]] += w[j] * derivatives[j] * values[j]
    for k in range(len(totals)):
        if slopes[k] != 0.0:
            means[k] /= totals[k]
            shares[k] *= slopes[k] / squares[k]
    before = 0.0
    for j in range(len(w)):
        k = groups[j]
        centred = slopes[k] * (derivatives[j] - means[k])
        before += w[j] * centred * centred
        derivatives[j] = centred - shares[k] * values[j] if slopes[k] != 0.0 else 0.0
    return before
