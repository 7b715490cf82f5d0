# message.pyx - what put() and get() return.
#
# Both are light: no garbage-collector header, a free list, fields as C values that become Python
# objects when they are asked for.
#
# Invariants
#   1. Message and body are allocated before the core removes the message: what follows the removal
#      cannot fail (crash-safety rule 34). trim_body() and extension_bytes() go on without memory.

cdef object epoch = None      # 1970-01-01 UTC; datetime is imported when first needed
cdef object timedelta = None
cdef object parse_json = None   # imported when first needed


cdef inline uint64_t known_time(uint64_t time_us) noexcept:
    """The time of a put; the last that a date can be for one that a damaged message has."""
    return min(time_us, <uint64_t>PUT_TIME_MAX)


cdef object from_microseconds(uint64_t time_us):
    """An aware UTC datetime."""
    global epoch, timedelta
    if epoch is None:
        import datetime

        timedelta = datetime.timedelta
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + timedelta(microseconds=known_time(time_us))


@cython.final
@cython.freelist(64)
cdef class PutResult:
    """What a put returns: the message's identifier and how the call ended.

    ``reason`` is 0, or the reason code of a warning under which the message was put, such as 2049.
    """

    def __init__(self):
        raise TypeError("made by put() only")

    @property
    def msg_id(self):
        """The message's identifier, 24 bytes."""
        return PyBytes_FromStringAndSize(<char *>self._msg_id, ID_LENGTH)

    @property
    def comp_code(self):
        """0 or 1 (a warning)."""
        return 0 if self.reason == 0 else 1

    @property
    def reason_name(self):
        """Name of the reason code, such as ``MQRC_PRIORITY_EXCEEDS_MAXIMUM``."""
        return reason_name(self.reason)

    def __reduce__(self):
        return restore_put_result, (self.msg_id, self.reason)

    def __repr__(self):
        return f"<PutResult msg_id={self.msg_id.hex()} reason={self.reason}>"


@cython.final
@cython.freelist(64)
cdef class Message:
    """A message got or browsed: its body and its descriptor, as they are stored."""

    def __init__(self):
        raise TypeError("made by get() and browse() only")

    cdef const ps_descriptor_ext *extension(self):
        if self._ext is None:
            return NULL
        return <const ps_descriptor_ext *>PyBytes_AS_STRING(self._ext)

    @property
    def data(self):
        """The body, as put; cut when ``reason`` is 2079."""
        return self._data

    @property
    def text(self):
        """The body as a str. Raises InvalidValue: 2110 when it is no text: not UTF-8, or its format
        is one of MQ's others than MQSTR; 2111 when its CCSID is not 1208 (UTF-8).
        """
        return body_text(self)

    def json(self):
        """The value of a body that is JSON. Raises InvalidValue: 2110 when it is not, else as
        ``text`` does.
        """
        return json_value(body_text(self))

    @property
    def comp_code(self):
        """0, or 1 when the get ended with a warning."""
        return 0 if self.reason == 0 else 1

    @property
    def reason_name(self):
        """Name of the reason code."""
        return reason_name(self.reason)

    @property
    def priority(self):
        """The priority field as the putter gave it (its queue's default when it gave none)."""
        return self._d.priority

    @property
    def placement(self):
        """The priority, 0 to 9, at which the message stands in its queue, fixed by its put."""
        return self._d.placement

    @property
    def persistent(self):
        """Whether the message survives a restart."""
        return self._d.persistence == MQPER_PERSISTENT

    @property
    def msg_id(self):
        """24 bytes."""
        return PyBytes_FromStringAndSize(<char *>self._d.msg_id, ID_LENGTH)

    @property
    def correl_id(self):
        """24 bytes, NULs when none was given."""
        return PyBytes_FromStringAndSize(<char *>self._d.correl_id, ID_LENGTH)

    @property
    def group_id(self):
        """24 bytes, NULs when the message is in no group."""
        cdef const ps_descriptor_ext *ext = self.extension()
        if ext is NULL:
            return bytes(ID_LENGTH)
        return PyBytes_FromStringAndSize(<char *>ext.group_id, ID_LENGTH)

    @property
    def backout_count(self):
        """How often a unit of work that had got the message was backed out."""
        return self._d.backout_count

    @property
    def put_time(self):
        """When it was put: an aware UTC datetime."""
        return from_microseconds(self._d.put_time_us)

    @property
    def due(self):
        """Before which time no get found it: an aware UTC datetime; None: it was not delayed. What
        put() was told: a backout with a delay does not change it.
        """
        return None if self._d.due_us == 0 else from_microseconds(self._d.due_us)

    @property
    def expiry(self):
        """Seconds it had left when it was got; None: it does not expire."""
        return None if self._expiry < 0 else self._expiry / 10.0

    @property
    def format(self):
        """Name of the body's format, without trailing blanks."""
        return from_blank_padded(self._d.format, MQ_FORMAT_LENGTH)

    @property
    def encoding(self):
        """How numbers in the body are encoded."""
        return self._d.encoding

    @property
    def ccsid(self):
        """Character set of the body."""
        return self._d.ccsid

    @property
    def msg_type(self):
        """1 request, 2 reply, 4 report, 8 datagram, or a number of the application."""
        return self._d.msg_type

    @property
    def feedback(self):
        """Why a report was made."""
        return self._d.feedback

    @property
    def report(self):
        """Which reports the putter wants."""
        return self._d.report

    @property
    def reply_to_q(self):
        """Name of the queue for replies, or an empty string."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return "" if ext is NULL else from_blank_padded(ext.reply_to_q, NAME_LENGTH)

    @property
    def reply_to_qmgr(self):
        """Name of the queue manager for replies, or an empty string."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return "" if ext is NULL else from_blank_padded(ext.reply_to_qmgr, NAME_LENGTH)

    @property
    def user_identifier(self):
        """The user identifier of the putter."""
        return from_blank_padded(self._d.user_identifier, MQ_USER_ID_LENGTH)

    @property
    def put_appl_type(self):
        """Type of the putting program, MQAT_*."""
        return self._d.put_appl_type

    @property
    def put_appl_name(self):
        """Name of the putting program."""
        return from_blank_padded(self._d.put_appl_name, MQ_PUT_APPL_NAME_LENGTH)

    @property
    def appl_origin_data(self):
        """Four characters of the putting program."""
        return from_blank_padded(self._d.appl_origin_data, MQ_APPL_ORIGIN_DATA_LENGTH)

    @property
    def appl_identity_data(self):
        """32 characters of the putting program."""
        cdef const ps_descriptor_ext *ext = self.extension()
        if ext is NULL:
            return ""
        return from_blank_padded(ext.appl_identity_data, MQ_APPL_IDENTITY_DATA_LENGTH)

    @property
    def accounting_token(self):
        """32 bytes."""
        return PyBytes_FromStringAndSize(
            <char *>self._d.accounting_token, MQ_ACCOUNTING_TOKEN_LENGTH
        )

    @property
    def msg_seq_number(self):
        """Number in its group, from 1."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return 1 if ext is NULL else ext.msg_seq_number

    @property
    def offset(self):
        """Offset of a segment in its logical message, in bytes."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return 0 if ext is NULL else ext.offset

    @property
    def msg_flags(self):
        """Flags of group and segment."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return 0 if ext is NULL else ext.msg_flags

    @property
    def original_length(self):
        """Length of the original of a report, -1 undefined."""
        cdef const ps_descriptor_ext *ext = self.extension()
        return MQOL_UNDEFINED if ext is NULL else ext.original_length

    @property
    def md_version(self):
        """Version of the descriptor it was put with."""
        return self._d.md_version

    def reply(self, data=b"", **fields):
        """Arguments of put() for a reply to this message, as its sender asked for it:
        ``queue.put(**message.reply(b"done"))``. See also ``qm.reply()``.

        Priority and persistence are the message's. The report options choose the ids: MsgId a new
        one, or the message's (MQRO_PASS_MSG_ID); CorrelId the message's MsgId, or its CorrelId
        (MQRO_PASS_CORREL_ID). With MQRO_PASS_DISCARD_AND_EXPIRY the reply has what is left of the
        message's expiry, and its MQRO_DISCARD_MSG. ``fields``: more arguments of put(), such as
        ``json`` instead of data, or others than these.
        """
        cdef dict reply = {
            "priority": self.priority, "persistent": self.persistent, "msg_type": MQMT_REPLY,
        }
        if not ("json" in fields and type(data) is bytes and not data):
            reply["data"] = data
        if self._d.report & MQRO_PASS_MSG_ID:
            reply["msg_id"] = self.msg_id
        passed = self._d.report & MQRO_PASS_CORREL_ID
        reply["correl_id"] = self.correl_id if passed else self.msg_id
        if self._d.report & MQRO_PASS_DISCARD_AND_EXPIRY:
            if self._expiry > 0:
                reply["expiry"] = self._expiry / 10.0
            if self._d.report & MQRO_DISCARD_MSG:
                reply["report"] = MQRO_DISCARD_MSG
        reply.update(fields)
        return reply

    def __len__(self):
        return 0 if self._data is None else PyBytes_GET_SIZE(self._data)

    def __bytes__(self):
        return b"" if self._data is None else self._data

    def __reduce__(self):
        return restore_message, (
            bytes(self), PyBytes_FromStringAndSize(<char *>&self._d, sizeof(self._d)), self._ext,
            self._expiry, self.length, self.number, self.reason,
        )

    def __repr__(self):
        kind = "persistent" if self.persistent else "non-persistent"
        return (
            f"<Message {self.length} bytes, priority {self.priority}, {kind}, "
            f"msg_id={self.msg_id.hex()}>"
        )


cdef str body_text(Message message):
    """The body as a text; see Message.text."""
    cdef str format = message.format
    if format.startswith("MQ") and format != "MQSTR":
        wrong_value(RC_FORMAT_ERROR, f"the body has the format {format}, which is no text")
    if message._d.ccsid != MQCCSI_UTF8:
        wrong_value(
            RC_SOURCE_CCSID_ERROR,
            f"the body has CCSID {message._d.ccsid}, only {MQCCSI_UTF8} (UTF-8) is decoded here: "
            f"decode its data",
        )
    try:
        return bytes(message).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidValue(RC_FORMAT_ERROR, f"the body is no text: {error}") from None


cdef object json_value(str text):
    """The value of a text that is JSON."""
    global parse_json
    if parse_json is None:
        import json

        parse_json = json.loads
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(
            RC_FORMAT_ERROR, f"the body is no JSON: {error}: {text[:40]!r}"
        ) from None


def restore_put_result(bytes msg_id not None, int reason):
    """A PutResult out of its pickled state."""
    cdef PutResult result = PutResult.__new__(PutResult)
    take_id(msg_id, result._msg_id, RC_MSG_ID_ERROR, "msg_id")
    result.reason = reason
    return result


def restore_message(
    bytes data not None, bytes descriptor not None, bytes extension, int32_t expiry,
    uint64_t length, uint64_t number, int reason,
):
    """A Message out of its pickled state: the body, the descriptor as it is stored, and what else a
    get says.
    """
    cdef Message message = Message.__new__(Message)
    if len(descriptor) != sizeof(message._d) or (
        extension is not None and len(extension) != sizeof(ps_descriptor_ext)
    ):
        wrong_value(RC_MD_ERROR, "not the state of a message of this version")
    memcpy(&message._d, PyBytes_AS_STRING(descriptor), sizeof(message._d))
    message._d.has_ext = extension is not None
    message._ext = extension
    message._data = data
    message._expiry = expiry
    message.length = length
    message.number = number
    message.reason = reason
    return message


cdef inline PyObject *new_body(Py_ssize_t size) except NULL:
    """A bytes object to be filled, before anything else can refer to it."""
    return PyBytes_New(NULL, size)


cdef bytes trim_body(PyObject *room, Py_ssize_t capacity, Py_ssize_t size):
    """The bytes object cut to its first `size` bytes; steals `room`. Cannot fail: the message has
    been removed already, so a body that cannot be copied smaller keeps its larger block.
    """
    cdef PyObject *copy
    if size == capacity:
        return steal(room)
    if size == 0:
        Py_DECREF(room)
        return b""
    if capacity - size > BODY_SLACK and capacity - size > size >> 2:
        copy = PyBytes_New(PyBytes_AS_STRING(<object>room), size)
        if copy is not NULL:
            Py_DECREF(room)
            return steal(copy)
        PyErr_Clear()
    PyBytes_AS_STRING(<object>room)[size] = 0
    Py_SET_SIZE(room, size)
    return steal(room)


cdef inline bytes steal(PyObject *owned):
    """The same reference as an object of Cython's."""
    cdef bytes result = <bytes>owned
    Py_DECREF(owned)
    return result


cdef bytes extension_bytes(const ps_descriptor_ext *ext):
    """A copy of the extension; None when there is no memory, as the message is already taken."""
    cdef PyObject *copy = PyBytes_New(<const char *>ext, sizeof(ext[0]))
    if copy is NULL:
        PyErr_Clear()
        return None
    return steal(copy)
