"""The one way in and out of a weights file: safetensors and JSON, never a pickle.

A generator is a folder with ``weights.safetensors``, whose header carries everything needed to
rebuild the network, and ``card.json``, which tells people how it was made and how good it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch.overrides import TorchFunctionMode

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
from dgsr.generator.config import INPUT_LAYOUT, GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.writing import write_atomically

FORMAT_VERSION = 1
WEIGHTS, CARD, CURVES = "weights.safetensors", "card.json", "curves.svg"

# A generator is a few megabytes; a file or a size beyond these is not one of ours.
_MAX_WEIGHTS_BYTES = 1 << 30
_MAX_SIZE, _MAX_MODULES = 1_000_000, 1_000

# The types in JSON of the fields that a header may have, by their annotation.
_KINDS: dict[Any, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "tuple[str, ...]": (list,),
}


class GeneratorInfo(NamedTuple):
    """One generator on disk."""

    name: str
    path: Path
    card: dict[str, Any]


def refuse_user_operators(library: Library) -> None:
    """Raise ValueError for a library whose operators a file cannot hold."""
    if library.user_operators:
        raise ValueError(
            f"A generator's file knows the built-in operators only, not {', '.join(library.functions)}; "
            "use a library without operators of your own."
        )


def describe(generator: Generator) -> dict[str, str]:
    """Return the header of a weights file."""
    library = generator.library
    refuse_user_operators(library)
    return {
        "format_version": str(FORMAT_VERSION),
        "library": json.dumps(
            {
                "name": library.name,
                "operators": list(library.operators),
                "has_constants": library.has_constants,
                "n_variables": library.n_variables,
            }
        ),
        "config": json.dumps(asdict(generator.config)),
        "constraints": json.dumps(asdict(generator.constraints)),
        "input_layout": json.dumps({"version": INPUT_LAYOUT, "names": generator.input_names()}),
    }


def save_generator(generator: Generator, folder: str | Path, card: Mapping[str, Any]) -> None:
    """Write a generator's folder; an existing one is replaced file by file, each in one step.

    Parameters
    ----------
    generator : Generator
    folder : str or Path
    card : mapping
        Anything JSON can hold.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in generator.state_dict().items()}
    write_atomically(folder / WEIGHTS, to_bytes(tensors, metadata=describe(generator)))
    write_atomically(folder / CARD, (json.dumps(card, indent=2) + "\n").encode())


class _Uninitialised(TorchFunctionMode):
    """Leave tensors as they are made: torch takes a second to import what draws weights without memory."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _written_names(header: Mapping[str, str]) -> Any:
    """Return the names of the network's inputs in a header; None in files older than these, of layout 1.

    Raises
    ------
    ValueError
        If the inputs are of another layout than those this version computes.
    """
    layout = json.loads(header.get("input_layout", '{"version": 1, "names": null}'))
    if layout["version"] != INPUT_LAYOUT:
        raise ValueError(
            f"its network reads inputs of layout {layout['version']!r}, and this version of dgsr computes "
            f"those of layout {INPUT_LAYOUT}; install a version that has layout {layout['version']!r}"
        )
    return layout["names"]


def _refuse_other_names(written: Any, expected: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError where inputs of weights have other names than `expected`, or another order."""
    if set(written) != set(expected):
        raise ValueError(f"its network reads {sorted(written)}, and this version computes {sorted(expected)}")
    for part, names in expected.items():
        for i, (theirs, ours) in enumerate(zip_longest(written[part], names)):
            if theirs != ours:
                raise ValueError(
                    f"its network reads {theirs!r} as number {i} of a {part}, and this version of dgsr "
                    f"computes {ours!r} there; install the version that wrote it"
                )


def _build(path: Path, header: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> Generator:
    """Return an untrained generator of the sizes a header names, if tensors of `shapes` are its weights."""

    def values(key: str, cls: type) -> dict[str, Any]:
        given = json.loads(header[key])
        known = {field.name: _KINDS[field.type] for field in fields(cls) if field.type in _KINDS}
        if not isinstance(given, dict) or set(given) - set(known):
            raise ValueError(f"unknown entries in {key}")
        for name, value in given.items():
            counts_modules = name.endswith("_layers")
            least = 1 if cls is GeneratorConfig and not counts_modules else 0
            most = _MAX_MODULES if counts_modules or name == "n_variables" else _MAX_SIZE
            lowest = -most if float in known[name] else least
            is_number = type(value) in (int, float)
            if type(value) not in known[name] or (is_number and not lowest <= value <= most):
                raise ValueError(f"{key}.{name} is out of range")
        return given

    try:
        version = int(header["format_version"])
        if version > FORMAT_VERSION:
            raise ValueError(f"its format version {version} is newer than {FORMAT_VERSION}; update dgsr")
        written = _written_names(header)
        library = values("library", Library)
        library["operators"] = tuple(library["operators"])
        parts = (
            Library(**library),
            GeneratorConfig(**values("config", GeneratorConfig)),
            Constraints(**values("constraints", Constraints)),
        )
        with torch.device("meta"), _Uninitialised():  # takes no memory, whatever the sizes
            empty = Generator(*parts)
        if written is not None:
            _refuse_other_names(written, empty.input_names())
        expected = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
        if shapes != expected:
            raise ValueError("its tensors are not of the sizes its header names")
        generator = Generator.untrained(*parts, seed=0)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} is not a generator this version can read ({error}); pretrain it again or fetch it anew."
        ) from error
    return generator


def load_generator(name_or_path: str | Path, device: str | torch.device = "cpu") -> Generator:
    """Load a pre-trained generator.

    Parameters
    ----------
    name_or_path : str or Path
        A name `list_generators` knows, or a folder that `save_generator` or `pretrain` wrote.
    device : str or torch.device

    Returns
    -------
    Generator
        In evaluation mode.

    Raises
    ------
    ValueError
        If there is no such generator, or its weights file is damaged or of another version.
    """
    folder = Path(name_or_path)
    if not folder.is_dir():
        known = {info.name: info.path for info in list_generators()}
        if str(name_or_path) not in known:
            names = ", ".join(known) or "none"
            raise ValueError(
                f"generator={str(name_or_path)!r} is neither a folder nor a name; known names: {names}."
            )
        folder = known[str(name_or_path)]
    path = folder / WEIGHTS
    if not path.is_file():
        raise ValueError(f"{folder} has no {WEIGHTS}; give a folder that pretrain() wrote.")
    try:
        if path.stat().st_size > _MAX_WEIGHTS_BYTES:
            raise ValueError(f"it has {path.stat().st_size} bytes")
        with safe_open(path, framework="pt") as file:
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
            generator = _build(path, file.metadata() or {}, shapes)
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        dtypes = {name: tensor.dtype for name, tensor in generator.state_dict().items()}
        if any(tensor.dtype != dtypes[name] for name, tensor in tensors.items()):
            raise ValueError("its tensors are not of the types that save_generator writes")
        if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite")
        generator.load_state_dict(tensors)
    except (SafetensorError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(
            f"{path} is damaged or is not a weights file ({error}); fetch it anew or pretrain again."
        ) from error
    return generator.to(device).eval()


def _shipped_folders() -> list[Path]:
    """Where generators of the package are: inside it when installed, beside ``src`` in a checkout."""
    package = Path(__file__).parents[1]  # the folder dgsr
    return [package / "pretrained", package.parent.parent / "pretrained"]


def list_generators() -> list[GeneratorInfo]:
    """Return the generators that come with the package, in order of their names."""
    found: dict[str, GeneratorInfo] = {}
    for root in _shipped_folders():
        for card in sorted(root.glob(f"*/{CARD}")):
            name = card.parent.name
            if name not in found and (card.parent / WEIGHTS).is_file():
                found[name] = GeneratorInfo(name, card.parent, json.loads(card.read_text(encoding="utf-8")))
    return [found[name] for name in sorted(found)]


def find_generator(library: Library, max_length: int) -> str | None:
    """Return the name of the shipped generator for `library` and programs of `max_length` tokens.

    Of several the one for the fewest variables; where all are for fewer than `library` has, the one for the
    most that reads any number; None where there is none.
    """
    known: dict[str, int] = {
        info.name: info.card["library"]["n_variables"]
        for info in list_generators()
        if info.card["library"]["has_constants"] == library.has_constants
        and info.card["config"]["max_length"] >= max_length
        and tuple(info.card["library"]["operators"]) == library.operators
        and (
            info.card["library"]["n_variables"] >= library.n_variables
            or info.card["config"].get("encoder") == "columns"
        )
    }
    enough = [name for name, n_variables in known.items() if n_variables >= library.n_variables]
    if enough:
        return min(enough, key=lambda name: known[name])
    return max(known, key=lambda name: known[name], default=None)
