"""What must be so before anything is imported."""

from __future__ import annotations

import os

# Else scikit-learn skips its checks with other arrays than numpy's.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
