"""The decorators of compiled functions, and the cache of their machine code.

numba caches machine code by function and checks only whether the file of that function has changed, so that
changes of functions compiled into it go unnoticed. Here the machine code of all kernels is stored under one
digest of all their sources: an edit of any of them begins a new folder, and old machine code is never run.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import pickle
import pkgutil
import re
import shutil
import tempfile
import warnings
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import ClassVar

import llvmlite
import numba
from numba import types
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typing import make_concrete_template
from numba.misc.appdirs import AppDirs

# Most folders of machine code, one for each version of the sources; older ones are removed.
_N_KEPT = 8
# Thresholds of the three generations of Python's garbage collector during compilation.
_SELDOM = (100_000, 50, 50)
# Exceptions that loading or writing a damaged file may raise.
_DAMAGED = (
    pickle.UnpicklingError, EOFError, AttributeError, ImportError, LookupError, TypeError, ValueError, OSError
)  # fmt: skip

# The import that identifies a module with kernels.
_IMPORTS_A_DECORATOR = re.compile(rb"from dgsr\.kernels\.compilation import .*\b(compiled|allocation_free)\b")
#: Modules without kernels whose constants or tuples kernels read. Modules of this folder need no entry.
READ_BY_KERNELS = (
    "dgsr.exact_search.limits",
    "dgsr.expressions.programs.constraints",
    "dgsr.expressions.programs.library",
    "dgsr.generator.packing",
    "dgsr.data.dataset",
    "dgsr.data.population",
    "dgsr.pretraining.law_forms",
)


# Options of `numba.njit`. A function would inherit missing options from the caller that is compiled first.
# All are given here, so that a kernel does not depend on its callers.
_DEFAULTS = {
    "nopython": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "fastmath": False,
    "forceinline": False,
    "_nrt": True,
}


def compiled(**options):
    """Return a decorator that makes a function a `Kernel`.

    `options` are options of `numba.njit`; a division by 0 raises no exception, as in numpy.
    """

    def decorate(function):
        if numba.config.DISABLE_JIT:
            function.py_func = function
            return function
        kernel = Kernel(function, targetoptions={**_DEFAULTS, **options})
        if folder() is not None:
            kernel._cache = _KernelCache(function)
        return kernel

    return decorate


class Kernel(CPUDispatcher):
    """A compiled function: numba's dispatcher, but called from compiled code it is optimised in its caller.

    numba would optimise each function by itself, generate machine code for it and two wrappers, and optimise
    it again in every caller. Here a call from compiled code links the function before it is optimised, so
    that this happens once, in the function that Python calls. Literal arguments make no variants. A first fit
    takes 16 to 18 s instead of 59 s.
    """

    #: All kernels of this process by module and name.
    instances: ClassVar[dict[str, Kernel]] = {}

    def __init__(self, function, **keywords):
        super().__init__(function, **keywords)
        self._compiler._customize_flags = _Flags  # for calls from Python; parts have separate flags
        self._parts = {}  # the code that callers link, by argument types
        self.instances[f"{function.__module__}.{function.__qualname__}"] = self

    def compile(self, sig):
        """Compile for argument types, or load the cached machine code, with rare garbage collections.

        A compilation makes millions of small objects and retains many, and with the default thresholds it
        spends a sixth of its time on collections. Under numba's lock no thread restores those of another.
        """
        with global_compiler_lock:
            usual = gc.get_threshold()
            gc.set_threshold(*_SELDOM)
            try:
                return super().compile(sig)
            finally:
                gc.set_threshold(*usual)

    def __reduce__(self):
        """Pickle by name, since another process has the same kernel."""
        return pkgutil.resolve_name, (f"{self.py_func.__module__}:{self.py_func.__qualname__}",)

    def load_kept(self):
        """Load the cached machine code for all argument types, as calls would do one by one."""
        if isinstance(self._cache, _KernelCache):
            for signature in self._cache.signatures(self.targetctx.codegen()):
                self.compile(signature)

    def get_call_template(self, args, kws):
        """Return numba's template for typing a call from compiled code."""
        pysig, args = self.fold_argument_types(args, kws)
        args = tuple(map(types.unliteral, args))
        if args not in self._parts:
            self._parts[args] = self._compile_part(args)
        signatures = [part.signature for part in self._parts.values()]
        return make_concrete_template(self.py_func.__name__, self, signatures), pysig, args, {}

    def get_overload(self, sig):
        """Return the key under which numba finds the part that a call from compiled code links."""
        return self._parts[tuple(sig)].library

    def _compile_part(self, args):
        flags = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        context = self.targetdescr.target_context
        library = _Part(context.codegen(), self.py_func.__qualname__)
        with self._compiling_counter:
            part = compiler.compile_extra(
                self.targetdescr.typing_context, context, self.py_func, args, None, flags, {}, library
            )
        context.insert_user_function(part.library, part.fndesc, [part.library])
        return part


#: The decorator of functions that allocate nothing. In others, numba updates a reference count at every read
#: of a field of a named tuple, by atomic operations that take most of the time of a small function.
allocation_free = compiled(_nrt=False)
#: The same for small functions of loops that should be vectorised.
inlined = compiled(_nrt=False, forceinline=True)
#: The same as the first where a product and a sum may become one instruction with one rounding.
contracted = compiled(_nrt=False, fastmath={"contract"})


class _Flags(compiler.Flags):
    """Flags of a compilation; two are equal if numba compiles its own functions in the same way with both.

    numba compiles one of its own functions, such as `np.empty`, once for all equal flags. numba's flags
    differ between a part and a function that Python calls, and all have the same hash, so that comparisons
    take a tenth of the time of compilation.
    """

    def __hash__(self):
        return hash(self._handed_down)

    def __eq__(self, other):
        return type(other) is _Flags and self._handed_down == other._handed_down

    @cached_property
    def _handed_down(self):
        names = ("error_model", "fastmath", "forceinline", "nrt")
        return tuple(str(getattr(self, name)) for name in names)


class _Part(JITCodeLibrary):
    """Code that is only linked into its callers, and neither optimised nor written as machine code itself."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalized = True


@cache
def folder() -> Path | None:
    """Return the folder for the machine code of these sources, or None where none can be written.

    It is in the folder given by the environment variable ``NUMBA_CACHE_DIR``, else beside the sources, else
    in the user's cache folder.
    """
    places = [Path(__file__).parent / "__pycache__", Path(AppDirs("dgsr", appauthor=False).user_cache_dir)]
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR)]
    for place in places:
        path = place / f"kernels-{digest_of_sources()[:16]}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
            os.utime(path)
        except OSError:
            continue
        _remove_all_but_the_latest(place)
        return path
    warnings.warn(
        f"The compiled functions of dgsr cannot be kept, for neither {' nor '.join(map(str, places))} can be "
        "written: every process compiles them again, which takes up to a minute. Set the environment "
        "variable NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


@cache
def digest_of_sources() -> str:
    """Return the SHA-256 digest of the sources of all kernels and of the compiler's versions."""
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for name, source in sorted(_sources(resources.files("dgsr"))):
        digest.update(name.encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


def _sources(place, name="dgsr"):
    """Yield name and bytes of the modules with kernels, the modules of this folder, and `READ_BY_KERNELS`."""
    for entry in place.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{name}.{entry.name}")
        elif entry.name.endswith(".py"):
            source, module = entry.read_bytes(), f"{name}.{entry.name.removesuffix('.py')}"
            if name == __package__ or module in READ_BY_KERNELS or _IMPORTS_A_DECORATOR.search(source):
                yield module, source


def name_of_processor() -> str:
    """Return 16 hexadecimal digits that identify the processor for which code is compiled."""
    description = repr(cpu_target.target_context.codegen().magic_tuple())
    return hashlib.sha256(description.encode()).hexdigest()[:16]


def _remove_all_but_the_latest(place: Path) -> None:
    try:
        folders = sorted(place.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    except OSError:  # another process removes them at the same time
        return
    for path in folders[:-_N_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


class _Locator(_CacheLocator):
    """The location of the machine code of one function."""

    def __init__(self, function, file):
        self._disambiguator = f"{Path(file).stem}-{function.__code__.co_firstlineno}"
        self._py_file = file  # numba shows it in warnings

    @classmethod
    def from_function(cls, function, file):
        return cls(function, file)

    def get_cache_path(self):
        return str(folder())

    def get_source_stamp(self):
        return digest_of_sources()

    def get_disambiguator(self):
        return self._disambiguator


class _Implementation(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _CheckedFiles(IndexDataCacheFile):
    """Files that end with a digest of their contents, since damaged machine code must not be run."""

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()  # unpickling stops before the digest

    def _load_data(self, name):
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[:-32]).digest() != data[-32:]:
            raise OSError(f"{name} is damaged")
        return super()._load_data(name)


class _KernelCache(FunctionCache):
    """numba's cache of one function, which treats damaged files as missing and tolerates unwritable ones."""

    _impl_class = _Implementation

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, digest_of_sources())

    def signatures(self, codegen):
        """Return the argument types, a list of tuples, with cached machine code for this processor."""
        try:
            index = self._cache_file._load_index()
        except _DAMAGED:
            return []
        return [signature for signature, machine, _ in index if machine == codegen.magic_tuple()]

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except _DAMAGED:
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except _DAMAGED as error:
            self.disable()
            _warn_of_unwritten(str(error))


@cache
def _warn_of_unwritten(reason: str) -> None:
    warnings.warn(
        f"A compiled function could not be kept in {folder()} ({reason}); it is compiled again in the next "
        "process.",
        RuntimeWarning,
        stacklevel=2,
    )
