"""A SPARK_HOME whose Python processes load PySpark as it is installed, not from an archive.

Spark starts a Python process for each source, each planning and each commit of a sink, and puts
``python/lib/pyspark.zip`` before everything else on their path. What is imported from an archive is
compiled by each of them again: more than half a second of a processor, most of what a short query
costs. The same code is installed beside it, compiled. So this folder has links to all of Spark but
for ``python``.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["quick_home"]


def quick_home(folder: Path) -> Path:
    """Makes the folder and returns it."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    folder.mkdir()
    for entry in Path(spec.origin).parent.iterdir():
        if entry.name != "python":
            (folder / entry.name).symlink_to(entry)
    return folder
