"""Generated inputs for every door of the package: numbers, texts and files that nobody should give it."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from faults import ROOT, Faults
from names import fault_of, names

from dgsr.files.container import TEXT, packed, unpacked

N_FITS = 300
# Inputs of every door, 11,100 in all; the fits are extra.
N_INPUTS = {
    "predict": 1_500,
    "load": 1_000,
    "load, resealed": 1_000,
    "parser": 2_500,
    "CSV reader": 1_500,
    "weights": 1_000,
    "checkpoint": 400,
    "checkpoint, resealed": 1_000,
    "report of a loaded fit": 200,
    "names": 500,
    "initial formulas": 500,
}
# Seconds after which an input counts as a hang.
PATIENCE = 30


class Hang(BaseException):
    """An input took too long."""


@contextmanager
def limited(seconds: int = PATIENCE):
    """Raise `Hang` when the seconds are over."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def try_inputs(
    door: str,
    seed: int,
    n: int,
    make: Callable,
    use: Callable,
    faults: Faults,
    allowed: tuple = (ValueError,),
) -> str:
    """Give generated inputs to a function, and count how it takes them.

    `make` is given a random generator and returns an input; `use` is given the input, and returns None or
    what is wrong with the result.
    """
    ended: Counter[str] = Counter()
    for number in range(n):
        rng = random.Random(f"{seed} {door} {number}")
        entered = make(rng)
        wrong = None
        try:
            with limited(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wrong = use(entered)
            ended["taken" if wrong is None else "wrong"] += 1
        except allowed as error:
            ended["refused"] += 1
            if len(str(error).split()) < 3:
                wrong = f"the message {str(error)!r}"
        except Hang:
            ended["hung"] += 1
            wrong = "it hung"
        except Exception:
            ended["crashed"] += 1
            wrong = traceback.format_exc()
        if wrong is not None:
            faults.add(f"{door}, seed {seed}, number {number}: {entered!r:.2000}\n{wrong}")
    return f"{door}: {n:,} inputs, {dict(ended)}"


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few of them changed, cut, repeated or replaced."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, kind = rng.randrange(len(content) + 1), rng.randrange(6)
        if kind == 0 and content:
            content[at % len(content)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del content[at:]
        elif kind == 2:
            content[at:at] = rng.randbytes(rng.choice([1, 8, 1000]))
        elif kind == 3:
            content[at : at + 8] = (2 ** rng.randrange(64)).to_bytes(8, "little")
        elif kind == 4:
            del content[at : at + rng.choice([1, 8, 1000])]
        else:
            digits = [i for i in range(min(len(content), 20_000)) if chr(content[i]).isdigit()]
            if digits:
                content[rng.choice(digits)] = ord(rng.choice("0123456789-eE."))
    return bytes(content)


def resealed(path: Path, rng: random.Random) -> bytes:
    """Return a file with a right digest (`dgsr.files.container`), whose text or numbers were changed."""
    texts, arrays, _ = unpacked(path)
    text = texts[TEXT]
    if rng.random() < 0.7:
        text = damaged(text.encode(), rng).decode(errors="replace")
    for name in rng.sample(sorted(arrays), rng.choice([0, 1, 1, 2])):
        kind = rng.randrange(5)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[name] = arrays[name][: arrays[name].shape[0] // 2]
        elif kind == 2:
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name].astype(rng.choice(["float32", "int8", "float64", "uint64"]))
        else:
            array = np.atleast_1d(arrays[name].copy())
            if array.size:
                values = [0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1e308, np.inf, np.nan]
                with np.errstate(all="ignore"):
                    array.flat[rng.randrange(array.size)] = np.asarray(rng.choice(values)).astype(array.dtype)
            arrays[name] = array
    return packed({TEXT: text}, arrays)


def numbers(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of any size, and some that are none."""
    own = np.random.default_rng(rng.randrange(2**32))
    values = own.normal(size=shape) * 10.0 ** own.integers(-308, 308, shape)
    if rng.random() < 0.3 and values.size:
        values.flat[own.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 5e-324, 1.7e308])
    return values


def table_to_predict(rng: random.Random):
    """Return something that stands in the place of X."""
    X = numbers(rng, (rng.choice([0, 1, 2, 50]), rng.choice([3, 3, 3, 3, 0, 2, 4, 1000])))
    kind = rng.randrange(10)
    if kind == 0:
        return X.astype(str).tolist()
    if kind == 1:
        return X.astype(complex)
    if kind == 2:
        return X[:, 0] if X.shape[1] else X
    if kind == 3:
        return rng.choice(
            [None, 3, "x1", b"\x00", [], [[]], {}, [[1.0, 2.0], [3.0]], np.zeros((2, 3, 1)), object()]
        )
    if kind == 4:
        return X.astype(object)
    if kind == 5:
        return np.asfortranarray(X).astype(">f8")
    if kind == 6:
        with np.errstate(all="ignore"):
            return X.astype(np.float32)
    return X


PIECES = (
    *"+-*/^()[]{},.;:_'\"\\ \t\n0123456789e", "x1", "x2", "x3", "x4", "sin(", "exp(", "log(", "sqrt(", "**",
    "pi", "1e308", "1e-308",
    "9" * 400, "nan", "inf", "lambda: 0", "__import__('os').system('true')", "(" * 500,
    "-" * 500, "exp(" * 400, "x1**" * 300, "π", "\U0001d499", "\x00", "\u202e", "if", "None", "const", "add",
    "1/0", "0**0",
)  # fmt: skip


LAWS = ("x1*sin(x2)/(x3 + 1.3)", "exp(-x1**2/2) - 3*x2", "sqrt(x1/x2)*log(x3)")


def text_of_a_formula(rng: random.Random) -> str:
    """Return a text that may be a formula."""
    text = "".join(rng.choice(PIECES) for _ in range(rng.choice([0, 1, 3, 6, 12])))
    if rng.random() < 0.5:
        text = list(rng.choice(LAWS))
        for _ in range(rng.choice([0, 1, 2, 4])):
            text[rng.randrange(len(text))] = rng.choice(PIECES)
        text = "".join(text)
    return text


def formulas_to_begin_with(rng: random.Random) -> list[str]:
    """Return texts that may be formulas, some with names that are no columns."""
    texts = [rng.choice([*LAWS, text_of_a_formula(rng)]) for _ in range(rng.choice([1, 1, 2, 5]))]
    numbers = ["a", "b", "x4", "mass", "1e300", "0", "2.5"]
    return [re.sub("1.3|2|3", lambda old: rng.choice([old[0], *numbers]), text) for text in texts]


def csv_file(rng: random.Random) -> bytes:
    """Return bytes that may be a table."""
    separator = rng.choice([",", ";", "\t", ",", " "])
    names = rng.choice(
        [["a", "b", "y"], ["a", "a", "y"], ["", "b", "y"], ["1", "2", "y"], ["=cmd()", "b", "y"], ["y"]]
    )
    cells = [
        "1",
        "2.5",
        "-3e-7",
        "1e308",
        "1e999",
        "nan",
        "",
        "NA",
        "x",
        "1,5",
        '"',
        '"1"',
        "0x10",
        "\uff11",
        "1_000",
        "∞",
        "1.000",
        '"1,200"',
        "1 200",
        "\u22123",
        "5%",
        "$5",
        "6 mm",
        "yes",
        "#N/A",
        "-",
        "2020-01-01",
    ]
    usual = rng.random() < 0.5
    rows = [*rng.choice([[], [], ["sep=;"], ["Made by X", ""], ["# by X"]]), separator.join(names)]
    for _ in range(rng.choice([0, 1, 2, 5, 40])):
        n = len(names) if rng.random() < 0.97 else rng.randrange(5)
        rows.append(separator.join(str(rng.uniform(-9, 9)) if usual else rng.choice(cells) for _ in range(n)))
    content = (
        rng.choice(["\n", "\r\n", "\n", "\r"]).join(rows).encode(rng.choice(["utf-8", "utf-16", "utf-8-sig"]))
    )
    return damaged(content, rng) if rng.random() < 0.5 and content else content


def inputs(seed: int, faults: Faults) -> list[str]:
    """Give generated inputs to every door."""
    from sklearn.exceptions import NotFittedError

    import dgsr
    from dgsr import DGSRRegressor
    from dgsr.cli.tabular import read_table
    from dgsr.expressions import Expression, get_library
    from dgsr.generator.checkpoints import folder_of, load_generator

    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (40, 3))
    y = X[:, 0] * np.sin(X[:, 1]) / (X[:, 2] + 1.3)
    model = DGSRRegressor(generator=None, max_evaluations=3_000, random_state=0).fit(X, y)
    right = model.predict(X)
    said = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "saved")
        saved = (folder / "saved").read_bytes()
        usual = {"generator": None, "random_state": 0, "config": {"batch_size": 50}}
        usual["checkpoint"] = folder / "checkpoint"
        DGSRRegressor(**usual, max_evaluations=500).fit(X, y)
        checkpoint = (folder / "checkpoint").read_bytes()
        (folder / "kept").write_bytes(checkpoint)
        resumed = DGSRRegressor(**usual, max_evaluations=700).fit(X, y).predict(X)
        weights = folder / "weights"
        shutil.copytree(folder_of("koza-d12"), weights)
        originals = {path.name: path.read_bytes() for path in weights.iterdir() if path.is_file()}

        def predict(table):
            predicted = model.predict(table)
            if predicted.shape != (len(table),):
                return f"{predicted.shape} values for {len(table)} rows"
            return None

        def load(content):
            (folder / "damaged").write_bytes(content)
            loaded = dgsr.load(folder / "damaged")
            return None if np.array_equal(loaded.predict(X), right) else "it predicts something else"

        def load_resealed(content):  # which may be of another fit
            (folder / "damaged").write_bytes(content)
            values = dgsr.load(folder / "damaged").predict(X)
            return None if values.shape == y.shape else f"it predicts {values.shape}"

        def report(content):
            (folder / "damaged").write_bytes(content)
            loaded = dgsr.load(folder / "damaged")
            loaded.report(folder / "report.html", X, y)
            return None if "<script src" not in (folder / "report.html").read_text() else "it loads a script"

        library = get_library("physics", 3)

        def parse(text):
            expression = Expression.from_text(text, library)
            again = Expression.from_text(expression.text, library)
            values = expression(X), again(X)
            return (
                None
                if np.allclose(*values, rtol=1e-12, atol=0.0, equal_nan=True)
                else f"{expression.text!r} is not what was read"
            )

        def table(content):
            (folder / "table.csv").write_bytes(content)
            found = read_table(folder / "table.csv", "y")
            is_table = (
                found.X.shape == (len(found.y), len(found.feature_names)) and np.isfinite(found.X).all()
            )
            return None if is_table and np.isfinite(found.y).all() else "it is no table of numbers"

        def damaged_weights(rng):
            name = rng.choice(sorted(originals))
            return name, damaged(originals[name], rng)

        def read_weights(entered):
            name, content = entered
            (weights / name).write_bytes(content)
            try:
                generator = load_generator(weights)
                sizes = [
                    float(tensor.abs().max()) for tensor in generator.state_dict().values() if tensor.numel()
                ]
                return None if np.isfinite(sizes).all() else "some weights are not finite"
            finally:
                (weights / name).write_bytes(originals[name])

        def go_on(content):
            (folder / "checkpoint").write_bytes(content)
            predicted = DGSRRegressor(**usual, max_evaluations=700).fit(X, y).predict(X)
            return None if np.array_equal(predicted, resumed) else "the fit ends elsewhere"

        def go_on_resealed(content):
            (folder / "checkpoint").write_bytes(content)
            model = DGSRRegressor(**usual, max_evaluations=700).fit(X, y)
            return None if np.isfinite(model.predict(X)).all() else "it predicts what is not finite"

        def begin_with(formulas):
            settings = {"generator": None, "random_state": 0, "config": {"batch_size": 50}}
            settings["max_evaluations"] = 100
            begun = DGSRRegressor(**settings, initial_formulas=formulas).fit(X, y)
            return None if np.isfinite(begun.predict(X)).all() else "it predicts what is not finite"

        doors = {
            "predict": (table_to_predict, predict, (ValueError, TypeError, NotFittedError)),
            "load": (lambda rng: damaged(saved, rng), load, (ValueError,)),
            "report of a loaded fit": (lambda rng: damaged(saved, rng), report, (ValueError,)),
            "parser": (text_of_a_formula, parse, (ValueError,)),
            "CSV reader": (csv_file, table, (ValueError,)),
            "weights": (damaged_weights, read_weights, (ValueError,)),
            "checkpoint": (lambda rng: damaged(checkpoint, rng), go_on, (ValueError,)),
            "load, resealed": (lambda rng: resealed(folder / "saved", rng), load_resealed, (ValueError,)),
            "checkpoint, resealed": (
                lambda rng: resealed(folder / "kept", rng),
                go_on_resealed,
                (ValueError,),
            ),
            "names": (
                lambda rng: names(rng, X.shape[1]),
                lambda given: fault_of(model, given, X, y, folder),
                (ValueError,),
            ),
            "initial formulas": (formulas_to_begin_with, begin_with, (ValueError,)),
        }
        for door, (make, use, allowed) in doors.items():
            began = time.monotonic()
            line = try_inputs(door, seed, N_INPUTS[door], make, use, faults, allowed)
            said.append(f"{line}, {time.monotonic() - began:.0f} s")
            print(said[-1], flush=True)
    return said


def fits(seed: int, faults: Faults) -> str:
    """Fit generated data, much of it hostile (`benchmarks/generated_fits.py`)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fits.jsonl")
        program = [sys.executable, str(ROOT / "benchmarks" / "generated_fits.py"), "--max-time", "0.5"]
        arguments = ["--fits", str(N_FITS), "--seed", str(seed * 1000), "--out", str(path)]
        ended = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        if record["ended"].startswith("fault"):
            faults.add(f"fits: {record}")
    if ended.returncode != 0 or len(records) != N_FITS:
        faults.add(f"fits: {len(records)} of {N_FITS}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return f"fits of generated data: {len(records)}; {ended.stdout.strip().splitlines()[-1:]}"
