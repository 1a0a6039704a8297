/*
 * One container: its words, its state table (drawn in the header), its names. Knows nothing of the
 * session around it but its own rank.
 */
#include "model/container.h"

#include "model/words.h"

WORDS_DEFINE(container_state, enum container_state, "waiting", "assigned", "preparing", "ready",
    "running", "exited", "removed")

WORDS_DEFINE(container_end, enum container_end, "none", "exit", "signal", "oom", "start_failed",
    "monitor_lost", "stopped", "node_lost")

#define TO(state) (1u << CONTAINER_##state)

/* Steps may be skipped where a link was down while they happened, but a container never starts to
 * run without having been seen ready, nor is resurrected within an attempt. */
static const unsigned moves[CONTAINER_STATE_COUNT] = {
    /* clang-format off */
    [CONTAINER_WAITING]   = TO(ASSIGNED),
    [CONTAINER_ASSIGNED]  = TO(PREPARING) | TO(READY) | TO(EXITED) | TO(REMOVED),
    [CONTAINER_PREPARING] = TO(READY) | TO(EXITED) | TO(REMOVED),
    [CONTAINER_READY]     = TO(RUNNING) | TO(EXITED) | TO(REMOVED),
    [CONTAINER_RUNNING]   = TO(EXITED) | TO(REMOVED),
    [CONTAINER_EXITED]    = TO(REMOVED),
    [CONTAINER_REMOVED]   = TO(WAITING),
    /* clang-format on */
};

void container_done(struct container *c)
{
    free(c->gpus);
    *c = (struct container){0};
}

int container_state_move(enum container_state *state, enum container_state next, struct err *err)
{
    assert(*state < CONTAINER_STATE_COUNT && next < CONTAINER_STATE_COUNT);
    if (*state == next)
        return 0;
    if (!(moves[*state] & (1u << next)))
        return err_set(err, -EPROTO, "a container cannot go from '%s' to '%s'",
            container_state_name(*state), container_state_name(next));
    *state = next;
    return 0;
}

bool container_holds(const struct container *c)
{
    return c->state >= CONTAINER_ASSIGNED && c->state <= CONTAINER_EXITED;
}

void container_name_make(uint32_t rank, char name[16])
{
    if (rank == 0)
        snprintf(name, 16, "main1");
    else
        snprintf(name, 16, "sub%u", rank);
}

bool container_is_main(const struct container *c)
{
    return c->rank == 0;
}

uint32_t container_role_idx(const struct container *c)
{
    return c->rank == 0 ? 1 : c->rank;
}

static void describe_signal(int signo, char *text, size_t size)
{
    const char *name = sigabbrev_np(signo);

    if (name)
        snprintf(text, size, "killed by signal %d (SIG%s)", signo, name);
    else
        snprintf(text, size, "killed by signal %d", signo);
}

/* "what: why" when the agent said why. */
static void describe_with_text(const struct container *c, const char *what, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", what, c->text[0] ? ": " : "", c->text);
}

char *container_end_describe(const struct container *c, char *text, size_t size)
{
    char what[NAME_MAX_LEN + 40];

    assert(size > 0);
    text[0] = '\0';
    switch (c->end) {
    case END_EXIT:
        snprintf(text, size, "exited with %d", c->exit_code);
        break;
    case END_SIGNAL:
        describe_signal(c->exit_code, text, size);
        break;
    case END_OOM:
        snprintf(text, size, "%s", c->text[0] ? c->text : "ran out of its memory");
        break;
    case END_START_FAILED:
        describe_with_text(c, "could not be started", text, size);
        break;
    case END_MONITOR_LOST:
        describe_with_text(c, "lost its monitor, so that its exit code is not known", text, size);
        break;
    case END_STOPPED:
        snprintf(text, size, "was stopped");
        break;
    case END_NODE_LOST:
        snprintf(what, sizeof(what), "went down with its node '%s'", c->node);
        describe_with_text(c, what, text, size);
        break;
    case END_NONE:
    case END_COUNT:
        snprintf(text, size, "has not ended");
        break;
    }
    return text;
}
