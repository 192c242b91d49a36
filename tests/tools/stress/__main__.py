"""Kill and interrupt fits, and feed generated inputs to every door of the package: `nox -s stress`.

    python tests/tools/stress [--seed N] [--parts kills interrupts inputs fits surroundings]

Every part prints what it did and how it ended. A fault is a crash, a hang, an exception that is none of those
that are documented, a message of fewer than three words, or a result that is not the right one. Faults are
written to build/stress.txt with what leads to them, and the program then ends with 1.
"""

from __future__ import annotations

import argparse
import sys
import time

from faults import FAULTS, Faults
from inputs import fits, inputs
from interrupts import interrupts
from kills import kills
from surroundings import surroundings

PARTS = {
    "kills": kills,
    "interrupts": interrupts,
    "inputs": inputs,
    "fits": fits,
    "surroundings": surroundings,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    arguments = parser.parse_args()
    faults = Faults()
    for part in arguments.parts:
        began = time.monotonic()
        said = PARTS[part](arguments.seed, faults)
        if part != "inputs":  # which has printed every door
            print(*([said] if isinstance(said, str) else said), sep="\n")
        print(f"{part}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"{faults.n} faults" + (f", in {FAULTS}" if faults.n else ""))
    return int(faults.n > 0)


if __name__ == "__main__":
    sys.exit(main())
