/*
 * Waiting for a session. With a terminal it is asked about several times a second, to show what it
 * waits for; without, the manager answers when it is there (long poll).
 */
#include "cli/follow.h"

#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "model/session.h"

#define SAY_AFTER_USEC (3 * USEC_PER_SEC)
#define ASK_USEC (250 * USEC_PER_MSEC)
#define BACKOFF_FIRST_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_SHIFT_MAX 4

void patience_wait(struct patience *p, const char *what)
{
    uint64_t now = clock_mono_usec();

    if (p->since_usec == 0)
        p->since_usec = now;
    if (!p->said && now - p->since_usec >= SAY_AFTER_USEC) {
        cli_say("%s; trying again", what);
        p->said = true;
    }
    usleep((useconds_t)(BACKOFF_FIRST_USEC << MIN_OF(p->tries, (unsigned)BACKOFF_SHIFT_MAX)));
    p->tries++;
}

void patience_over(struct patience *p)
{
    if (p->said)
        cli_say("connected again");
    *p = (struct patience){0};
}

/* --- states ------------------------------------------------------------------------------- */

static bool has_come(const json_t *session, const char *until)
{
    enum session_state have, want;

    if (session_state_parse(json_str_or(session, "state", ""), &have) < 0)
        return true; /* a newer manager's word; do not wait for ever */
    if (have == SESSION_STOPPING && json_is_null(json_object_get(session, "result")))
        return false; /* the start failed, and will be tried again */
    return session_state_parse(until, &want) < 0 || have >= want;
}

/* The first container that has something to say. */
static const char *container_text(const json_t *session, const char **ret_name)
{
    const json_t *c;
    size_t i;

    json_array_foreach (json_object_get(session, "containers"), i, c) {
        const char *text = json_str_or(c, "text", "");
        if (text[0]) {
            *ret_name = json_str_or(c, "name", "");
            return text;
        }
    }
    return NULL;
}

/* What it is at, as a line on the terminal; elsewhere only why it waits, and each reason once. */
static void show(const json_t *session)
{
    const char *state = json_str_or(session, "state", ""), *name;
    const char *reason = json_str_or(json_object_get(session, "reason"), "text", "");
    const char *text = container_text(session, &name);
    _cleanup_free_ char *since = text_span(session, "state_since", "none");

    if (!progress_is_shown() && str_eq(state, "pending"))
        cli_say_once("pending: %s", reason);
    else if (text)
        progress_set("%s (%s): %s: %s", state, since, name, text);
    else
        progress_set("%s (%s)%s%s", state, since, reason[0] ? ": " : "", reason);
}

static int ask(struct cli *cli, const char *id, const char *until, uint64_t left_usec, json_t **ret,
    struct err *err)
{
    _cleanup_free_ char *path = NULL;

    if (progress_is_shown() || left_usec < 30 * USEC_PER_SEC) {
        path = api_session_path(id, "");
    } else {
        _cleanup_free_ char *suffix = xasprintf("/wait?for=%s", until);
        path = api_session_path(id, suffix);
    }
    return api_get(cli, path, ret, err);
}

int follow_until(struct cli *cli, const char *id, const char *until, uint64_t until_usec,
    json_t **ret, struct err *err)
{
    struct patience patience = {0};

    for (;;) {
        uint64_t now = clock_mono_usec(), left = until_usec > now ? until_usec - now : 0;
        json_t *session = NULL;
        int r = ask(cli, id, until, until_usec ? left : UINT64_MAX, &session, err);
        if (r < 0 && (api_is_unreachable(r) || cli->status == 503)) {
            patience_wait(&patience, err_text(err));
        } else if (r < 0) {
            return r;
        } else {
            patience_over(&patience);
            if (has_come(session, until) || (until_usec && left == 0)) {
                *ret = session;
                progress_clear();
                return has_come(session, until) ? 0 : -ETIME;
            }
            show(session);
            json_decref(session);
            if (progress_is_shown() || until_usec)
                usleep((useconds_t)MIN_OF(ASK_USEC, until_usec ? MAX_OF(left, 1000u) : ASK_USEC));
        }
    }
}

/* --- ends --------------------------------------------------------------------------------- */

/* main1's own command ended, and that is the session's result: it has said what it had to say. */
static bool is_own_exit(const json_t *session, int code)
{
    const json_t *main1 = json_array_get(json_object_get(session, "containers"), 0);

    return str_eq(json_str_or(main1, "end", ""), "exit") &&
        json_u64_or(main1, "exit_code", 0) == (uint64_t)code &&
        str_eq(json_str_or(json_object_get(session, "reason"), "code", ""), "exited");
}

int follow_exit_code(const json_t *session, int dflt)
{
    const char *result = json_str_or(session, "result", "");
    _cleanup_free_ char *reason = text_reason(session);
    int code = (int)(json_u64_or(session, "exit_code", 0) & 0xff);

    if (str_eq(result, "succeeded"))
        return EXIT_OK;
    if (str_eq(result, "failed") && code != 0 && is_own_exit(session, code))
        return code;
    cli_say("session %s: %s%s%s", json_str_or(session, "name", "?"), result[0] ? result : "ended",
        reason[0] ? ": " : "", reason);
    return str_eq(result, "failed") && code != 0 ? code : dflt;
}
