/* Items: plain data. */
#include "image/item.h"

#include "base/str.h"

static void xattr_done(struct item_xattr *x)
{
    free(x->name);
    free(x->value);
}

void item_done(struct item *i)
{
    for (size_t n = 0; n < i->xattr_count; n++)
        xattr_done(&i->xattrs[n]);
    free(i->xattrs);
    free(i->target);
    *i = (struct item){0};
}

void item_set_xattr(struct item *i, const char *name, const void *value, size_t len)
{
    struct item_xattr *x = NULL;

    for (size_t n = 0; n < i->xattr_count; n++)
        if (str_eq(i->xattrs[n].name, name))
            x = &i->xattrs[n];
    if (x) {
        xattr_done(x);
    } else {
        i->xattrs = xgrow(i->xattrs, &i->xattr_cap, i->xattr_count + 1, sizeof(*i->xattrs));
        x = &i->xattrs[i->xattr_count++];
    }
    *x = (struct item_xattr){xstrdup(name), xmemdup(value, len), len};
}

void item_copy(const struct item *from, struct item *to)
{
    *to = *from;
    to->target = xstrdup(from->target);
    to->xattrs = NULL;
    to->xattr_count = to->xattr_cap = 0;
    for (size_t n = 0; n < from->xattr_count; n++)
        item_set_xattr(to, from->xattrs[n].name, from->xattrs[n].value, from->xattrs[n].len);
}

bool item_xattr_is_kept(const char *name)
{
    if (str_starts(name, "trusted."))
        return !str_starts(name, "trusted.overlay.");
    return str_starts(name, "user.") || str_eq(name, "security.capability");
}

void sink_freep(struct sink **s)
{
    if (*s)
        (*s)->ops->free(*s);
}
