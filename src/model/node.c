/* A node: its words and its state table (drawn in the header). Usage is not kept here. */
#include "model/node.h"

#include "model/words.h"

WORDS_DEFINE(node_state, enum node_state, "up", "unreachable", "lost")

#define TO(state) (1u << NODE_##state)

static const unsigned moves[NODE_STATE_COUNT] = {
    /* clang-format off */
    [NODE_UP]          = TO(UNREACHABLE),
    [NODE_UNREACHABLE] = TO(UP) | TO(LOST),
    [NODE_LOST]        = TO(UP),
    /* clang-format on */
};

bool gpu_model_fits(const char *wish, const char *model)
{
    size_t len = strlen(model);

    for (const char *at = wish; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == len && strncmp(at, model, len) == 0)
            return true;
    return !*wish;
}

int gpu_fake_parse(
    const char *spec, char model[NAME_MAX_LEN + 1], uint32_t *ret_count, struct err *err)
{
    const char *at = spec + strlen(GPU_FAKE), *colon = strchr(at, ':');
    _cleanup_free_ char *name = NULL;
    uint64_t count;

    if (!colon || str_to_u64(colon + 1, NODE_GPUS_MAX, &count) < 0 || count == 0)
        return err_set(err, -EINVAL, "pretend GPUs are 'fake:MODEL:COUNT' with a count of 1 to %d",
            NODE_GPUS_MAX);
    name = xstrndup(at, (size_t)(colon - at));
    if (name_check("GPU model", name, err) < 0)
        return -EINVAL;
    assert(str_copy(model, NAME_MAX_LEN + 1, name) == 0);
    *ret_count = (uint32_t)count;
    return 0;
}

void node_done(struct node *n)
{
    free(n->gpus);
    *n = (struct node){0};
}

int node_state_move(enum node_state *state, enum node_state next, struct err *err)
{
    assert(*state < NODE_STATE_COUNT && next < NODE_STATE_COUNT);
    if (*state == next)
        return 0;
    if (!(moves[*state] & (1u << next)))
        return err_set(err, -EPROTO, "a node cannot go from '%s' to '%s'", node_state_name(*state),
            node_state_name(next));
    *state = next;
    return 0;
}

bool node_takes_work(const struct node *n)
{
    return n->state == NODE_UP && !n->drained;
}
