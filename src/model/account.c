/* An account's bounds, and the arithmetic of use over time. Who is in the tree is the manager's. */
#include "model/account.h"

#include "base/strv.h"

#define DAY (86400 * UINT64_C(1000000))

void account_init(struct account *a)
{
    *a = (struct account){.shares = 1,
        .user_sessions = ACCOUNT_NO_LIMIT,
        .user_gpus = ACCOUNT_NO_LIMIT,
        .user_debug_gpus = ACCOUNT_NO_LIMIT,
        .user_gpu_hours = ACCOUNT_NO_LIMIT,
        .window_days = 7};
}

void account_done(struct account *a)
{
    strv_free(a->users);
    free(a->quotas);
    *a = (struct account){0};
}

void account_copy(struct account *to, const struct account *from)
{
    *to = *from;
    to->users = strv_copy(from->users);
    to->quotas = xmemdup(from->quotas, from->quota_count * sizeof(*from->quotas));
}

bool account_has_user(const struct account *a, const char *user)
{
    return strv_has(a->users, user);
}

static int check_quota(const struct account_quota *q, struct err *err)
{
    const char *of = q->gpu_model[0] ? q->gpu_model : "all models";

    if (q->guarantee > q->deserved)
        return err_set(err, -EINVAL, "quota of %s: 'guarantee' is more than 'deserved'", of);
    if (q->deserved != ACCOUNT_NO_LIMIT && q->deserved > q->max)
        return err_set(err, -EINVAL, "quota of %s: 'deserved' is more than 'max'", of);
    if (q->guarantee > q->max)
        return err_set(err, -EINVAL, "quota of %s: 'guarantee' is more than 'max'", of);
    return 0;
}

static bool is_same(const struct account_quota *a, const struct account_quota *b)
{
    return str_eq(a->group, b->group) && str_eq(a->gpu_model, b->gpu_model);
}

int account_check(const struct account *a, struct err *err)
{
    int r = name_check("an account's name", a->name, err);

    if (r == 0 && a->parent[0])
        r = name_check("'parent'", a->parent, err);
    if (r == 0 && (a->shares < 1 || a->shares > ACCOUNT_SHARES_MAX))
        r = err_set(err, -EINVAL, "'shares' must be from 1 to %d", ACCOUNT_SHARES_MAX);
    if (r == 0 && (a->window_days < 1 || a->window_days > ACCOUNT_WINDOW_DAYS))
        r = err_set(err, -EINVAL, "'window_days' must be from 1 to %d", ACCOUNT_WINDOW_DAYS);
    for (uint32_t i = 0; r == 0 && i < a->quota_count; i++) {
        r = check_quota(&a->quotas[i], err);
        for (uint32_t k = 0; r == 0 && k < i; k++)
            if (is_same(&a->quotas[i], &a->quotas[k]))
                r = err_set(err, -EINVAL, "two quotas are for the same group and GPU model");
    }
    return r;
}

/* --- use ------------------------------------------------------------------------------------ */

uint64_t account_decay(uint64_t used, uint64_t usec, uint64_t half_life_usec)
{
    uint64_t halvings = half_life_usec ? usec / half_life_usec : 0;
    uint64_t rest = half_life_usec ? usec % half_life_usec : 0;

    if (halvings >= 64)
        return 0;
    used >>= halvings;
    /* 1 - x / 2 between two halvings; x in 1024ths. */
    return used - used / 2048 * (rest / MAX_OF(half_life_usec / 1024, UINT64_C(1)));
}

/* days[0] becomes today. */
static void turn_days(struct account_use *u, uint64_t now_usec)
{
    uint64_t today = now_usec / DAY, gone = today > u->day ? today - u->day : 0;

    gone = MIN_OF(gone, (uint64_t)ACCOUNT_WINDOW_DAYS);
    memmove(&u->days[gone], &u->days[0], (ACCOUNT_WINDOW_DAYS - gone) * sizeof(u->days[0]));
    memset(&u->days[0], 0, gone * sizeof(u->days[0]));
    u->day = MAX_OF(today, u->day);
}

void account_use_add(struct account_use *u, uint64_t weighted, uint64_t milli_seconds,
    uint64_t now_usec, uint64_t half_life_usec)
{
    uint64_t past = now_usec > u->used_at ? now_usec - u->used_at : 0;

    u->used = account_decay(u->used, past, half_life_usec) + weighted;
    u->used_at = MAX_OF(now_usec, u->used_at);
    turn_days(u, now_usec);
    u->days[0] += milli_seconds;
}

uint64_t account_use_window(const struct account_use *u, uint32_t days, uint64_t now_usec)
{
    struct account_use now = *u;
    uint64_t sum = 0;

    turn_days(&now, now_usec);
    for (uint32_t i = 0; i < days && i < ACCOUNT_WINDOW_DAYS; i++)
        sum += now.days[i];
    return sum;
}
