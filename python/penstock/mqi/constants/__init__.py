"""MQ's constants under their MQ names, by area.

Numbers are ``int``. Text (``MQFMT_STRING``) is ``str`` without padding, as CHAR fields read; what
is bytes (``MQMI_NONE``) is ``bytes`` in full length, as BYTE fields read.
"""

from __future__ import annotations

from .calls import *
from .descriptor import *
from .lengths import *
from .reason_codes import *
from .selectors import *
from .values import *
