"""The MQI: MQ's structures, constants and verbs under their MQ names, one to one.

Everything is here: ``from penstock import mqi``, then ``mqi.MQMD``, ``mqi.MQOO_OUTPUT``,
``mqi.REASONS[2053]``.
"""

from __future__ import annotations

from . import conversion as conversion  # registers the conversion of MQGET
from . import lists as lists  # registers MQPUT and MQCLOSE of distribution lists
from .absent import *
from .characters import MQXCNVC as MQXCNVC
from .constants import *
from .inquiry import MQINQ as MQINQ
from .inquiry import MQSET as MQSET
from .reasons import REASONS as REASONS
from .reasons import Reason as Reason
from .reasons import reason_name as reason_name
from .status import MQSTAT as MQSTAT
from .structures import *
from .verbs import *
