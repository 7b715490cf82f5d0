"""Definitions of objects: define, alter, delete, clear, display."""

from __future__ import annotations

from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from typing import Any

    from ..objects import Definition


class Definitions(Attachment):
    """The part of :class:`penstock.QueueManager` that defines objects."""

    def define(
        self,
        kind: str,
        name: str,
        /,
        *,
        like: str | None = None,
        replace: bool = False,
        **attributes: Any,
    ) -> None:
        """Defines an object. Attributes that are not given are taken from ``like``, else from the
        SYSTEM.DEFAULT object of the type.

        Args:
            kind: "QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "NAMELIST", "TOPIC",
                "CHANNEL", "LISTENER", "SERVICE", "AUTHINFO", "COMMINFO", "SUB", "AUTHREC",
                "CHLAUTH", "QCLUSTER" (an instance of a cluster queue), on z/OS also "CFSTRUCT".
            name: 1 to 48 characters out of A-Z a-z 0-9 . _ / %; channels 20, structures 12,
                subscriptions 10240 of any kind; profiles of records also * ? @.
            like: an object of the type whose attributes are copied.
            replace: change an existing definition to these attributes; its messages and its
                creation date stay.
            attributes: keywords of MQSC in any case, such as ``maxdepth=10, put="DISABLED"``.

        Raises:
            ObjectAlreadyExists, ObjectNameError, AttributeNameError, InvalidValue, InvalidType.
            UnknownObjectName: ``like``, or a structure, does not exist.
            ObjectInUse: the replacement includes a change that needs FORCE.
        """
        from . import object_commands

        object_commands.define(self, kind, name, like, replace, attributes)

    def alter(
        self, kind: str, name: str = "", /, *, force: bool = False, **attributes: Any
    ) -> None:
        """Changes the given attributes of an object; the next put or get of any process sees them.

        Args:
            kind: as for ``define``, and "QMGR", whose name is ignored.
            name: its name.
            force: also what affects handles that have it open.
            attributes: keywords of MQSC in any case.

        Raises:
            UnknownObjectName, AttributeNameError, InvalidValue, InvalidType.
            ObjectInUse: it is in use, and the change needs ``force`` then.
        """
        from . import object_commands

        object_commands.alter(self, kind, name, force, attributes)

    def delete(
        self, kind: str, name: str, /, *, purge: bool = False, clusqmgr: str = "", **identity: Any
    ) -> None:
        """Deletes an object that is not open.

        Args:
            kind: as for ``define``.
            name: its name.
            purge: together with the messages on it.
            clusqmgr: the queue manager of the instance of a cluster queue.
            identity: attributes that distinguish objects of one name: of an "AUTHREC" ``objtype``,
                ``enttype`` and ``entity``, of a "CHLAUTH" ``chlautyp`` and what it maps.

        Raises:
            UnknownObjectName, AttributeNameError, ObjectInUse.
            QueueNotEmpty: also with ``purge``, when units of work hold messages.
        """
        from . import object_commands

        object_commands.delete(self, kind, name, purge, clusqmgr, identity)

    def clear(self, name: str, /) -> None:
        """Removes all messages of a local queue that is not open.

        Raises:
            UnknownObjectName, ObjectInUse, QueueNotEmpty when units of work hold messages.
        """
        from . import object_commands

        object_commands.clear(self, name)

    def display(self, kind: str, name: str = "*", /, **identity: Any) -> list[Definition]:
        """Definitions that match a name or a generic name (``ABC*``), sorted by name; with
        ``identity`` as in ``delete`` the one object of the name that it distinguishes.

        ``kind`` "QUEUE" is queues of every type. Each definition has ``name``, ``type`` and the
        attributes by keyword; local queues also ``curdepth``, ``ipprocs`` and ``opprocs``. The list
        is empty when no object matches.
        """
        from . import object_commands

        return object_commands.display(self, kind, name, identity)
