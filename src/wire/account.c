/* Stored forms come from tables; what people write is read member by member. */
#include "wire/account.h"

#include "base/strv.h"
#include "wire/fields.h"
#include "wire/tables.h"

#define GPU 1000

static const struct field quota_fields[] = {
    F_TEXT(struct account_quota, group),
    F_TEXT(struct account_quota, gpu_model),
    F_U32(struct account_quota, guarantee, UINT32_MAX),
    F_U32(struct account_quota, deserved, UINT32_MAX),
    F_U32(struct account_quota, max, UINT32_MAX),
    F_END,
};

static const struct field account_fields[] = {
    F_NAME(struct account, name),
    F_TEXT(struct account, parent),
    F_U32(struct account, shares, ACCOUNT_SHARES_MAX),
    F_STRV(struct account, users, ACCOUNT_USERS_MAX),
    F_LIST(struct account, quotas, quota_count, quota_fields, ACCOUNT_QUOTAS_MAX),
    F_U32(struct account, user_sessions, UINT32_MAX),
    F_U32(struct account, user_gpus, UINT32_MAX),
    F_U32(struct account, user_debug_gpus, UINT32_MAX),
    F_U32(struct account, user_gpu_hours, UINT32_MAX),
    F_U32(struct account, window_days, ACCOUNT_WINDOW_DAYS),
    F_END,
};

json_t *account_to_json_stored(const struct account *a)
{
    return fields_to_json(account_fields, a);
}

int account_from_json_stored(const json_t *j, struct account *ret, struct err *err)
{
    _cleanup_(account_done) struct account a = {0};
    int r = fields_read(account_fields, j, &a, err);

    if (r == 0)
        r = account_check(&a, err);
    if (r < 0)
        return r;
    *ret = a;
    a = (struct account){0};
    return 0;
}

/* --- for people ----------------------------------------------------------------------------- */

static void set_gpus(json_t *o, const char *key, uint32_t milli)
{
    if (milli == ACCOUNT_NO_LIMIT)
        json_object_set_new(o, key, json_null());
    else if (milli % GPU == 0)
        json_set_u64(o, key, milli / GPU);
    else
        json_object_set_new(o, key, json_real((double)milli / GPU));
}

static void set_name(json_t *o, const char *key, const char *name)
{
    json_set_str(o, key, name[0] ? name : NULL);
}

static json_t *quotas_json(const struct account *a)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < a->quota_count; i++) {
        const struct account_quota *q = &a->quotas[i];
        json_t *o = json_object();

        set_name(o, "group", q->group);
        set_name(o, "gpu_model", q->gpu_model);
        set_gpus(o, "guarantee", q->guarantee);
        set_gpus(o, "deserved", q->deserved);
        set_gpus(o, "max", q->max);
        json_array_append_new(list, o);
    }
    return list;
}

json_t *account_to_json_public(const struct account *a)
{
    json_t *o = json_object();
    static char *nobody[] = {NULL};

    json_set_str(o, "name", a->name);
    set_name(o, "parent", a->parent);
    json_set_u64(o, "shares", a->shares);
    json_set_strv(o, "users", a->users ? a->users : nobody);
    json_object_set_new(o, "quotas", quotas_json(a));
    if (a->user_sessions == ACCOUNT_NO_LIMIT)
        json_object_set_new(o, "user_sessions", json_null());
    else
        json_set_u64(o, "user_sessions", a->user_sessions);
    set_gpus(o, "user_gpus", a->user_gpus);
    set_gpus(o, "user_debug_gpus", a->user_debug_gpus);
    if (a->user_gpu_hours == ACCOUNT_NO_LIMIT)
        json_object_set_new(o, "user_gpu_hours", json_null());
    else
        json_set_u64(o, "user_gpu_hours", a->user_gpu_hours);
    json_set_u64(o, "window_days", a->window_days);
    return o;
}

/* --- from people ---------------------------------------------------------------------------- */

static int read_gpus(const char *key, const json_t *v, uint32_t *ret, struct err *err)
{
    double n = json_number_value(v);

    if (json_is_null(v)) {
        *ret = ACCOUNT_NO_LIMIT;
        return 0;
    }
    if (!json_is_number(v) || !(n >= 0 && n <= ACCOUNT_GPUS_MAX))
        return err_set(err, -EINVAL, "'%s' must be a number of GPUs up to %d, or null for no limit",
            key, ACCOUNT_GPUS_MAX);
    *ret = (uint32_t)(n * GPU + 0.5);
    return 0;
}

static int read_count(
    const char *key, const json_t *v, uint64_t max, uint64_t *ret, struct err *err)
{
    json_int_t n = json_integer_value(v);

    if (json_is_null(v)) {
        *ret = UINT64_MAX;
        return 0;
    }
    if (!json_is_integer(v) || n < 0 || (uint64_t)n > max)
        return err_set(err, -EINVAL, "'%s' must be a whole number up to %llu, or null for no limit",
            key, (unsigned long long)max);
    *ret = (uint64_t)n;
    return 0;
}

static int read_name(const char *key, const json_t *v, char to[NAME_MAX_LEN + 1], struct err *err)
{
    const char *text = json_is_null(v) ? "" : json_string_value(v);

    if (!text || (text[0] && name_check(key, text, NULL) < 0))
        return err_set(err, -EINVAL, "'%s' must be a name, or null", key);
    return str_copy(to, NAME_MAX_LEN + 1, text);
}

static int read_quota(const json_t *v, struct account_quota *q, struct err *err)
{
    const char *key;
    json_t *value = NULL;
    int r = 0;

    *q = (struct account_quota){.deserved = ACCOUNT_NO_LIMIT, .max = ACCOUNT_NO_LIMIT};
    if (!json_is_object(v))
        return err_set(err, -EINVAL, "must be an object");
    json_object_foreach ((json_t *)v, key, value) {
        if (str_eq(key, "group"))
            r = read_name(key, value, q->group, err);
        else if (str_eq(key, "gpu_model"))
            r = read_name(key, value, q->gpu_model, err);
        else if (str_eq(key, "guarantee"))
            r = read_gpus(key, value, &q->guarantee, err);
        else if (str_eq(key, "deserved"))
            r = read_gpus(key, value, &q->deserved, err);
        else if (str_eq(key, "max"))
            r = read_gpus(key, value, &q->max, err);
        else
            r = err_set(err, -EINVAL, "there is no '%.60s' in a quota", key);
        if (r < 0)
            return r;
    }
    if (q->guarantee == ACCOUNT_NO_LIMIT)
        return err_set(err, -EINVAL, "'guarantee' must be a number");
    return 0;
}

static int read_quotas(const json_t *v, struct account *a, struct err *err)
{
    size_t n = json_array_size(v);
    int r = 0;

    if (!json_is_array(v) || n > ACCOUNT_QUOTAS_MAX)
        return err_set(err, -EINVAL, "'quotas' must be a list of at most %d", ACCOUNT_QUOTAS_MAX);
    free(a->quotas);
    a->quotas = xnew_array(struct account_quota, n);
    a->quota_count = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        r = read_quota(json_array_get(v, i), &a->quotas[i], err);
        if (r < 0)
            return err_prefix(err, "'quotas'[%zu]", i);
    }
    return 0;
}

static int read_users(const json_t *v, struct account *a, struct err *err)
{
    char **users = NULL;
    const json_t *name;
    size_t i;

    if (!json_is_array(v) || json_array_size(v) > ACCOUNT_USERS_MAX)
        return err_set(
            err, -EINVAL, "'users' must be a list of at most %d names", ACCOUNT_USERS_MAX);
    json_array_foreach (v, i, name) {
        if (!json_is_string(name)) {
            strv_free(users);
            return err_set(err, -EINVAL, "'users' must be a list of names");
        }
        if (!strv_has(users, json_string_value(name)))
            strv_push(&users, json_string_value(name));
    }
    strv_free(a->users);
    a->users = users;
    return 0;
}

static int read_number(
    const char *key, const json_t *v, uint32_t max, uint32_t *ret, struct err *err)
{
    uint64_t n = 0;
    int r = read_count(key, v, max, &n, err);

    if (r == 0)
        *ret = n == UINT64_MAX ? ACCOUNT_NO_LIMIT : (uint32_t)n;
    return r;
}

static int read_member(const char *key, const json_t *v, struct account *a, struct err *err)
{
    if (str_eq(key, "name") && !a->name[0])
        return read_name(key, v, a->name, err);
    if (str_eq(key, "parent"))
        return read_name(key, v, a->parent, err);
    if (str_eq(key, "shares"))
        return read_number(key, v, ACCOUNT_SHARES_MAX, &a->shares, err);
    if (str_eq(key, "users"))
        return read_users(v, a, err);
    if (str_eq(key, "quotas"))
        return read_quotas(v, a, err);
    if (str_eq(key, "user_sessions"))
        return read_number(key, v, 1000000, &a->user_sessions, err);
    if (str_eq(key, "user_gpus"))
        return read_gpus(key, v, &a->user_gpus, err);
    if (str_eq(key, "user_debug_gpus"))
        return read_gpus(key, v, &a->user_debug_gpus, err);
    if (str_eq(key, "user_gpu_hours"))
        return read_number(key, v, 1000000000, &a->user_gpu_hours, err);
    if (str_eq(key, "window_days"))
        return read_number(key, v, ACCOUNT_WINDOW_DAYS, &a->window_days, err);
    return err_set(err, -EINVAL, "there is no '%.60s' in an account, or it cannot be changed", key);
}

int account_update_from_json(const json_t *j, struct account *a, struct err *err)
{
    _cleanup_(account_done) struct account to;
    struct account old = *a;
    const char *key;
    json_t *value = NULL;
    int r = 0;

    account_copy(&to, a);
    json_object_foreach ((json_t *)j, key, value) {
        r = read_member(key, value, &to, err);
        if (r < 0)
            return r;
    }
    r = account_check(&to, err);
    if (r < 0)
        return r;
    *a = to;
    to = old; /* freed */
    return 0;
}

/* --- use ------------------------------------------------------------------------------------ */

json_t *account_use_to_json_stored(const struct account_use *u)
{
    json_t *o = json_object(), *days = json_array();

    json_set_str(o, "account", u->account);
    json_set_str(o, "user", u->user);
    json_set_u64(o, "used", u->used);
    json_set_u64(o, "used_at", u->used_at);
    json_set_u64(o, "day", u->day);
    for (int i = 0; i < ACCOUNT_WINDOW_DAYS; i++)
        json_array_append_new(days, json_integer((json_int_t)u->days[i]));
    json_object_set_new(o, "days", days);
    return o;
}

int account_use_from_json_stored(const json_t *j, struct account_use *ret, struct err *err)
{
    struct account_use u = {0};
    const char *account = "", *user = "";
    json_t *days = NULL;
    int r = json_get_str(j, "account", &account, err);

    if (r == 0)
        r = json_get_str(j, "user", &user, err);
    if (r == 0)
        r = json_get_u64(j, "used", UINT64_MAX, &u.used, err);
    if (r == 0)
        r = json_get_u64(j, "used_at", UINT64_MAX, &u.used_at, err);
    if (r == 0)
        r = json_get_u64(j, "day", UINT64_MAX, &u.day, err);
    if (r == 0)
        r = json_get_arr(j, "days", &days, err);
    if (r < 0)
        return r;
    if (str_copy(u.account, sizeof(u.account), account) < 0 ||
        str_copy(u.user, sizeof(u.user), user) < 0)
        return err_set(err, -EINVAL, "a name is too long");
    for (size_t i = 0; i < ACCOUNT_WINDOW_DAYS; i++)
        u.days[i] = (uint64_t)json_integer_value(json_array_get(days, i));
    *ret = u;
    return 0;
}
