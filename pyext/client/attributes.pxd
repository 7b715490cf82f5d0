# attributes.pxd - what opening a queue needs of its definition.

cdef struct queue_use:
    int64_t default_share     # DEFSOPT: MQOO_INPUT_SHARED or MQOO_INPUT_EXCLUSIVE
    int64_t usage             # MQUS_*
    int64_t shareability      # MQQA_*
    bint clustered            # CLUSTER or CLUSNL is not blank
