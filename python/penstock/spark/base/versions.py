"""The lowest PySpark that each feature needs.

=========================  =======  ========================================================
feature                    PySpark  because of
=========================  =======  ========================================================
batch read, batch sink     4.0      Python data sources, ``DataSourceArrowWriter``
streaming sink             4.1      ``DataSourceStreamArrowWriter``
streaming source           4.2      ``latestOffset(start, limit)``, ``Trigger.AvailableNow``
=========================  =======  ========================================================

The extra ``spark`` requires 4.0: who only reads and writes tables may keep it. ``make
spark-versions`` tries each version.
"""

from __future__ import annotations

import re

from .errors import VersionError

__all__ = ["LOWEST", "is_at_least", "require"]

LOWEST = {
    "a batch read": (4, 0),
    "a batch sink": (4, 0),
    "a streaming sink": (4, 1),
    "a streaming source": (4, 2),
}


def require(feature: str, version: str | None = None) -> None:
    """Raises VersionError when PySpark is older than the feature, a key of LOWEST, needs.

    Args:
        feature: The feature to be used.
        version: Of PySpark; None: the installed one's.
    """
    if version is None:
        import pyspark

        version = pyspark.__version__
    lowest = LOWEST[feature]
    if not is_at_least(lowest, version):
        raise VersionError(
            f"penstock as {feature} needs PySpark {lowest[0]}.{lowest[1]} or newer; "
            f"this is {version}"
        )


def is_at_least(lowest: tuple[int, int], version: str | None = None) -> bool:
    """Whether PySpark, of that version or the installed one, is that new."""
    if version is None:
        import pyspark

        version = pyspark.__version__
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= lowest
