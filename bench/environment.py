"""The conditions of a figure: machine, kernel, file system, build, sync mode.

:func:`describe` gathers them for the report and the result files, :func:`warnings` names those that
make figures unfit for comparison (debug or sanitizer builds, a journal on tmpfs, a busy machine).
Nothing here names the machine or its paths.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

REGION_DIRECTORY = Path("/dev/shm")


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().partition("\n")[0].strip()
    except OSError:
        return "unknown"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    match = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def file_system(directory: Path) -> tuple[str, str]:
    """Type and options of the file system that holds `directory`."""
    wanted = f"{os.major(directory.stat().st_dev)}:{os.minor(directory.stat().st_dev)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if fields[2] == wanted:
            return right.split()[0], fields[5]
    return "unknown", ""


def _write_cache(directory: Path) -> str:
    device = directory.stat().st_dev
    base = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"
    for queue in (f"{base}/queue", f"{base}/../queue"):
        if Path(queue).is_dir():
            scheduler = re.search(r"\[(.+?)\]", _first_line(f"{queue}/scheduler"))
            name = scheduler.group(1) if scheduler else "none"
            return f"{_first_line(f'{queue}/write_cache')}, scheduler {name}"
    return "unknown"


def engine_file() -> Path | None:
    """The extension module's file, None when penstock cannot be imported."""
    try:
        module = importlib.import_module("penstock._engine")
    except ImportError:
        return None
    return Path(module.__file__) if module.__file__ else None


def build_flags(binary: Path) -> str:
    """The compiler and options a binary was made with, read from its debug information."""
    reader = shutil.which("readelf")
    if reader is None:
        return "unknown (no readelf)"
    command = [reader, "--debug-dump=info", "--dwarf-depth=1", str(binary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    producers = set(re.findall(r"DW_AT_producer\s*:\s*(?:\(.*?\):\s*)?(.+)", done.stdout))
    compiled = sorted(line.strip() for line in producers if " -" in line)
    return "; ".join(compiled) if compiled else "unknown (no debug information)"


def _sanitizers() -> list[str]:
    loaded = Path("/proc/self/maps").read_text()
    return [name for name in ("asan", "tsan", "ubsan") if f"lib{name}" in loaded]


def describe(directory: Path, sync_mode: str) -> dict[str, str]:
    """The conditions that a reader of the figures needs, as printable texts.

    `directory` is the folder of the benchmarks' journals.
    """
    kind, options = file_system(directory)
    region_kind, _ = file_system(REGION_DIRECTORY)
    region_free = shutil.disk_usage(REGION_DIRECTORY).free / 2**30
    engine = engine_file()
    facts = {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} usable",
        "memory": f"{_memory_gib():.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "journal on": f"{kind} ({options}), write cache {_write_cache(directory)}",
        "region on": f"{region_kind}, {region_free:.1f} GiB free",
        "sync mode": sync_mode,
        "load": f"{os.getloadavg()[0]:.2f} before the run",
    }
    if engine is not None:
        facts["penstock"] = str(getattr(sys.modules["penstock"], "__version__", "unknown"))
        facts["engine build"] = build_flags(engine)
    return facts


def warnings(facts: dict[str, str]) -> list[str]:
    """Conditions that make the figures unfit for comparison, as sentences."""
    found = []
    build = facts.get("engine build", "")
    level = re.findall(r"(?:^| )-O(\w*)", build)
    if "fsanitize" in build or _sanitizers():
        found.append("the engine is built with a sanitizer")
    if level and level[-1] in ("0", "g"):
        found.append(f"the engine is built with -O{level[-1]}")
    if build.startswith("unknown"):
        found.append(f"the engine's build flags are {build}")
    if facts["journal on"].startswith(("tmpfs", "ramfs")):
        found.append("the journal lies in memory: durable figures mean nothing")
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        found.append(f"the machine is busy (load {os.getloadavg()[0]:.1f})")
    return found
