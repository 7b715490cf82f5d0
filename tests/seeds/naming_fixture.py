"""The two namings of the seeds: C names (MQMD.Persistence) and RPG names (MDPER)."""

from __future__ import annotations

from typing import Any

from penstock import mqi, rpg


class C:
    """Fields and constants under their C names."""

    NOT_PERSISTENT = mqi.MQPER_NOT_PERSISTENT
    PERSISTENT = mqi.MQPER_PERSISTENT
    AS_Q_DEF = mqi.MQPER_PERSISTENCE_AS_Q_DEF

    @staticmethod
    def md(persistence: int | None = None, **fields: Any) -> Any:
        """A descriptor with this persistence, None: with what it has at first."""
        md = mqi.MQMD(**fields)
        if persistence is not None:
            md.Persistence = persistence
        return md

    @staticmethod
    def persistence(md: Any) -> int:
        return int(md.Persistence)


class RPG:
    """The same, under the names of ILE RPG."""

    NOT_PERSISTENT = rpg.PENPER
    PERSISTENT = rpg.PEPER
    AS_Q_DEF = rpg.PEQDEF

    @staticmethod
    def md(persistence: int | None = None, **fields: Any) -> Any:
        md = mqi.MQMD(**fields)
        if persistence is not None:
            rpg.view(md).MDPER = persistence
        return md

    @staticmethod
    def persistence(md: Any) -> int:
        return int(rpg.view(md).MDPER)
