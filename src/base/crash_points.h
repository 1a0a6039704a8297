/* Every named crash point: "component.after_or_before_what". A lint compares this table with the
 * calls of crash_point and with the tests. Included by crash.c only. */
#ifndef BASE_CRASH_POINTS_H
#define BASE_CRASH_POINTS_H

static const char *const crash_points[] = {
    /* manager */
    "reply.after_commit",
    "place.after_commit",
    "barrier.after_commit",
    "stop.after_commit",
    /* agent */
    "agent.after_spec",
    "agent.after_phase",
    "agent.after_barrier",
    "container.before_start",
    "container.after_login",
    "remove.after_runtime",
    "remove.after_edge",
    /* parts */
    "container.after_create",
    "container.after_files",
    "container.after_mount",
    "store.before_commit",
    "store.after_commit",
    "import.before_rename",
    "import.before_record",
    "net.after_filter",
    "net.after_link",
    "net.after_port",
};

#endif
