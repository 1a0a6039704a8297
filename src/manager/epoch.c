/* Epochs in the store. See the header for the reasoning. */
#include "manager/epoch.h"

#include "base/json.h"

struct epoch_doc {
    char incarnation[UUID_TEXT_LEN + 1];
    uint64_t first_revision;
};

int epoch_begin(struct manager *m, uint64_t at_least, struct err *err)
{
    json_t *body = json_object();
    _cleanup_free_ char *text = NULL;
    char id[24];

    do
        m->epoch = store_next(m->store, "epoch");
    while (m->epoch < at_least);
    uuid_make(m->incarnation);
    snprintf(id, sizeof(id), "%llu", (unsigned long long)m->epoch);
    json_set_str(body, "incarnation", m->incarnation);
    json_set_u64(body, "first_revision", store_revision(m->store) + 1);
    text = json_text(body);
    json_decref(body);
    store_put(
        m->store, &(struct store_doc){.kind = "epoch", .id = id, .num = m->epoch, .body = text});
    return store_sync(m->store, err);
}

static int read_doc(void *arg, const struct store_doc *doc)
{
    struct epoch_doc *d = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;

    if (json_parse(doc->body, strlen(doc->body), 4096, &body, NULL) < 0)
        return -EINVAL;
    d->first_revision = json_u64_or(body, "first_revision", 0);
    return str_copy(d->incarnation, sizeof(d->incarnation), json_str_or(body, "incarnation", ""));
}

static bool epoch_get(struct manager *m, uint64_t epoch, struct epoch_doc *ret)
{
    char id[24];

    snprintf(id, sizeof(id), "%llu", (unsigned long long)epoch);
    return store_get(m->store, "epoch", id, read_doc, ret, NULL) == 0;
}

bool epoch_is_ours(struct manager *m, const char *cluster, uint64_t epoch, const char *incarnation,
    uint64_t revision)
{
    struct epoch_doc doc, next;

    if (!str_eq(cluster, m->cluster) || epoch > m->epoch || !epoch_get(m, epoch, &doc))
        return false;
    if (!str_eq(doc.incarnation, incarnation))
        return false;
    /* The epoch after it that this store knows: numbers may have been skipped. */
    for (uint64_t n = epoch + 1; n <= m->epoch; n++)
        if (epoch_get(m, n, &next))
            return revision < next.first_revision;
    return revision <= store_revision(m->store);
}
