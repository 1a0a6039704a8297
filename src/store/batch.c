/*
 * Owns the memory of one commit: arrays that grow, and strings packed into chunks, so that a turn
 * with hundreds of documents costs few allocations and one free. Knows nothing of SQL or threads.
 */
#include "store/batch.h"

#define CHUNK_BYTES 8192

struct chunk {
    struct chunk *next;
    size_t size, used;
    char data[];
};

struct batch *batch_new(void)
{
    struct batch *b = xnew(struct batch);

    list_init(&b->after);
    return b;
}

void batch_free(struct batch *b)
{
    if (!b)
        return;
    assert(list_is_empty(&b->after));
    while (b->chunks) {
        struct chunk *c = b->chunks;
        b->chunks = c->next;
        free(c);
    }
    free(b->changes);
    free(b->events);
    free(b->counters);
    free(b);
}

bool batch_is_empty(const struct batch *b)
{
    return b->change_count + b->event_count + b->counter_count == 0;
}

static char *take_bytes(struct batch *b, size_t n)
{
    struct chunk *c = b->chunks;

    if (!c || c->size - c->used < n) {
        size_t size = MAX_OF(n, (size_t)CHUNK_BYTES);
        c = xcalloc(1, sizeof(*c) + size);
        c->size = size;
        c->next = b->chunks;
        b->chunks = c;
    }
    c->used += n;
    return c->data + c->used - n;
}

static const char *keep(struct batch *b, const char *s)
{
    size_t n;

    if (!s)
        return NULL;
    n = strlen(s) + 1;
    return memcpy(take_bytes(b, n), s, n);
}

static struct change *add_change(struct batch *b)
{
    b->changes = xgrow(b->changes, &b->change_cap, b->change_count + 1, sizeof(*b->changes));
    return &b->changes[b->change_count++];
}

void batch_put(struct batch *b, const struct store_doc *doc)
{
    struct change *c;

    assert(doc->kind && doc->id && doc->body);
    assert(MAX_OF(doc->num, MAX_OF(doc->submitted, doc->ended)) <=
        INT64_MAX); /* databases have signed numbers */
    c = add_change(b);
    c->doc = (struct store_doc){
        .kind = keep(b, doc->kind),
        .id = keep(b, doc->id),
        .name = keep(b, doc->name),
        .owner = keep(b, doc->owner),
        .state = keep(b, doc->state),
        .num = doc->num,
        .class = keep(b, doc->class),
        .group = keep(b, doc->group),
        .submitted = doc->submitted,
        .ended = doc->ended,
        .body = keep(b, doc->body),
    };
}

void batch_del(struct batch *b, const char *kind, const char *id)
{
    struct change *c;

    assert(kind && id);
    c = add_change(b);
    c->del = true;
    c->doc = (struct store_doc){.kind = keep(b, kind), .id = keep(b, id)};
}

void batch_event(struct batch *b, const struct store_event *event)
{
    struct store_event *e;

    assert(event->type && event->subject && event->owner && event->body);
    b->events = xgrow(b->events, &b->event_cap, b->event_count + 1, sizeof(*b->events));
    e = &b->events[b->event_count++];
    *e = (struct store_event){
        .seq = event->seq,
        .usec = event->usec,
        .type = keep(b, event->type),
        .subject = keep(b, event->subject),
        .owner = keep(b, event->owner),
        .body = keep(b, event->body),
    };
}

void batch_counter(struct batch *b, const char *name, uint64_t value)
{
    struct counter_value *c = NULL;

    for (size_t i = 0; i < b->counter_count && !c; i++)
        if (strcmp(b->counters[i].name, name) == 0)
            c = &b->counters[i];
    if (!c) {
        b->counters = xgrow(
            b->counters, &b->counter_cap, b->counter_count + 1, sizeof(*b->counters));
        c = &b->counters[b->counter_count++];
        c->name = keep(b, name);
    }
    c->value = value;
}

void batch_set_revision(struct batch *b, uint64_t revision)
{
    b->revision = revision;
    for (size_t i = 0; i < b->event_count; i++)
        b->events[i].revision = revision;
}
