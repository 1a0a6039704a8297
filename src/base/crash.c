/*
 * Named crash points, in builds with -Dcrash_points=true only. MUSTER_CRASH is read before main, so
 * that a mistake in it ends the program at once and not a test half an hour later. The plans do not
 * change afterwards but for their counts, which threads share.
 */
#include "base/crash.h"

#ifdef MUSTER_CRASH_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/crash_points.h"
#include "base/str.h"
#include "base/strv.h"

enum action { CRASH_KILL, CRASH_DELAY, CRASH_FAIL };

struct plan {
    const char *point; /* in crash_points */
    enum action action;
    uint64_t delay_usec;
    uint64_t nth; /* 0: every time */
    atomic_uint_fast64_t passed;
};

static struct plan *plans;
static size_t plan_count;

static const char *point_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(crash_points); i++)
        if (str_eq(crash_points[i], name))
            return crash_points[i];
    return NULL;
}

static int action_parse(struct plan *p, const char *text, struct err *err)
{
    if (str_eq(text, "kill")) {
        p->action = CRASH_KILL;
        return 0;
    }
    if (str_eq(text, "fail")) {
        p->action = CRASH_FAIL;
        return 0;
    }
    if (str_starts(text, "delay:")) {
        p->action = CRASH_DELAY;
        return duration_parse(text + strlen("delay:"), &p->delay_usec, err);
    }
    return err_set(err, -EINVAL, "'%s' must be kill, delay:DURATION or fail", text);
}

/* "point=action[@N|@*]"; text is cut into its parts. */
static int plan_parse(struct plan *p, char *text, struct err *err)
{
    char *action = strchr(text, '=');
    char *count = strchr(text, '@');

    p->nth = 1;
    if (count) {
        *count++ = '\0';
        if (str_eq(count, "*"))
            p->nth = 0;
        else if (str_to_u64(count, UINT32_MAX, &p->nth) < 0 || p->nth == 0)
            return err_set(err, -EINVAL, "'@%s' must be @1, @2, ... or @*", count);
    }
    if (!action)
        return err_set(err, -EINVAL, "'%s' must be POINT=ACTION", text);
    *action++ = '\0';
    p->point = point_find(text);
    if (!p->point)
        return err_set(err, -EINVAL, "unknown crash point '%s'", text);
    return action_parse(p, action, err);
}

__attribute__((constructor)) static void crash_read(void)
{
    const char *text = getenv("MUSTER_CRASH");
    char **parts = strv_split(text ? text : "", ',');
    struct err err = ERR_INIT;

    plans = xnew_array(struct plan, strv_len(parts));
    strv_for_each (part, parts) {
        if (plan_parse(&plans[plan_count++], *part, &err) < 0) {
            dprintf(STDERR_FILENO, "MUSTER_CRASH: %s\n", err_text(&err));
            _exit(2);
        }
    }
    strv_free(parts);
}

static void sleep_usec(uint64_t usec)
{
    struct timespec left = {
        .tv_sec = (time_t)(usec / USEC_PER_SEC),
        .tv_nsec = (long)(usec % USEC_PER_SEC * 1000),
    };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

static int act(const struct plan *p, struct err *err)
{
    switch (p->action) {
    case CRASH_KILL:
        kill(getpid(), SIGKILL);
        abort();
    case CRASH_DELAY:
        sleep_usec(p->delay_usec);
        return 0;
    case CRASH_FAIL:
        return err_set(err, -EIO, "crash point '%s'", p->point);
    }
    abort();
}

/* Does this pass of the point count for the plan? Every pass is counted, whatever else happens. */
static bool is_due(struct plan *p)
{
    uint64_t pass = atomic_fetch_add(&p->passed, 1) + 1;

    return p->nth == 0 || pass == p->nth;
}

int crash_point(const char *name, struct err *err)
{
    int result = 0;

    assert(point_find(name)); /* must stand in crash_points.h */
    for (size_t i = 0; i < plan_count; i++) {
        struct plan *p = &plans[i];

        if (str_eq(p->point, name) && is_due(p) && act(p, err) < 0)
            result = -EIO;
    }
    return result;
}

#endif
