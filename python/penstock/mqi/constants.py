"""MQ's constants under their MQ names.

Numbers are ``int``. Text (``MQFMT_STRING``) is ``str`` without padding, as CHAR fields read; what
is bytes (``MQMI_NONE``) is ``bytes`` in full length, as BYTE fields read.
"""

from .._mqi_constants.calls import *
from .._mqi_constants.descriptor import *
from .._mqi_constants.lengths import *
from .._mqi_constants.reason_codes import *
from .._mqi_constants.selectors import *
from .._mqi_constants.values import *
