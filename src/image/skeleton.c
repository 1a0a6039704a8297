/* The tree of a layer's names. Depth is bounded by the caller, so that recursion is. */
#include "image/skeleton.h"

#define FIRST_SIZE 1024

/* FNV-1a over the name, mixed with the parent's address. */
static size_t hash_of(const struct node *parent, const char *name, size_t len)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)(uintptr_t)parent;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 32));
}

static struct node *make(
    struct arena *memory, struct node *parent, const char *name, size_t len, enum node_type type)
{
    struct node *n = memory ? arena_alloc(memory, sizeof(*n) + len + 1) : NULL;

    if (!n) /* with a full disk the import fails soon; until then there is the heap */
        n = xcalloc(1, sizeof(*n) + len + 1);
    n->parent = parent;
    n->type = type;
    memcpy(n->name, name, len);
    return n;
}

void skeleton_init(struct skeleton *s, struct arena *memory)
{
    *s = (struct skeleton){
        .memory = memory,
        .root = make(memory, NULL, "", 0, NODE_DIR),
        .table = xnew_array(struct node *, FIRST_SIZE),
        .size = FIRST_SIZE,
    };
}

static struct node **slot(
    const struct skeleton *s, const struct node *parent, const char *name, size_t len)
{
    struct node **at = &s->table[hash_of(parent, name, len) & (s->size - 1)];

    while (*at &&
        !((*at)->parent == parent && strncmp((*at)->name, name, len) == 0 &&
            (*at)->name[len] == '\0'))
        at = &(*at)->chain;
    return at;
}

static void grow(struct skeleton *s)
{
    struct node **old = s->table;
    size_t old_size = s->size;

    s->size *= 2;
    s->table = xnew_array(struct node *, s->size);
    for (size_t i = 0; i < old_size; i++) {
        for (struct node *n = old[i], *next; n; n = next) {
            next = n->chain;
            n->chain = NULL;
            *slot(s, n->parent, n->name, strlen(n->name)) = n;
        }
    }
    free(old);
}

struct node *skeleton_find(
    const struct skeleton *s, const struct node *parent, const char *name, size_t len)
{
    return *slot(s, parent, name, len);
}

struct node *skeleton_add(
    struct skeleton *s, struct node *parent, const char *name, size_t len, enum node_type type)
{
    struct node *n = make(s->memory, parent, name, len, type);

    if (s->count >= s->size)
        grow(s);
    *slot(s, parent, name, len) = n;
    n->sibling = parent->child;
    parent->child = n;
    s->count++;
    return n;
}

static void free_below(struct skeleton *s, struct node *n, bool unlink)
{
    for (struct node *c = n->child, *next; c; c = next) {
        next = c->sibling;
        free_below(s, c, unlink);
        if (unlink)
            *slot(s, n, c->name, strlen(c->name)) = c->chain;
        item_done(&c->attr);
        if (!s->memory)
            free(c);
        s->count--;
    }
    n->child = NULL;
}

void skeleton_prune(struct skeleton *s, struct node *n)
{
    free_below(s, n, true);
}

void skeleton_done(struct skeleton *s)
{
    if (!s->root)
        return;
    free_below(s, s->root, false);
    item_done(&s->root->attr);
    if (!s->memory)
        free(s->root);
    free(s->table);
    *s = (struct skeleton){0};
}

int skeleton_path(const struct node *n, char *ret, size_t size)
{
    char *at = ret + size - 1;

    *at = '\0';
    for (; n->parent; n = n->parent) {
        size_t len = strlen(n->name);
        if ((size_t)(at - ret) < len + 1)
            return -ENAMETOOLONG;
        if (*at)
            *--at = '/';
        at -= len;
        memcpy(at, n->name, len);
    }
    memmove(ret, at, strlen(at) + 1);
    return 0;
}

unsigned skeleton_depth(const struct node *n)
{
    unsigned depth = 0;

    for (; n->parent; n = n->parent)
        depth++;
    return depth;
}

static int walk(struct node *n, int (*fn)(struct node *n, void *arg, struct err *err), void *arg,
    struct err *err)
{
    int r = fn(n, arg, err);

    for (struct node *c = n->child; r == 0 && c; c = c->sibling)
        r = walk(c, fn, arg, err);
    return r;
}

int skeleton_walk(struct skeleton *s, int (*fn)(struct node *n, void *arg, struct err *err),
    void *arg, struct err *err)
{
    return walk(s->root, fn, arg, err);
}
