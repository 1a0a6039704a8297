/*
 * Lists of sessions, live and ended, a page at a time from the store: filters, orders, and the
 * place to go on from, which the asker gives back as it was.
 */
#include "base/clock.h"
#include "manager/api_page.h"
#include "manager/state.h"
#include "wire/session.h"

/* Sessions looked at for a page, however few of them fit. */
#define LIST_SCAN 2000

struct order {
    const char *word;
    enum store_sort sort;
    bool ascending;
};

/* clang-format off */
static const struct order orders[] = {
    { "-num", STORE_BY_NUM, false },
    { "num", STORE_BY_NUM, true },
    { "-submitted", STORE_BY_SUBMITTED, false },
    { "submitted", STORE_BY_SUBMITTED, true },
    { "-ended", STORE_BY_ENDED, false },
    { "ended", STORE_BY_ENDED, true },
};
/* clang-format on */

/* --- the query ---------------------------------------------------------------------------- */

static int read_words(struct call *c, struct store_query *q, struct err *err)
{
    enum session_state state;
    enum session_kind kind;

    q->state = request_query(c->rq, "state");
    q->class = request_query(c->rq, "kind");
    q->group = request_query(c->rq, "group");
    q->name = request_query(c->rq, "name");
    if (q->state && session_state_parse(q->state, &state) < 0)
        return err_set(err, -EINVAL,
            "'state' must be pending, preparing, starting, running, stopping or ended");
    if (q->class && session_kind_parse(q->class, &kind) < 0)
        return err_set(err, -EINVAL, "'kind' must be debug or train");
    return 0;
}

static int read_time(struct call *c, const char *key, uint64_t *ret, struct err *err)
{
    const char *text = request_query(c->rq, key);

    if (text && clock_parse(text, ret, NULL) < 0)
        return err_set(
            err, -EINVAL, "'%s' must be a time like 2026-12-24T18:00:00Z (RFC 3339)", key);
    return 0;
}

static int read_order(
    struct call *c, struct store_query *q, const struct order **ret, struct err *err)
{
    const char *word = request_query(c->rq, "sort");
    bool in_range = q->submitted_from || q->submitted_before;

    if (!word)
        word = in_range ? "-submitted" : "-num";
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (str_eq(orders[i].word, word)) {
            *ret = &orders[i];
            q->sort = orders[i].sort;
            q->ascending = orders[i].ascending;
            return 0;
        }
    return err_set(err, -EINVAL,
        "'sort' must be num, submitted or ended, with '-' in front for the last ones first");
}

/* "-num.0.17": the order that it belongs to, and the store's cursor. */
static int read_cursor(
    struct call *c, const struct order *o, struct store_query *q, struct err *err)
{
    const char *text = request_query(c->rq, "after"), *numbers;
    size_t len = strlen(o->word), key_len;
    char key[24];

    if (!text)
        return 0;
    numbers = text + len + 1;
    if (str_starts(text, o->word) && text[len] == '.' &&
        (key_len = strcspn(numbers, ".")) < sizeof(key) && numbers[key_len]) {
        memcpy(key, numbers, key_len);
        key[key_len] = '\0';
        if (str_to_u64(key, INT64_MAX, &q->after.key) == 0 &&
            str_to_u64(numbers + key_len + 1, INT64_MAX, &q->after.num) == 0 && q->after.num)
            return 0;
    }
    return err_set(err, -EINVAL, "'after' is no 'next' of a list in the order '%s'", o->word);
}

static void set_next(json_t *body, const struct order *o, const struct store_cursor *next)
{
    _cleanup_free_ char *text = NULL;

    if (next->num)
        text = xasprintf(
            "%s.%llu.%llu", o->word, (unsigned long long)next->key, (unsigned long long)next->num);
    json_set_str(body, "next", text);
}

/* Whose: everybody's and other people's are for administrators. False: it was answered. */
static bool read_owner(struct call *c, struct store_query *q)
{
    q->owner = request_query(c->rq, "owner");
    if (q->owner && !call_is_admin(c) && !str_eq(q->owner, c->user->name)) {
        reply_error(c, 403, "forbidden", "other people's sessions are for administrators to see");
        return false;
    }
    if (!q->owner && !(call_is_admin(c) && call_query_flag(c, "all")))
        q->owner = c->user->name;
    return true;
}

static bool read_query(struct call *c, struct store_query *q, const struct order **ret_order)
{
    struct err err = ERR_INIT;
    uint64_t limit;
    int r;

    if (!call_page_limit(c, &limit))
        return false;
    q->limit = (uint32_t)limit;
    r = read_words(c, q, &err);
    if (r == 0)
        r = read_time(c, "submitted_after", &q->submitted_from, &err);
    if (r == 0)
        r = read_time(c, "submitted_before", &q->submitted_before, &err);
    if (r == 0)
        r = read_order(c, q, ret_order, &err);
    if (r == 0)
        r = read_cursor(c, *ret_order, q, &err);
    if (r < 0) {
        reply_error(c, 400, "bad_query", "%s", err_text(&err));
        return false;
    }
    q->live = !q->state && q->sort != STORE_BY_ENDED && !call_query_flag(c, "ended");
    return read_owner(c, q);
}

/* --- the list ----------------------------------------------------------------------------- */

static int list_one(void *arg, const struct store_doc *doc)
{
    json_t *list = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;
    _cleanup_(session_freep) struct session *s = NULL;
    struct err err;

    if (json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, &err) < 0 ||
        session_from_json_stored(body, &s, &err) < 0)
        return -EIO;
    json_array_append_new(list, session_to_json_public(s));
    return 0;
}

/* The store has them in order; for those that live, memory knows more. */
static void freshen(struct manager *m, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        struct session *s = map_get(&m->sessions, json_str_or(o, "id", ""));
        if (s)
            json_array_set_new(list, i, call_session_json(m, s));
    }
}

void api_session_list(struct call *c)
{
    struct store_query q = {.kind = "session", .scan = LIST_SCAN};
    const struct order *order = NULL;
    struct store_cursor next;
    struct err err = ERR_INIT;
    json_t *body, *list;

    if (!read_query(c, &q, &order))
        return;
    body = json_object();
    list = json_array();
    json_object_set_new(body, "sessions", list);
    if (store_page(c->m->store, &q, list_one, list, &next, &err) < 0) {
        json_decref(body);
        reply_err(c, &err);
        return;
    }
    freshen(c->m, list);
    set_next(body, order, &next);
    reply_json(c, 200, body);
}
