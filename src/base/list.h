/* Intrusive doubly linked list, circular with a head. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Safe to call twice, and on a node that was only list_init'ed. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define LIST_ENTRY(ptr, type, member) CONTAINER_OF(ptr, type, member)
#define list_for_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)
/* The current node may be removed (and freed) in the body. */
#define list_for_each_safe(it, head) \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

#endif
