#!/bin/bash
# Install dgsr, its generators included, into the environment made of environment.yml and requirements.txt.
set -e

# What pip is to install: the release that is submitted, or a local clone to try a change.
DGSR="${DGSR:-git+https://example.org/dgsr.git@v0.1.0}"
python -m pip install "$DGSR"

# numba compiles at the first fit and keeps the result: let that be now, before any clock runs.
OMP_NUM_THREADS=1 python - <<'END'
import numpy as np
from dgsr import DGSRRegressor

# With noise, because a law that is found at once leaves half of the loops uncompiled.
rng = np.random.default_rng(0)
X = rng.uniform(1.0, 2.0, (50, 2))
y = X[:, 0] / X[:, 1] + 0.01 * rng.normal(size=50)
est = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(X, y)
print("dgsr is installed and finds", est.expression_, "with R2", est.score(X, y))
END
