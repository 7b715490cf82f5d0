"""In place of Spark's half of the server where its Python has no PySpark: says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from .access import Access
from .requests import Refusal

__all__ = ["WithoutSpark"]


class WithoutSpark:
    """Refuses the data source's requests."""

    name = "spark"

    def act(self, access: Access, text: bytes) -> list[dict[str, Any]]:
        """Raises Refusal."""
        self._refuse()

    def read(self, access: Access, text: bytes) -> tuple[Any, Iterator[Any]]:
        """Raises Refusal."""
        self._refuse()

    def put(
        self, access: Access, text: bytes, batches: Iterator[Any], schema: Any
    ) -> dict[str, Any]:
        """Raises Refusal."""
        self._refuse()

    def look(self) -> None:
        """Nothing is there."""

    def close(self) -> None:
        """Nothing is there."""

    def _refuse(self) -> NoReturn:
        raise Refusal(
            "SourceError",
            "the server has no PySpark 4, which its half of the data source needs (but no Java): "
            "pip install 'penstock[serve,spark]' on its host",
        )
