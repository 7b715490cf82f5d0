"""The MQI: MQ's structures, constants and verbs under their MQ names, one to one.

Everything is here: ``from penstock import mqi``, then ``mqi.MQMD``, ``mqi.MQOO_OUTPUT``.
"""

from __future__ import annotations

from .structures import *
