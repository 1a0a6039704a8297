/*
 * The plan's parser. Pure: bytes in, a struct or one line of complaint out. Never puts a value
 * into a complaint, because environment values are secrets; names the record's number instead.
 */
#include "init/plan.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* -1 means "leave as it is" to setresuid(2) and friends, so the last id is not one. */
#define ID_MAX (UINT32_MAX - 1)

struct parse {
    struct plan plan;
    struct plan_err *err;
    size_t record; /* from 1, for complaints */
};

__attribute__((format(printf, 2, 3))) static int complain(struct parse *p, const char *fmt, ...)
{
    size_t cap = sizeof(p->err->text);
    int used = snprintf(p->err->text, cap, "record %zu: ", p->record);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->err->text + used, cap - (size_t)used, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* A decimal number up to end or the stop character; *text moves behind the digits. */
static bool take_number(const char **text, uint32_t max, uint32_t *ret)
{
    const char *s = *text;
    uint64_t n = 0;

    for (; *s >= '0' && *s <= '9'; s++) {
        n = n * 10 + (uint64_t)(*s - '0');
        if (n > max)
            return false;
    }
    if (s == *text)
        return false;
    *text = s;
    *ret = (uint32_t)n;
    return true;
}

static int set_user(struct parse *p, char *value)
{
    const char *s = value;
    uint32_t uid, gid;

    if (!take_number(&s, ID_MAX, &uid) || *s++ != ':' || !take_number(&s, ID_MAX, &gid) || *s)
        return complain(p, "user must be UID:GID");
    p->plan.uid = uid;
    p->plan.gid = gid;
    return 0;
}

static int set_groups(struct parse *p, char *value)
{
    const char *s = value;
    uint32_t gid;

    if (!*s)
        return 0;
    for (;;) {
        if (!take_number(&s, ID_MAX, &gid) || (*s && *s != ','))
            return complain(p, "groups must be numbers joined by commas");
        if (p->plan.groups_len == PLAN_MAX_GROUPS)
            return complain(p, "more than %d groups", PLAN_MAX_GROUPS);
        p->plan.groups[p->plan.groups_len++] = gid;
        if (!*s++)
            return 0;
    }
}

static int set_path(struct parse *p, const char *key, const char **field, char *value)
{
    if (value[0] != '/')
        return complain(p, "%s must be an absolute path", key);
    if (strlen(value) >= PATH_MAX)
        return complain(p, "%s is too long", key);
    *field = value;
    return 0;
}

static int set_cwd(struct parse *p, char *value)
{
    return set_path(p, "cwd", &p->plan.cwd, value);
}

static int set_sshd(struct parse *p, char *value)
{
    return set_path(p, "sshd", &p->plan.sshd, value);
}

static int set_sshd_config(struct parse *p, char *value)
{
    return set_path(p, "sshd-config", &p->plan.sshd_config, value);
}

static int set_stop_signal(struct parse *p, char *value)
{
    const char *s = value;
    uint32_t n;

    if (!take_number(&s, (uint32_t)SIGRTMAX, &n) || *s || n == 0)
        return complain(p, "stop-signal must be a number from 1 to %d", SIGRTMAX);
    p->plan.stop_signal = (int)n;
    return 0;
}

static int add_env(struct parse *p, char *value)
{
    const char *eq = strchr(value, '=');
    size_t name_len;

    if (!eq || eq == value)
        return complain(p, "env must be NAME=VALUE");
    name_len = (size_t)(eq - value) + 1;
    for (size_t i = 0; i < p->plan.envc; i++)
        if (strncmp(p->plan.envp[i], value, name_len) == 0) {
            p->plan.envp[i] = value;
            return 0;
        }
    if (p->plan.envc == PLAN_MAX_ENV)
        return complain(p, "more than %d environment variables", PLAN_MAX_ENV);
    p->plan.envp[p->plan.envc++] = value;
    return 0;
}

static int add_arg(struct parse *p, char *value)
{
    p->plan.argv[p->plan.argc++] = value;
    return 0;
}

/* clang-format off */
static const struct key {
    const char *name;
    bool repeats;
    int (*set)(struct parse *p, char *value);
} keys[] = {
    { "arg",         true,  add_arg },
    { "cwd",         false, set_cwd },
    { "env",         true,  add_env },
    { "groups",      false, set_groups },
    { "sshd",        false, set_sshd },
    { "sshd-config", false, set_sshd_config },
    { "stop-signal", false, set_stop_signal },
    { "user",        false, set_user },
};
/* clang-format on */
#define KEYS_LEN (sizeof(keys) / sizeof(keys[0]))

static int parse_record(struct parse *p, char *text, bool seen[KEYS_LEN])
{
    char *eq = strchr(text, '=');

    if (!eq)
        return complain(p, "no '='");
    for (size_t i = 0; i < KEYS_LEN; i++) {
        if (strlen(keys[i].name) != (size_t)(eq - text) ||
            strncmp(keys[i].name, text, (size_t)(eq - text)) != 0)
            continue;
        if (seen[i] && !keys[i].repeats)
            return complain(p, "%s is given twice", keys[i].name);
        seen[i] = true;
        return keys[i].set(p, eq + 1);
    }
    return complain(p, "unknown key");
}

static int parse_records(struct parse *p, char *data, size_t len)
{
    bool seen[KEYS_LEN] = {0};
    int r;

    for (char *s = data; s < data + len; s += strlen(s) + 1) {
        p->record++;
        r = parse_record(p, s, seen);
        if (r < 0)
            return r;
    }
    if (!p->plan.sshd != !p->plan.sshd_config) {
        snprintf(p->err->text, sizeof(p->err->text), "sshd and sshd-config go together");
        return -EINVAL;
    }
    return 0;
}

static size_t count_records(const char *data, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += data[i] == '\0';
    return n;
}

int plan_parse(struct plan *ret, char *data, size_t len, struct plan_err *err)
{
    struct parse p = {
        .plan = {.uid = 1000, .gid = 1000, .cwd = "/", .stop_signal = SIGTERM},
        .err = err,
    };
    size_t records;
    int r;

    if (len > PLAN_MAX_BYTES) {
        snprintf(err->text, sizeof(err->text), "longer than %zu bytes", PLAN_MAX_BYTES);
        return -E2BIG;
    }
    if (len > 0 && data[len - 1] != '\0') {
        snprintf(err->text, sizeof(err->text), "the last record is not finished");
        return -EINVAL;
    }
    records = count_records(data, len);
    p.plan.argv = calloc(records + 1, sizeof(char *));
    p.plan.envp = calloc(records + 1, sizeof(char *));
    if (!p.plan.argv || !p.plan.envp) {
        snprintf(err->text, sizeof(err->text), "out of memory");
        r = -ENOMEM;
    } else {
        r = parse_records(&p, data, len);
    }
    if (r < 0) {
        plan_done(&p.plan);
        return r;
    }
    *ret = p.plan;
    return 0;
}

void plan_done(struct plan *plan)
{
    free(plan->argv);
    free(plan->envp);
    plan->argv = NULL;
    plan->envp = NULL;
}

const char *plan_getenv(const struct plan *plan, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < plan->envc; i++)
        if (strncmp(plan->envp[i], name, len) == 0 && plan->envp[i][len] == '=')
            return plan->envp[i] + len + 1;
    return NULL;
}
