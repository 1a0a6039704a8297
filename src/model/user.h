/* A user: a name, a cluster-wide uid, a subordinate range. Tokens are kept by the manager. */
#ifndef MODEL_USER_H
#define MODEL_USER_H

#include "base/str.h"

enum role { ROLE_NONE, ROLE_USER, ROLE_OPERATOR, ROLE_ADMIN, ROLE_COUNT };

struct user {
    char name[NAME_MAX_LEN + 1];
    enum role role;
    uint32_t uid;      /* 1000 or higher; also the gid */
    uint32_t sub_base; /* first of 65536 subordinate uids and gids, equal on all nodes */
    bool disabled;
};

#define USER_UID_MIN 1000
#define USER_SUB_COUNT 65536

const char *role_name(enum role r);
int role_parse(const char *text, enum role *ret);
/* uid in range, and [sub_base, +65536) touches neither 0..65535 nor uid. */
int user_check(const struct user *u, struct err *err);
/* The n-th (from 0) automatic uid and range: 20001 + n, and 0x10000000 + n * 65536. */
int user_assign(struct user *u, uint32_t n, struct err *err);

/*
 * The id map of a container of this user, for uids and gids alike (user_namespaces(7)):
 * inside 0..999 -> sub_base.., 1000 -> uid, 1001..65535 -> sub_base + 1001...
 */
struct id_extent {
    uint32_t inside, outside, count;
};
#define USER_EXTENTS 3
void user_id_map(const struct user *u, struct id_extent map[USER_EXTENTS]);

#endif
