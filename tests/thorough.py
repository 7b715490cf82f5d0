"""How many cases the tests have that go through many of them: some, spread over all, so that ``make
test`` takes minutes; all of them with PENSTOCK_THOROUGH=1 (``make thorough``, which a night runs).
"""

from __future__ import annotations

import os

THOROUGH = "PENSTOCK_THOROUGH" in os.environ


def one_in(some: int) -> int:
    """The step through the cases: one in so many, or each."""
    return 1 if THOROUGH else some
