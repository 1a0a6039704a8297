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
