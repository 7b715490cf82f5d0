"""Builds the one extension module, penstock._engine: the core (csrc/**/*.c) and its binding.

Any C compiler of the gcc or clang family serves (CC=clang, CC="ccache gcc", CC="zig cc"): options
that not all of them have are tried out first.

PENSTOCK_DEBUG=1 in the environment gives a build for debugging: slow checks, warnings as errors,
no optimisation across files. PENSTOCK_CYTHON_DIR is the folder of the generated C (build/cython).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("PENSTOCK_DEBUG") == "1"
HERE = Path(__file__).resolve().parent
CORE = sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc").rglob("*.c"))
HEADERS = sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc").rglob("*.[hd]*"))
BINDING = sorted(str(path.relative_to(HERE)) for path in (HERE / "pyext").rglob("*.*"))

COMMON = ["-std=gnu11", "-fvisibility=hidden", "-fno-semantic-interposition", "-pthread"]
COMMON += ["-O1", "-g", "-DMQX_ASSERTIONS"] if DEBUG else ["-O3", "-g0"]
CORE_WARNINGS = ["-Wall", "-Wextra", "-Wconversion"] + (["-Werror"] if DEBUG else [])
BINDING_WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-cast-function-type"]
BINDING_WARNINGS += ["-Wno-missing-field-initializers"]
BINDING_WARNINGS += ["-Werror=incompatible-pointer-types"]  # an error for other compilers

# As Python itself is compiled: CFLAGS in the environment replace those of the interpreter.
COMMON += ["-fwrapv", "-DNDEBUG"]

# Of each row the first choice that the compiler accepts without a warning is used.
Choices = tuple[tuple[str, ...], ...]
LTO: Choices = (("-flto=auto",), ("-flto",))  # gcc's, then clang's and zig's
HARDENING: tuple[Choices, ...] = (
    (("-fstack-protector-strong",),),
    (
        ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"),
        ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
    ),
    (("-fcf-protection",),),  # x86-64: CET
    (("-mbranch-protection=standard",),),  # aarch64: PAC and BTI
)
LINKING: tuple[Choices, ...] = (
    (("-Wl,-z,relro,-z,now,-z,noexecstack",),),
    # Marks the module for shadow stacks even where the start files of the C library are not
    # marked; their code is compatible. There is no such option for IBT, as it would not be true
    # of those files: the linker marks the module for it where they are.
    (("-Wl,-z,shstk",),),
)
# Has a buffer and a call that FORTIFY replaces, so that these options meet what they are for.
PROBE = """
#include <string.h>
int probe(const char *text);
int probe(const char *text)
{
    char copy[32];
    strcpy(copy, text);
    return copy[3];
}
"""


def accepts(compiler: list[str], flags: list[str]) -> bool:
    """Whether a shared object can be compiled and linked with these flags, without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE)
        command = [*compiler, *COMMON, *flags, "-Werror", "-fPIC", "-shared"]
        command += [str(source), "-o", str(Path(folder, "probe.so"))]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def first_accepted(compiler: list[str], choices: Choices) -> list[str]:
    """The flags of the first choice that the compiler accepts; none if it accepts none."""
    for choice in choices:
        if accepts(compiler, list(choice)):
            return list(choice)
    return []


class BuildEngine(build_ext):
    """Core and binding are compiled with warnings of their own, hardened, and linked with LTO."""

    def build_extension(self, ext: Extension) -> None:
        """Adds what depends on the compiler and on the file."""
        compiler = list(self.compiler.compiler_so)
        flags = [*COMMON]
        for choices in HARDENING if DEBUG else (LTO, *HARDENING):
            flags += first_accepted(compiler, choices)
        linking = [flag for choices in LINKING for flag in first_accepted(compiler, choices)]
        ext.extra_link_args = [*(ext.extra_link_args or []), *flags, *linking]
        compile_one = self.compiler._compile

        def compile_with_warnings(
            obj: str, src: str, ext_name: str, cc_args: Any, extra: list[str], pp_opts: Any
        ) -> None:
            core = "csrc" in Path(src).parts
            warnings = CORE_WARNINGS if core else BINDING_WARNINGS
            compile_one(obj, src, ext_name, cc_args, [*extra, *flags, *warnings], pp_opts)

        self.compiler._compile = compile_with_warnings
        try:
            super().build_extension(ext)
        finally:
            self.compiler._compile = compile_one


engine = Extension(
    "penstock._engine",
    sources=["pyext/penstock/_engine.pyx", *CORE],
    depends=[*HEADERS, *BINDING],
    include_dirs=["csrc", "csrc/include", "pyext"],
)

if sys.platform != "linux":
    raise SystemExit("penstock needs Linux")

setup(
    ext_modules=cythonize(
        [engine],
        include_path=["pyext"],
        build_dir=os.environ.get("PENSTOCK_CYTHON_DIR", "build/cython"),
        compiler_directives={"language_level": 3},
        annotate=DEBUG,
        quiet=True,
    ),
    cmdclass={"build_ext": BuildEngine},
)
