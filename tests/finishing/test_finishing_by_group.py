"""How the constants of a formula are shared among groups."""

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import get_library
from dgsr.finishing.by_group import _whole

LIBRARY = get_library("physics", 1)


def test_the_ways_to_write_scale_and_offset_begin_at_one_formula():
    x = np.linspace(0.5, 3.0, 20)[:, None]
    data = DataSet.from_arrays(x, 10.0 * x[:, 0] + 7.0)
    ways = _whole(("mul", 5.0, "x1"), data, LIBRARY)
    assert len(ways) == 4
    with_offset, _, raised, _ = (
        Population.of_one(LIBRARY, way.tokens, way.constants[None]).predict(x)[0] for way in ways
    )
    np.testing.assert_allclose(with_offset, data.y)
    np.testing.assert_allclose(raised, data.y)  # 10*(x1 + 0.7)
