/*
 * The tables of the book. Handles of jobs are reused through a chain of holes; a name's number is
 * not.
 */
#include "sched/book.h"

#include "base/strv.h"

void book_init(struct book *b)
{
    *b = (struct book){.hole = BOOK_NONE};
    map_init(&b->shape_index);
    map_init(&b->names);
    map_init(&b->switches);
    tree_init(&b->tree);
    tree_leaf(&b->tree, TREE_NONE, TREE_NONE); /* 0: nobody */
}

void book_done(struct book *b)
{
    for (uint32_t i = 0; i < b->node_count; i++)
        free(b->nodes[i].name);
    for (uint32_t i = 0; i < b->job_count; i++)
        free(b->jobs[i].shares);
    for (uint32_t i = 0; i < b->text_count; i++)
        free(b->texts[i]);
    for (uint32_t i = 0; i < b->model_count; i++)
        free(b->models[i]);
    free(b->nodes);
    free(b->shapes);
    free(b->shape_jobs);
    free(b->jobs);
    free(b->texts);
    map_done(&b->shape_index, NULL);
    map_done(&b->names, NULL);
    map_done(&b->switches, NULL);
    tree_done(&b->tree);
}

static char **copy_texts(char *const *from, size_t count)
{
    char **to = xnew_array(char *, count + 1);

    for (size_t i = 0; i < count; i++)
        to[i] = xstrdup(from[i]);
    return to;
}

void book_copy(struct book *to, const struct book *from)
{
    *to = *from;
    to->nodes = xmemdup(from->nodes, from->node_cap * sizeof(*from->nodes));
    for (uint32_t i = 0; i < from->node_count; i++)
        to->nodes[i].name = xstrdup(from->nodes[i].name);
    to->shapes = xmemdup(from->shapes, from->shape_cap * sizeof(*from->shapes));
    to->shape_jobs = xmemdup(from->shape_jobs, from->shape_cap * sizeof(*from->shape_jobs));
    to->jobs = xmemdup(from->jobs, from->job_cap * sizeof(*from->jobs));
    book_for_each_job(i, to)
    {
        struct book_job *j = &to->jobs[i];

        if (j->shares)
            j->shares = xmemdup(j->shares, to->shapes[j->shape].size * sizeof(*j->shares));
    }
    to->texts = copy_texts(from->texts, from->text_count);
    to->text_cap = from->text_count + 1;
    for (uint32_t i = 0; i < from->model_count; i++)
        to->models[i] = xstrdup(from->models[i]);
    map_copy(&to->shape_index, &from->shape_index);
    map_copy(&to->names, &from->names);
    map_copy(&to->switches, &from->switches);
    tree_copy(&to->tree, &from->tree);
}

/* --- names -------------------------------------------------------------------------------- */

/* Numbers live in maps as pointers, one higher: a map has no NULL. */
static uint32_t number_of(const struct map *m, const char *key)
{
    return (uint32_t)(uintptr_t)map_get(m, key) - 1;
}

static void set_number(struct map *m, const char *key, uint32_t number)
{
    map_set(m, key, (void *)(uintptr_t)(number + 1));
}

uint32_t book_name(struct book *b, const char *text)
{
    uint32_t number = number_of(&b->names, text);

    if (number != BOOK_NONE)
        return number;
    number = b->text_count++;
    b->texts = xgrow(b->texts, &b->text_cap, b->text_count, sizeof(*b->texts));
    b->texts[number] = xstrdup(text);
    set_number(&b->names, text, number);
    return number;
}

const char *book_text(const struct book *b, uint32_t number)
{
    assert(number < b->text_count);
    return b->texts[number];
}

int book_model(struct book *b, const char *name, uint8_t *ret)
{
    uint32_t i = 0;

    while (i < b->model_count && strcmp(b->models[i], name) != 0)
        i++;
    if (i == BOOK_MODELS_MAX)
        return -ENOSPC;
    if (i == b->model_count) {
        b->model_weight[i] = BOOK_WEIGHT;
        b->models[b->model_count++] = xstrdup(name);
    }
    *ret = (uint8_t)i;
    return 0;
}

int book_switch(struct book *b, const char *name, uint16_t *ret)
{
    uint32_t number = *name ? number_of(&b->switches, name) : 0;

    if (number == BOOK_NONE) {
        number = (uint32_t)map_count(&b->switches) + 1;
        if (number > UINT16_MAX)
            return -ENOSPC;
        set_number(&b->switches, name, number);
    }
    *ret = (uint16_t)number;
    return 0;
}

int book_models(struct book *b, const char *names, uint32_t *ret)
{
    _cleanup_(strv_freep) char **parts = strv_split(names, '|');
    uint32_t bits = 0;

    strv_for_each (part, parts) {
        uint8_t model;
        int r;

        if (!**part)
            continue;
        r = book_model(b, *part, &model);
        if (r < 0)
            return r;
        bits |= 1u << model;
    }
    *ret = bits;
    return 0;
}

/* --- nodes -------------------------------------------------------------------------------- */

/* The first node whose name is not before this one. */
static uint32_t node_at(const struct book *b, const char *name)
{
    uint32_t low = 0, high = b->node_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (strcmp(b->nodes[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t book_node_find(const struct book *b, const char *name)
{
    uint32_t at = node_at(b, name);

    return at < b->node_count && strcmp(b->nodes[at].name, name) == 0 ? at : BOOK_NONE;
}

/* Shares name nodes by index. */
static void shift_shares(struct book *b, uint32_t from, int by)
{
    book_for_each_job(i, b)
    {
        struct book_job *j = &b->jobs[i];

        for (uint32_t k = 0; j->shares && k < b->shapes[j->shape].size; k++)
            if (j->shares[k].node >= from && j->shares[k].node != BOOK_NONE)
                j->shares[k].node += (uint32_t)by;
    }
}

static uint32_t models_of(const struct book_node *n)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < n->gpus; i++)
        bits |= 1u << n->model[i];
    return bits;
}

uint32_t book_node_put(struct book *b, const struct book_node *n)
{
    uint32_t at = node_at(b, n->name);
    struct book_node *to;
    char *name = NULL;

    assert(n->gpus <= SHAPE_GPUS_MAX);
    if (at < b->node_count && strcmp(b->nodes[at].name, n->name) == 0) {
        name = b->nodes[at].name;
    } else {
        b->nodes = xgrow(b->nodes, &b->node_cap, b->node_count + 1, sizeof(*b->nodes));
        memmove(&b->nodes[at + 1], &b->nodes[at], (b->node_count - at) * sizeof(*b->nodes));
        b->node_count++;
        shift_shares(b, at, 1);
        name = xstrdup(n->name);
    }
    to = &b->nodes[at];
    *to = *n;
    to->name = name;
    to->models = models_of(to);
    return at;
}

static void forget_plans(struct book *b, uint32_t node)
{
    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];
        bool there = false;

        for (uint32_t k = 0; j->state == JOB_WAITS && j->shares && k < b->shapes[j->shape].size;
             k++)
            there |= j->shares[k].node == node;
        if (there)
            book_job_plan(b, i, NULL, 0);
    }
}

void book_node_remove(struct book *b, uint32_t node)
{
    assert(node < b->node_count);
    forget_plans(b, node);
    free(b->nodes[node].name);
    b->node_count--;
    memmove(&b->nodes[node], &b->nodes[node + 1], (b->node_count - node) * sizeof(*b->nodes));
    shift_shares(b, node + 1, -1);
}

/* --- shapes ------------------------------------------------------------------------------- */

#define SHAPE_KEY_MAX (2 * sizeof(struct shape) + 1)

static void shape_key(const struct shape *shape, char key[SHAPE_KEY_MAX])
{
    const unsigned char *bytes = (const unsigned char *)shape;

    for (size_t i = 0; i < sizeof(*shape); i++) {
        key[2 * i] = (char)('A' + (bytes[i] >> 4));
        key[2 * i + 1] = (char)('A' + (bytes[i] & 15));
    }
    key[SHAPE_KEY_MAX - 1] = '\0';
}

uint32_t book_shape(struct book *b, const struct shape *shape)
{
    char key[SHAPE_KEY_MAX];
    uint32_t number;

    shape_key(shape, key);
    number = number_of(&b->shape_index, key);
    if (number != BOOK_NONE)
        return number;
    number = b->shape_count++;
    if (b->shape_count > b->shape_cap) {
        size_t cap = b->shape_cap;

        b->shapes = xgrow(b->shapes, &b->shape_cap, b->shape_count, sizeof(*b->shapes));
        b->shape_jobs = xgrow(b->shape_jobs, &cap, b->shape_cap, sizeof(*b->shape_jobs));
    }
    b->shapes[number] = *shape;
    b->shape_jobs[number] = 0;
    set_number(&b->shape_index, key, number);
    return number;
}

void book_drop_shapes(struct book *b)
{
    _cleanup_free_ uint32_t *numbers = xnew_array(uint32_t, b->shape_count + 1);
    uint32_t kept = 0;

    map_done(&b->shape_index, NULL);
    map_init(&b->shape_index);
    for (uint32_t i = 0; i < b->shape_count; i++) {
        char key[SHAPE_KEY_MAX];

        if (b->shape_jobs[i] == 0)
            continue;
        b->shapes[kept] = b->shapes[i];
        b->shape_jobs[kept] = b->shape_jobs[i];
        shape_key(&b->shapes[kept], key);
        set_number(&b->shape_index, key, kept);
        numbers[i] = kept++;
    }
    b->shape_count = kept;
    book_for_each_job(i, b) b->jobs[i].shape = numbers[b->jobs[i].shape];
}

const struct shape *book_shape_of(const struct book *b, const struct book_job *job)
{
    return &b->shapes[job->shape];
}

/* --- jobs --------------------------------------------------------------------------------- */

uint32_t book_job_add(struct book *b, const struct book_job *job)
{
    uint32_t i = b->hole;

    assert(job->shape < b->shape_count);
    if (i != BOOK_NONE) {
        b->hole = b->jobs[i].shape;
    } else {
        i = b->job_count++;
        b->jobs = xgrow(b->jobs, &b->job_cap, b->job_count, sizeof(*b->jobs));
    }
    b->jobs[i] = *job;
    b->jobs[i].state = JOB_WAITS;
    b->jobs[i].shares = NULL;
    b->jobs[i].started = 0;
    b->shape_jobs[job->shape]++;
    b->waiting++;
    return i;
}

void book_job_change(struct book *b, uint32_t job, const struct book_job *to)
{
    struct book_job *j = &b->jobs[job], old = *j;

    assert(j->state == JOB_WAITS);
    if (to->shape != old.shape) {
        book_job_plan(b, job, NULL, 0);
        old = *j;
        b->shape_jobs[old.shape]--;
        b->shape_jobs[to->shape]++;
    }
    *j = *to;
    j->state = old.state;
    j->shares = old.shares;
    j->started = old.started;
}

void book_job_reshape(struct book *b, uint32_t job, uint32_t shape)
{
    struct book_job *j = &b->jobs[job];

    assert(b->shapes[shape].size == b->shapes[j->shape].size);
    b->shape_jobs[j->shape]--;
    b->shape_jobs[shape]++;
    j->shape = shape;
}

void book_job_start(
    struct book *b, uint32_t job, const struct book_share *shares, uint64_t now_usec)
{
    struct book_job *j = &b->jobs[job];
    uint32_t size = b->shapes[j->shape].size;

    assert(j->state == JOB_WAITS);
    free(j->shares);
    j->shares = xmemdup(shares, size * sizeof(*shares));
    j->state = JOB_RUNS;
    j->started = now_usec;
    b->waiting--;
    b->running++;
}

void book_job_plan(
    struct book *b, uint32_t job, const struct book_share *shares, uint64_t start_usec)
{
    struct book_job *j = &b->jobs[job];

    assert(j->state == JOB_WAITS);
    free(TAKE_PTR(j->shares));
    if (shares)
        j->shares = xmemdup(shares, b->shapes[j->shape].size * sizeof(*shares));
    j->started = shares ? start_usec : 0;
}

void book_job_stop(struct book *b, uint32_t job)
{
    struct book_job *j = &b->jobs[job];

    assert(j->state == JOB_RUNS);
    free(TAKE_PTR(j->shares));
    j->started = 0;
    j->state = JOB_WAITS;
    b->running--;
    b->waiting++;
}

void book_job_remove(struct book *b, uint32_t job)
{
    struct book_job *j = &b->jobs[job];

    if (j->state == JOB_RUNS)
        book_job_stop(b, job);
    assert(j->state == JOB_WAITS);
    free(TAKE_PTR(j->shares));
    b->waiting--;
    b->shape_jobs[j->shape]--;
    j->state = JOB_FREE;
    j->shape = b->hole;
    b->hole = job;
}
