"""How much of a micro-batch goes through the driver with ``relay=true``."""

from __future__ import annotations

from .errors import SourceError
from .options import Options

__all__ = ["MOST_BYTES", "check_not_all", "limited"]

MOST_BYTES = 32 << 20  # of rows, and of the bodies of a micro-batch
_MOST_MESSAGES = 50_000  # of a micro-batch, however short they are


def limited(options: Options, messages: int, size: int) -> tuple[int, int]:
    """Messages and bytes of a micro-batch, cut to what is relayed where it is."""
    if not options["relay"]:
        return messages, size
    return min(messages, _MOST_MESSAGES), min(size, MOST_BYTES)


def check_not_all(options: Options) -> None:
    """Raises SourceError where Trigger.Once would have everything in one micro-batch."""
    if options["relay"]:
        raise SourceError(
            "relay=true carries small batches through the driver, and Trigger.Once is one of "
            "everything: use Trigger.AvailableNow (availableNow=True)"
        )
