# settings.pyx - the settings of a queue manager as the core takes them, and the making of its
# files.
#
# Terms
#   settings  a dictionary: "name" (str), "qm_id" (16 bytes), "region_dir" (bytes), and integers; an
#             integer that is missing or 0 takes the core's default. "group" is 1 + the id of the
#             group whose members share the files.
#
# Errors. 2046 for a setting that is unknown, of the wrong type or out of range, 2152 for the name,
# 2012 for the path.

cdef frozenset SETTINGS_32 = frozenset((
    "platform", "stripe_count", "name_bucket_count", "growth_step", "max_uncommitted",
    "max_message", "max_unit_age", "linear", "keeper", "control", "keep_mapping", "no_maintenance",
))
cdef frozenset SETTINGS_64 = frozenset((
    "segment_size", "first_segment_size", "journal_limit", "ring_size", "region_size",
    "body_budget", "group",
))
cdef object MAX_32 = 0xFFFFFFFF
cdef uint64_t GROUP_MOST = 0x100000000  # 1 + the highest id of a group
cdef object MAX_64 = 0xFFFFFFFFFFFFFFFF
cdef frozenset OTHER_SETTINGS = frozenset(("name", "qm_id", "region_dir"))


cdef bytes path_bytes(object path):
    """A path for the core."""
    import os

    raw = os.fsencode(path)
    if b"\0" in raw:
        wrong_value(RC_ENVIRONMENT_ERROR, f"the path {path!r} contains a NUL character")
    return raw


cdef uint64_t setting(dict settings, str key) except? 0:
    """An integer setting, 0 (the default) when it is not given."""
    cdef object value = settings.get(key, 0)
    if isinstance(value, bool):
        value = int(value)
    if not isinstance(value, int):
        wrong_type(RC_OPTIONS_ERROR, f"setting {key} must be an integer: {value!r}")
    if not 0 <= value <= (MAX_32 if key in SETTINGS_32 else MAX_64):
        wrong_value(RC_OPTIONS_ERROR, f"setting {key} is out of range: {value!r}")
    return <uint64_t>value


cdef int fill_settings(mqe_settings *out, dict settings) except -1:
    """Copies settings; `region_dir` stays owned by the caller's dictionary."""
    for key in settings:
        if key not in SETTINGS_32 and key not in SETTINGS_64 and key not in OTHER_SETTINGS:
            wrong_value(RC_OPTIONS_ERROR, f"there is no setting {key!r}")
    memset(out, 0, sizeof(out[0]))
    fill_identity(out, settings)
    out.platform = <uint32_t>setting(settings, "platform")
    out.segment_size = setting(settings, "segment_size")
    out.first_segment_size = setting(settings, "first_segment_size")
    out.journal_limit = setting(settings, "journal_limit")
    out.ring_size = setting(settings, "ring_size")
    out.region_size = setting(settings, "region_size")
    out.body_budget = setting(settings, "body_budget")
    out.group = setting(settings, "group")
    if out.group > GROUP_MOST:
        wrong_value(RC_OPTIONS_ERROR, f"setting group is out of range: {settings['group']!r}")
    out.stripe_count = <uint32_t>setting(settings, "stripe_count")
    out.name_bucket_count = <uint32_t>setting(settings, "name_bucket_count")
    out.growth_step = <uint32_t>setting(settings, "growth_step")
    out.max_uncommitted = <uint32_t>setting(settings, "max_uncommitted")
    out.max_message = <uint32_t>setting(settings, "max_message")
    out.max_unit_age = <uint32_t>setting(settings, "max_unit_age")
    out.linear = <uint32_t>setting(settings, "linear")
    out.keeper = <uint32_t>setting(settings, "keeper")
    out.control = <uint32_t>setting(settings, "control")
    out.keep_mapping = <uint32_t>setting(settings, "keep_mapping")
    out.no_maintenance = <uint32_t>setting(settings, "no_maintenance")
    return 0


cdef int fill_identity(mqe_settings *out, dict settings) except -1:
    """The settings that are no numbers."""
    cdef bytes name = settings.get("name", "").encode("ascii", "replace")
    cdef bytes qm_id = settings.get("qm_id", bytes(QM_ID_LENGTH))
    cdef object region_dir = settings.get("region_dir")
    if len(name) > NAME_LENGTH:
        wrong_value(
            RC_OBJECT_NAME_ERROR, f"the name {name!r} is longer than {NAME_LENGTH} characters"
        )
    memcpy(out.name, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
    if len(qm_id) != QM_ID_LENGTH:
        wrong_value(RC_OPTIONS_ERROR, f"qm_id must have {QM_ID_LENGTH} bytes: {qm_id!r}")
    memcpy(out.qm_id, PyBytes_AS_STRING(qm_id), QM_ID_LENGTH)
    if region_dir is not None:
        if not isinstance(region_dir, bytes):
            wrong_type(RC_OPTIONS_ERROR, f"region_dir must be bytes: {region_dir!r}")
        out.region_dir = PyBytes_AS_STRING(region_dir)
    return 0


def create_files(path, dict settings):
    """Makes journal, checkpoint and lock file of a new queue manager in an existing directory."""
    cdef bytes raw = path_bytes(path)
    cdef const char *text = raw
    cdef mqe_settings filled
    cdef int reason
    fill_settings(&filled, settings)
    with nogil:
        reason = mqe_create(text, &filled)
    if reason:
        fail(reason, str(path))
