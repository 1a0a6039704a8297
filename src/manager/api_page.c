/* Pages of maps. The place to go on from is a key, so what comes and goes meanwhile moves nothing.
 */
#include "manager/api_page.h"

bool call_page_limit(struct call *c, uint64_t *ret)
{
    if (!call_query_u64(c, "limit", PAGE_DEFAULT, PAGE_MAX, ret))
        return false;
    if (*ret == 0)
        *ret = PAGE_DEFAULT;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys behind `after` of what the asker sees, in order; borrowed. */
static const char **keys_after(
    const struct call *c, const struct page_of *of, const char *after, size_t *ret_count)
{
    const char **keys = xnew_array(const char *, map_count(of->map) + 1);
    size_t n = 0;

    map_for_each (e, of->map)
        if ((!after || strcmp(e->key, after) > 0) && (!of->may_see || of->may_see(c, e->value)))
            keys[n++] = e->key;
    qsort(keys, n, sizeof(*keys), by_text);
    *ret_count = n;
    return keys;
}

void reply_page(struct call *c, const struct page_of *of)
{
    _cleanup_free_ const char **keys = NULL;
    json_t *body, *list;
    uint64_t limit;
    size_t count;

    if (!call_page_limit(c, &limit))
        return;
    keys = keys_after(c, of, request_query(c->rq, "after"), &count);
    body = json_object();
    list = json_array();
    for (size_t i = 0; i < MIN_OF(count, limit); i++)
        json_array_append_new(list, of->to_json(c, map_get(of->map, keys[i]), of->arg));
    json_object_set_new(body, of->what, list);
    json_set_str(body, "next", count > limit ? keys[limit - 1] : NULL);
    reply_json(c, 200, body);
}
