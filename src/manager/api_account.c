/* Accounts over HTTP. Everybody may see how the cluster is shared. */
#include "base/clock.h"
#include "manager/accounts.h"
#include "manager/api_page.h"
#include "wire/account.h"

/* With what its users have now and have had. */
static json_t *account_json(struct manager *m, const struct account *a)
{
    json_t *o = account_to_json_public(a), *use = json_array();
    uint64_t now = clock_real_usec(), half_life = m->sched.options.order.half_life_usec;

    map_for_each (e, &m->uses) {
        const struct account_use *u = e->value;
        uint64_t past = now > u->used_at ? now - u->used_at : 0;
        json_t *of;

        if (!str_eq(u->account, a->name))
            continue;
        of = json_object();
        json_set_str(of, "user", u->user);
        json_set_u64(of, "gpu_seconds", account_decay(u->used, past, half_life) / 1000);
        json_set_u64(
            of, "gpu_seconds_in_window", account_use_window(u, a->window_days, now) / 1000);
        json_array_append_new(use, of);
    }
    json_object_set_new(o, "use", use);
    return o;
}

static json_t *listed_account(const struct call *c, void *value, void *arg)
{
    return account_json(c->m, value);
}

void api_account_list(struct call *c)
{
    reply_page(c,
        &(struct page_of){.what = "accounts", .map = &c->m->accounts, .to_json = listed_account});
}

/* The account of the route, or the answer that there is none. */
static struct account *call_account(struct call *c)
{
    struct account *a = account_find(c->m, c->params[0]);

    if (!a)
        reply_error(c, 404, "not_found", "there is no account '%s'", c->params[0]);
    return a;
}

void api_account_show(struct call *c)
{
    struct account *a = call_account(c);

    if (a)
        reply_json(c, 200, account_json(c->m, a));
}

static void set(struct call *c, struct account *a, unsigned status)
{
    struct err err = ERR_INIT;
    int r = account_update_from_json(c->body, a, &err);

    if (r == 0 && status == 201 && account_find(c->m, a->name))
        r = err_set(&err, -EEXIST, "account '%s' is there already", a->name);
    if (r == 0)
        r = account_set(c->m, a, &err);
    if (r < 0)
        reply_err(c, &err);
    else
        reply_committed(c, status, account_json(c->m, account_find(c->m, a->name)));
}

void api_account_create(struct call *c)
{
    _cleanup_(account_done) struct account a;

    account_init(&a);
    set(c, &a, 201);
}

void api_account_change(struct call *c)
{
    struct account *a = call_account(c);
    _cleanup_(account_done) struct account to = {0};

    if (!a)
        return;
    account_copy(&to, a);
    set(c, &to, 200);
}

void api_account_delete(struct call *c)
{
    struct err err = ERR_INIT;

    if (!call_account(c))
        return;
    if (account_remove(c->m, c->params[0], &err) < 0)
        reply_err(c, &err);
    else
        reply_committed(c, 200, json_object());
}
