"""What connections and queues show of themselves and say about what they were given."""

from __future__ import annotations

import warnings

_ENGINE = "penstock._engine"


def interface(it: object, of_engine: frozenset[str]) -> list[str]:
    """Names for ``dir()``: those of the package's classes and of subclasses, without private ones;
    of what the engine's classes have only these, since the rest is for the package.
    """
    names = {name for name in getattr(it, "__dict__", ()) if not name.startswith("_")}
    for kind in type(it).__mro__:
        own = kind.__module__.split(".")[0] == "penstock"
        for name in vars(kind):
            special = name.startswith("__") and name.endswith("__")
            private = own and name.startswith("_")
            if special or name in of_engine or not (private or kind.__module__ == _ENGINE):
                names.add(name)
    return sorted(names)


def warn_ignored(what: str, ignored: str, remedy: str = "", level: int = 3) -> None:
    """A UserWarning, when anything was ignored; `level`: frames up to the program's own."""
    if ignored:
        text = f"{what} and keeps its values: ignored {ignored}"
        warnings.warn(f"{text}; {remedy}" if remedy else text, UserWarning, stacklevel=level)
