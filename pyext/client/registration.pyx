# registration.pyx - what the binding calls upward: exception classes and services of the package.
#
# The binding imports nothing of penstock. python/penstock/_registration.py registers everything
# once, when the package is imported; services import their own module when they are called first,
# so that importing penstock stays cheap. Classes over NumPy arrays are registered by penstock.batch
# (batch/arrays.pyx), classes of structures by penstock.mqi (mqi/calls.pyx).
#
# Errors. Until it is registered, whatever is called raises RuntimeError with the remedy in its
# text; `except MQError` then catches nothing.


def _not_registered(*arguments, **fields):
    raise RuntimeError("penstock._engine has no exceptions and services: import penstock first")


# ---- exceptions (penstock.errors) ----

cdef object MQError = ()                      # a class; () is what no exception matches
cdef object error_for = _not_registered       # (reason, text, **fields) -> MQError
cdef object InvalidType = _not_registered
cdef object InvalidValue = _not_registered
cdef object ClosedHandle = _not_registered
cdef object WaitTimedOut = _not_registered
cdef object UnknownXid = _not_registered
cdef object XidInUse = _not_registered

# ---- services ----

cdef object prepare_open = _not_registered
cdef object reply_alias = _not_registered
cdef object report_discarded = _not_registered
cdef object dead_letter_of_report = _not_registered
cdef object report_lost = _not_registered
cdef object stream_of = _not_registered
cdef object copy_lost = _not_registered
cdef object event_of_queue = _not_registered
cdef object trigger_of_put = _not_registered
cdef object trigger_made = _not_registered
cdef object input_opened = _not_registered
cdef object input_closed = _not_registered
cdef object input_waits = _not_registered
cdef object load_batch_classes = _not_registered
cdef object load_option_rules = _not_registered
cdef object list_put = _not_registered
cdef object list_close = _not_registered
cdef object convert_data = _not_registered
cdef object remove_properties = _not_registered


def register_errors(
    *, base, for_reason, invalid_type, invalid_value, closed_handle, unknown_xid, xid_in_use,
    wait_timed_out,
):
    """Registers the exceptions of penstock.errors: the base class, the function that makes the
    exception of a reason code, and the classes that say more than the code does.
    """
    global MQError, error_for, InvalidType, InvalidValue, ClosedHandle, UnknownXid, XidInUse
    global WaitTimedOut
    MQError = base
    error_for = for_reason
    InvalidType = invalid_type
    InvalidValue = invalid_value
    ClosedHandle = closed_handle
    UnknownXid = unknown_xid
    XidInUse = xid_in_use
    WaitTimedOut = wait_timed_out


def register_services(
    *, open_queue, alias_of_reply, discarded_at_end, dead_report, lost_report, batch_classes,
    option_rules
):
    """Registers what the binding leaves to the package.

    Args:
        open_queue: (connection, name, manager, options, dynamic_name) -> (name, route, definition):
            resolves the name of anything but a local queue.
        alias_of_reply: (connection, name) -> (queue, manager) of a reply-queue alias.
        discarded_at_end: (name, count): logs non-persistent messages that a detach discarded.
        dead_report: (connection, reason, queue, manager, encoding, ccsid, format) -> (dead-letter
            queue, dead-letter header), of a report that could not be put.
        lost_report: (connection, queue, manager, reason): logs a report that was discarded.
        batch_classes: () -> None: calls register_batch_classes().
        option_rules: () -> the rules of options of PUT, PUT1, GET and CLOSE.
    """
    global prepare_open, reply_alias, report_discarded, dead_letter_of_report, report_lost
    global load_batch_classes, load_option_rules
    prepare_open = open_queue
    reply_alias = alias_of_reply
    report_discarded = discarded_at_end
    dead_letter_of_report = dead_report
    report_lost = lost_report
    load_batch_classes = batch_classes
    load_option_rules = option_rules


def register_streams(*, of_queue, lost):
    """Registers who knows the stream queues.

    Args:
        of_queue: (connection, slot, generation) -> (stream queue, whether a put must duplicate),
            None for a queue without one.
        lost: (connection, stream queue, reason): logs a copy of best effort that has no place.
    """
    global stream_of, copy_lost
    stream_of = of_queue
    copy_lost = lost


def register_events(*, of_queue):
    """Registers who makes event messages.

    Args:
        of_queue: (connection, slot, generation, event, seconds, most messages, puts, gets) -> None:
            puts the message of a performance event, and changes which ones are enabled.
    """
    global event_of_queue
    event_of_queue = of_queue


def register_triggers(*, of_put, made, opened, closed, waits):
    """Registers who evaluates the conditions of triggers.

    Args:
        of_put: (connection, slot, generation, messages before, priority) -> (initiation queue,
            trigger message), None for no trigger event.
        made: (connection, slot, generation) -> None: its trigger message has been put.
        opened: (connection, name) -> None: a queue was opened for input.
        closed: (connection, slot, generation) -> None: a handle for input was closed.
        waits: (connection, name) -> None: a get waits on the queue, about once a second.
    """
    global trigger_of_put, trigger_made, input_opened, input_closed, input_waits
    trigger_of_put = of_put
    trigger_made = made
    input_opened = opened
    input_closed = closed
    input_waits = waits


def register_list_verbs(*, put, close):
    """Registers MQPUT and MQCLOSE of distribution lists.

    Args:
        put: (connection handle, object handle, MQMD, MQPMO, data) -> results of MQPUT.
        close: (object handle) -> reason code.
    """
    global list_put, list_close
    list_put, list_close = put, close
