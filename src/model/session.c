/*
 * A session's life: making and freeing it, its words, its state table (drawn in the header) and the
 * invariants that hold between the moves. What a request may say is in session_request.c, what the
 * containers see is in session_environment.c.
 */
#include "model/session.h"

#include "base/strv.h"
#include "model/words.h"

WORDS_DEFINE(session_state, enum session_state, "pending", "preparing", "starting", "running",
    "stopping", "ended")

WORDS_DEFINE(session_result, enum session_result, "", "succeeded", "failed", "cancelled", "timeout",
    "lost", "preempted")

WORDS_DEFINE(session_kind, enum session_kind, "debug", "train")

WORDS_DEFINE(session_mode, enum session_mode, "single-node", "multi-node")

WORDS_DEFINE(session_on, enum session_on, "main", "all")

WORDS_DEFINE(session_qos, enum session_qos, "low", "normal", "high")
WORDS_DEFINE(session_hold, enum session_hold, "none", "user", "operator")

WORDS_DEFINE(session_on_failure, enum session_on_failure, "strict", "tolerant")

#define TO(state) (1u << SESSION_##state)

static const unsigned moves[SESSION_STATE_COUNT] = {
    /* clang-format off */
    [SESSION_PENDING]   = TO(PREPARING) | TO(ENDED),
    [SESSION_PREPARING] = TO(STARTING) | TO(STOPPING) | TO(ENDED),
    [SESSION_STARTING]  = TO(RUNNING) | TO(STOPPING),
    [SESSION_RUNNING]   = TO(STOPPING),
    [SESSION_STOPPING]  = TO(ENDED) | TO(PENDING),
    [SESSION_ENDED]     = 0,
    /* clang-format on */
};

struct session *session_new(void)
{
    return xnew(struct session);
}

static void containers_free(struct session *s)
{
    for (uint32_t i = 0; s->containers && i < s->size; i++)
        container_done(&s->containers[i]);
    free(s->containers);
    s->containers = NULL;
}

/* The private halves do not stay behind in freed memory. */
static void secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    containers_free(s);
    strv_free(s->command);
    strv_free(s->env);
    strv_free(s->depends);
    free(s->mounts);
    secret_free(s->ssh_private);
    free(s->ssh_public);
    secret_free(s->ssh_host_private);
    free(s->ssh_host_public);
    free(s);
}

void session_freep(struct session **s)
{
    session_free(*s);
}

void session_make_containers(struct session *s)
{
    assert(!s->containers && s->size > 0 && s->size <= SESSION_SIZE_MAX);
    s->containers = xnew_array(struct container, s->size);
    for (uint32_t i = 0; i < s->size; i++) {
        s->containers[i].rank = i;
        container_name_make(i, s->containers[i].name);
        if (i > 0)
            uuid_make(s->containers[i].id);
    }
    STR_SET(s->containers[0].id, s->id);
}

int session_state_move(
    struct session *s, enum session_state next, uint64_t now_usec, struct err *err)
{
    assert(s->state < SESSION_STATE_COUNT && next < SESSION_STATE_COUNT);
    if (!(moves[s->state] & (1u << next)))
        return err_set(err, -EPROTO, "a session cannot go from '%s' to '%s'",
            session_state_name(s->state), session_state_name(next));
    s->state = next;
    s->state_usec = now_usec;
    return 0;
}

static int check_container(const struct session *s, const struct container *c, struct err *err)
{
    const char *state = session_state_name(s->state);

    if (s->state == SESSION_PENDING && container_holds(c))
        return err_set(err, -EINVAL, "session %s is pending, yet '%s' holds resources (%s)", s->id,
            c->name, container_state_name(c->state));
    if (s->state == SESSION_ENDED && c->state != CONTAINER_WAITING && c->state != CONTAINER_REMOVED)
        return err_set(err, -EINVAL, "session %s has ended, yet '%s' is %s", s->id, c->name,
            container_state_name(c->state));
    if (s->state != SESSION_PENDING && s->state != SESSION_ENDED && !c->node[0])
        return err_set(
            err, -EINVAL, "session %s is %s, yet '%s' has no node", s->id, state, c->name);
    if (c->node[0] && container_holds(c) && c->gpu_count != s->each.gpus)
        return err_set(err, -EINVAL, "session %s asks for %u GPUs each, yet '%s' has %u", s->id,
            s->each.gpus, c->name, c->gpu_count);
    return 0;
}

int session_check(const struct session *s, struct err *err)
{
    int r;

    if (!s->containers || s->size == 0)
        return err_set(err, -EINVAL, "session %s has no containers", s->id);
    for (uint32_t i = 0; i < s->size; i++) {
        if (s->containers[i].rank != i)
            return err_set(err, -EINVAL, "session %s: container number %u has rank %u", s->id, i,
                s->containers[i].rank);
        r = check_container(s, &s->containers[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

struct container *session_container(struct session *s, const char *name)
{
    for (uint32_t i = 0; s->containers && i < s->size; i++)
        if (str_eq(s->containers[i].name, name))
            return &s->containers[i];
    return NULL;
}

bool session_is_over(const struct session *s)
{
    return s->state == SESSION_ENDED;
}

static const struct {
    const char *word;
    enum retry_on on;
    enum session_result result;
} retries[] = {
    {"node-fail", RETRY_NODE_FAIL, RESULT_LOST},
    {"timeout", RETRY_TIMEOUT, RESULT_TIMEOUT},
    {"exit", RETRY_EXIT, RESULT_FAILED},
};

int session_retry_on_parse(const char *text, uint32_t *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(retries); i++)
        if (str_eq(text, retries[i].word)) {
            *ret = retries[i].on;
            return 0;
        }
    return -EINVAL;
}

const char *session_retry_on_name(enum retry_on on)
{
    for (size_t i = 0; i < ARRAY_LEN(retries); i++)
        if (retries[i].on == on)
            return retries[i].word;
    return "";
}

bool session_tries_again(const struct session *s)
{
    for (size_t i = 0; i < ARRAY_LEN(retries); i++)
        if (s->result == retries[i].result && (s->retry_on & retries[i].on))
            return s->retried < s->retry_max;
    return false;
}

uint64_t session_grace(const struct session *s)
{
    uint64_t since = s->state_usec;

    if (!s->preempt_at_usec || s->state != SESSION_STOPPING)
        return s->grace_usec;
    return s->preempt_at_usec > since ? s->preempt_at_usec - since : 0;
}

uint64_t session_may_run(const struct session *s, uint64_t start_usec)
{
    uint64_t limit = s->time_limit_usec ? s->time_limit_usec : UINT64_MAX;

    if (!s->finish_usec)
        return limit;
    return s->finish_usec > start_usec ? MIN_OF(limit, s->finish_usec - start_usec) : 0;
}
