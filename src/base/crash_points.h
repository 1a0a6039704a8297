/* Every named crash point: "component.after_or_before_what". A lint compares this table with the
 * calls of crash_point and with the tests. Included by crash.c only. */
#ifndef BASE_CRASH_POINTS_H
#define BASE_CRASH_POINTS_H

static const char *const crash_points[] = {
    "place.after_commit",
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
    "container.after_start",
};

#endif
