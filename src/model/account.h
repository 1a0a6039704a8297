/*
 * An account: who shares what of the cluster with whom. Accounts form a tree; what a session takes
 * counts for its account and all above it. Users work for accounts; a session is for one of them.
 */
#ifndef MODEL_ACCOUNT_H
#define MODEL_ACCOUNT_H

#include "base/str.h"

#define ACCOUNT_QUOTAS_MAX 64
#define ACCOUNT_USERS_MAX 10000
#define ACCOUNT_DEPTH_MAX 16
#define ACCOUNT_SHARES_MAX 1000000
#define ACCOUNT_GPUS_MAX 1000000
#define ACCOUNT_NO_LIMIT UINT32_MAX
#define ACCOUNT_WINDOW_DAYS 28 /* that use is kept for */

/* GPUs in thousandths; ACCOUNT_NO_LIMIT: none (guarantee: 0). */
struct account_quota {
    char group[NAME_MAX_LEN + 1];     /* "" any */
    char gpu_model[NAME_MAX_LEN + 1]; /* "" all together */
    uint32_t guarantee, deserved, max;
};

struct account {
    char name[NAME_MAX_LEN + 1];
    char parent[NAME_MAX_LEN + 1]; /* "" at the top */
    uint32_t shares;
    char **users;                 /* names; heap */
    struct account_quota *quotas; /* heap */
    uint32_t quota_count;
    /* Of each of its users: */
    uint32_t user_sessions;              /* running at once */
    uint32_t user_gpus, user_debug_gpus; /* at once, in thousandths; debug: in debug sessions */
    uint32_t user_gpu_hours;             /* in window_days */
    uint32_t window_days;                /* 1 to ACCOUNT_WINDOW_DAYS */
};

void account_init(struct account *a);
void account_done(struct account *a);
void account_copy(struct account *to, const struct account *from);
bool account_has_user(const struct account *a, const char *user);
/* Numbers in range, guarantee <= deserved <= max, no pair of group and model twice. -EINVAL. */
int account_check(const struct account *a, struct err *err);

/* What a user has had for an account: for fairness, decayed, and by day. */
struct account_use {
    char account[NAME_MAX_LEN + 1], user[NAME_MAX_LEN + 1];
    uint64_t used, used_at;             /* weighted milli-GPU-seconds, decayed until then (usec) */
    uint64_t day;                       /* since 1970 of days[0] */
    uint64_t days[ACCOUNT_WINDOW_DAYS]; /* milli-GPU-seconds; today, yesterday, ... */
};

/* Work that was done until now. */
void account_use_add(struct account_use *u, uint64_t weighted, uint64_t milli_seconds,
    uint64_t now_usec, uint64_t half_life_usec);
/* Of the last days, today's included. */
uint64_t account_use_window(const struct account_use *u, uint32_t days, uint64_t now_usec);
/* Half of it after each half-life (a line between two halvings); 0: never less. */
uint64_t account_decay(uint64_t used, uint64_t usec, uint64_t half_life_usec);

#endif
