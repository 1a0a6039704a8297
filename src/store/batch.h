/*
 * What one commit carries: changes of documents, events, counters, and who waits for it. Everything
 * is copied into the batch's own memory, which dies with it. Built on the loop's thread, read by
 * the commit thread while it is in flight; the list of waiters stays with the loop's thread
 * throughout.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "base/list.h"
#include "store/store.h"

struct change {
    bool del;             /* of doc.kind and doc.id; else insert or replace */
    struct store_doc doc; /* of a removal only kind and id are set */
};

struct counter_value {
    const char *name;
    uint64_t value;
};

struct batch {
    uint64_t revision; /* set when it is handed to the commit thread */
    struct change *changes;
    struct store_event *events;
    struct counter_value *counters; /* each name once */
    size_t change_count, change_cap;
    size_t event_count, event_cap;
    size_t counter_count, counter_cap;
    struct list after;    /* struct after (store.c), in the order of the calls */
    struct chunk *chunks; /* memory of the strings */
};

struct batch *batch_new(void);
/* The list of waiters must be empty. */
void batch_free(struct batch *b);
bool batch_is_empty(const struct batch *b); /* nothing to commit */

void batch_put(struct batch *b, const struct store_doc *doc);
void batch_del(struct batch *b, const char *kind, const char *id);
/* event's revision is left for batch_set_revision. */
void batch_event(struct batch *b, const struct store_event *event);
void batch_counter(struct batch *b, const char *name, uint64_t value);
void batch_set_revision(struct batch *b, uint64_t revision);

#endif
