"""Builds the one extension module, penstock._engine: the core (csrc/**/*.c) and its binding.

PENSTOCK_DEBUG=1 in the environment gives a build for debugging: slow checks, warnings as errors.
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
BINDING = sorted(str(path.relative_to(HERE)) for path in (HERE / "pyext").rglob("*.*"))
HEADERS = sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc").rglob("*.[hd]*"))

COMMON = ["-std=gnu11", "-fvisibility=hidden", "-fno-semantic-interposition", "-pthread"]
COMMON += ["-O1", "-g", "-DMQX_ASSERTIONS"] if DEBUG else ["-O3", "-g0"]
CORE_WARNINGS = ["-Wall", "-Wextra", "-Wconversion"] + (["-Werror"] if DEBUG else [])
BINDING_WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-cast-function-type"]
BINDING_WARNINGS += ["-Wno-missing-field-initializers"]


def links_with_lto(command: list[str]) -> bool:
    """Whether this compiler can optimise across files when it links."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("int main(void) { return 0; }\n")
        probe = [*command, "-O2", "-flto", str(source), "-o", str(Path(folder, "probe"))]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0


class BuildEngine(build_ext):
    """Core and binding are compiled with warnings of their own and linked with LTO."""

    def build_extension(self, ext: Extension) -> None:
        """Adds what depends on the compiler and on the file."""
        flags = list(COMMON)
        if not DEBUG and links_with_lto(list(self.compiler.compiler[:1])):
            flags.append("-flto=auto")
            ext.extra_link_args = [*(ext.extra_link_args or []), *flags]
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
