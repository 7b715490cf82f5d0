# route.pyx - what a name resolved to becomes the destination of a handle.
#
# Terms. See queue_handle.pyx: route, destination.
#
# Locks. None: the handle is not open yet.
#
# Errors. 2195 for a route with more steps than the core takes.


cdef int take_route(QueueHandle handle, object route) except -1:
    """The destination of the handle is what its name resolved to."""
    cdef uint32_t i = 0
    handle.route = route
    handle.to.queue, handle.to.queue_generation = route.queue
    handle.to.first, handle.to.first_generation = route.first or route.queue
    if len(route.steps) > MQE_STEPS_MAX:  # no path of names is longer
        raise error_for(RC_UNEXPECTED_ERROR, f"queue {handle.name}: {len(route.steps)} steps")
    for slot, generation, resolution in route.steps:
        handle.to.step[i].slot = slot
        handle.to.step[i].generation = generation
        handle.to.step[i].resolution_version = resolution
        i += 1
    handle.to.step_count = i
    handle.opened_type = route.opened
    if route.remote is not None and route.remote[0]:  # else: the definition itself
        handle.remote = True
        handle.chooses = bool(route.instances)
        handle.chooses_defaults = handle.chooses and route.first is None
        start_header(handle.header, route.remote[0], route.resolved_manager)
    take_text(route.resolved_name, handle.resolved, NAME_LENGTH, "ResolvedQName")
    take_text(
        route.resolved_manager, handle.resolved + NAME_LENGTH, NAME_LENGTH, "ResolvedQMgrName"
    )
    take_text(route.queue_name, handle.local, NAME_LENGTH, "ResolvedQName")
    memcpy(handle.local + NAME_LENGTH, handle.connection.padded_name, NAME_LENGTH)
    return 0
