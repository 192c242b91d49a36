"""What went wrong in a campaign, in a file."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
FAULTS = ROOT / "build" / "stress.txt"


class Faults:
    """What went wrong, in a file."""

    def __init__(self) -> None:
        self.n = 0
        FAULTS.parent.mkdir(exist_ok=True)
        FAULTS.unlink(missing_ok=True)

    def add(self, text: str) -> None:
        self.n += 1
        with FAULTS.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
