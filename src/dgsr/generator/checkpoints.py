"""Weights in files, which only this module reads and writes, as safetensors and JSON and never as a pickle.

A generator is a folder with ``weights.safetensors``, whose header holds everything needed to rebuild the
network, and ``card.json``, which describes how it was made and how good it is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.files.container import from_json, packed, unpacked
from dgsr.files.writing import write_atomically
from dgsr.generator.config import INPUT_LAYOUT, GeneratorConfig, current_fields, least_size
from dgsr.generator.generator import Generator

#: Version of the file format. It is increased when older versions of dgsr cannot read new files, or newer
#: versions require more. Files have a digest from version 2 on.
FORMAT_VERSION = 2
WEIGHTS, CARD, CURVES = "weights.safetensors", "card.json", "curves.svg"

# Largest absolute value of a number in the header. Files with larger numbers were not written by dgsr.
_MAX_SIZE = 1_000_000
# Largest number of layers or variables, likewise.
_MAX_MODULES = 1_000
# Fields of `Constraints` that belong to a fit and not to a generator.
_DEMANDS = ("forbidden_columns", "required", "nested", "units", "shape", "form")

# JSON types of the fields in a header, by the annotation of the field.
_JSON_TYPES: dict[Any, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "tuple[str, ...]": (list,),
}


class GeneratorInfo(NamedTuple):
    """A generator on disk."""

    name: str
    path: Path
    card: dict[str, Any]


def refuse_user_operators(library: Library) -> None:
    """Raise ValueError for a library with operators that cannot be stored in a file."""
    if library.user_operators:
        raise ValueError(
            f"A generator's file knows the built-in operators only, not {', '.join(library.functions)}; "
            "use a library without operators of your own."
        )


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: dict[str, str]) -> None:
    """Write tensors and a header to a safetensors file, whole or not at all."""
    stored = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    write_atomically(path, packed(header, stored))


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor], bool]:
    """Return the header and the tensors of a file, and whether it has a digest; see `unpacked`."""
    header, arrays, has_digest = unpacked(path)
    return header, {name: torch.from_numpy(array) for name, array in arrays.items()}, has_digest


def header_of(generator: Generator) -> dict[str, str]:
    """Return the header of a weights file."""
    refuse_user_operators(generator.library)
    library = replace(generator.library, complexities=())  # networks do not depend on them
    constraints = {k: v for k, v in asdict(generator.constraints).items() if k not in _DEMANDS}
    return {
        "format_version": str(FORMAT_VERSION),
        "library": json.dumps(library.to_json()),
        "config": json.dumps(asdict(generator.config)),
        "constraints": json.dumps(constraints),
        "input_layout": json.dumps({"version": INPUT_LAYOUT, "names": generator.input_names()}),
    }


def save_generator(generator: Generator, folder: str | Path, card: Mapping[str, Any]) -> None:
    """Write a generator's folder with a JSON card; an existing one is replaced file by file."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / WEIGHTS, generator.state_dict(), header_of(generator))
    write_atomically(folder / CARD, (json.dumps(card, indent=2) + "\n").encode())


class _Uninitialised(TorchFunctionMode):
    """Skip the initialisation of weights, which on tensors without memory imports modules for a second."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _written_names(header: Mapping[str, str]) -> Any:
    """Return the names of the network's inputs in a header; None for a file of layout 1 without names."""
    layout = from_json(header.get("input_layout", '{"version": 1, "names": null}'))
    if layout["version"] != INPUT_LAYOUT:
        raise ValueError(
            f"its network takes inputs of layout {layout['version']!r}, and this version of dgsr computes "
            f"those of layout {INPUT_LAYOUT}; install a version that has layout {layout['version']!r}"
        )
    return layout["names"]


def _refuse_other_names(written: Any, expected: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError if the inputs of the weights differ from `expected` in names or order."""
    if set(written) != set(expected):
        raise ValueError(f"its network takes {sorted(written)}, and this version computes {sorted(expected)}")
    for part, names in expected.items():
        for i, (theirs, ours) in enumerate(zip_longest(written[part], names)):
            if theirs != ours:
                raise ValueError(
                    f"its network takes {theirs!r} as number {i} of a {part}, and this version of dgsr "
                    f"computes {ours!r} there; install the version that wrote it"
                )


def _fields_in(header: Mapping[str, str], key: str, cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass in a header; raise ValueError for unknown or invalid fields."""
    given = from_json(header[key])
    if cls is GeneratorConfig:
        given = current_fields(given)
    known = {field.name: _JSON_TYPES[field.type] for field in fields(cls) if field.type in _JSON_TYPES}
    if not isinstance(given, dict) or set(given) - set(known):
        raise ValueError(f"unknown entries in {key}")
    for name, value in given.items():
        least = least_size(name) if cls is GeneratorConfig else 0
        most = _MAX_MODULES if name.endswith("_layers") or name == "n_variables" else _MAX_SIZE
        lowest = -most if float in known[name] else least
        is_number = type(value) in (int, float)
        if type(value) not in known[name] or (is_number and not lowest <= value <= most):
            raise ValueError(f"{key}.{name} is out of range")
    return given


def _build(path: Path, header: dict[str, str], tensors: dict[str, Tensor], has_digest: bool) -> Generator:
    """Return a generator of the sizes in a header; ValueError if the tensors, its weights, have others."""
    try:
        version = int(header["format_version"])
        if version > FORMAT_VERSION:
            raise ValueError(f"its format version {version} is newer than {FORMAT_VERSION}; update dgsr")
        if version == FORMAT_VERSION and not has_digest:
            raise ValueError("it has lost its digest")
        written = _written_names(header)
        library = _fields_in(header, "library", Library)
        library["operators"] = tuple(library["operators"])
        config = GeneratorConfig(**_fields_in(header, "config", GeneratorConfig))
        constraints = Constraints(**_fields_in(header, "constraints", Constraints))
        with torch.device("meta"), _Uninitialised():  # the tensors take no memory, even of absurd sizes
            empty = Generator(Library(**library), config, constraints)
        if written is not None:
            _refuse_other_names(written, empty.input_names())
        shapes = {name: tensor.shape for name, tensor in empty.state_dict().items()}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ValueError("its tensors are not of the sizes its header names")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} is not a generator this version can read ({error}); pretrain it again or fetch it anew."
        ) from error
    return empty.to_empty(device="cpu")


def card_of(folder: Path) -> dict[str, Any]:
    """Return the card in a generator's folder, without entries where there is none."""
    card = folder / CARD
    try:
        entries = from_json(card.read_text(encoding="utf-8")) if card.is_file() else {}
    except ValueError as error:
        raise ValueError(f"{card} is damaged ({error}); fetch it anew, or remove it.") from error
    return entries if isinstance(entries, dict) else {}


def folder_of(name_or_path: str | Path) -> Path:
    """Return the folder of a generator; raise ValueError where there is none.

    A text that is the name of a shipped generator means that one, so that names do not depend on the working
    directory; ``./name`` or a `Path` means a folder.
    """
    known = {info.name: info.path for info in list_generators()}
    if isinstance(name_or_path, str) and name_or_path in known:
        return known[name_or_path]
    folder = Path(name_or_path).expanduser()
    if name_or_path == "" or not os.path.isdir(folder):  # also of a name that is too long for a file
        names = ", ".join(known) or "none"
        raise ValueError(
            f"generator={str(name_or_path)!r} is neither a folder nor a name; known names: {names}."
        )
    return folder


def check_device(device: str | torch.device) -> None:
    """Raise ValueError if tensors cannot be on a device."""
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:  # the former without CUDA
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device={str(device)!r} cannot be used ({reason}); choose 'cpu'.") from error


def load_generator(name_or_path: str | Path, device: str | torch.device = "cpu") -> Generator:
    """Load a pre-trained generator.

    Parameters
    ----------
    name_or_path : str or Path
        A name from `list_generators`, or a folder that `save_generator` or `pretrain` wrote; ``./name`` or a
        `Path` for a folder with the name of a shipped generator.
    device : str or torch.device

    Returns
    -------
    Generator
        The generator, in evaluation mode.

    Raises
    ------
    ValueError
        If there is no such generator, its weights file is damaged or of another version, or there is no such
        device.
    """
    check_device(device)
    folder = folder_of(name_or_path)
    path = folder / WEIGHTS
    if not path.is_file():
        raise ValueError(f"{folder} has no {WEIGHTS}; give a folder that pretrain() wrote.")
    try:
        header, tensors, has_digest = read_tensors(path)
        known = None if has_digest else card_of(folder).get("sha256")  # of a file of format 1
        if known is not None and known != hashlib.sha256(path.read_bytes()).hexdigest():
            raise ValueError(f"it is not the file whose digest {CARD} has")
        generator = _build(path, header, tensors, has_digest)
        dtypes = {name: tensor.dtype for name, tensor in generator.state_dict().items()}
        if any(tensor.dtype != dtypes[name] for name, tensor in tensors.items()):
            raise ValueError("its tensors are not of the types that save_generator writes")
        if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite")
        generator.load_state_dict(tensors)
    except (RuntimeError, OSError, ValueError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(
            f"{path} is damaged or is not a weights file ({error}); fetch it anew or pretrain again."
        ) from error
    return generator.to(device).eval()


def _shipped_folders() -> list[Path]:
    """Return the folders of shipped generators: in the package if installed, in a checkout beside ``src``."""
    package = Path(__file__).parents[1]  # the folder dgsr
    return [package / "pretrained", package.parent.parent / "pretrained"]


def list_generators() -> list[GeneratorInfo]:
    """Return the generators that come with the package, in order of their names."""
    found: dict[str, GeneratorInfo] = {}
    for root in _shipped_folders():
        for card in sorted(root.glob(f"*/{CARD}")):
            name = card.parent.name
            if name not in found and (card.parent / WEIGHTS).is_file():
                found[name] = GeneratorInfo(name, card.parent, card_of(card.parent))
    return [found[name] for name in sorted(found)]
