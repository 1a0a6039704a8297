/*
 * Pages of what is in memory, in order of its keys: ?limit= and ?after=, and the reply's "next".
 * Lists of sessions, which come from the store (api_session_list.c), have the same words.
 */
#ifndef MANAGER_API_PAGE_H
#define MANAGER_API_PAGE_H

#include "manager/api.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX 1000

/* ?limit=. False: it was answered with 400. */
bool call_page_limit(struct call *c, uint64_t *ret);

struct page_of {
    const char *what;      /* the member that has the list: "nodes" */
    const struct map *map; /* key -> value; a key is what the asker goes on from */
    /* Does the asker see it? NULL: everybody sees all. */
    bool (*may_see)(const struct call *c, const void *value);
    json_t *(*to_json)(const struct call *c, void *value, void *arg);
    void *arg;
};

/* Answers with {WHAT: [..], "next": text or null}. */
void reply_page(struct call *c, const struct page_of *of);

#endif
