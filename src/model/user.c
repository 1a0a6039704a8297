/*
 * A user's identity in containers. The rule everything here serves: files on volumes belong to the
 * right person on every node, and no uid of a container is one that the node itself uses.
 */
#include "model/user.h"

#include "model/words.h"

/* 65534 is what the kernel shows for ids it cannot map, and NFS for squashed root; 65535 is
 * (uid_t)-1 cut to 16 bits. */
#define UID_NOBODY 65534
#define UID_MINUS_ONE_16 65535
#define UID_MAX_USED (UINT32_MAX - 1) /* (uid_t)-1 means "no id" to the kernel */

WORDS_DEFINE(role, enum role, "none", "user", "operator", "admin")

static bool uid_is_reserved(uint32_t uid)
{
    return uid == UID_NOBODY || uid == UID_MINUS_ONE_16 || uid > UID_MAX_USED;
}

static int check_range(const struct user *u, struct err *err)
{
    uint64_t last = (uint64_t)u->sub_base + USER_SUB_COUNT - 1;

    if (u->sub_base < USER_SUB_COUNT)
        return err_set(err, -EINVAL,
            "user '%s': the subordinate range must start at 65536 or higher, not at %u", u->name,
            u->sub_base);
    if (last > UID_MAX_USED)
        return err_set(err, -EINVAL,
            "user '%s': the subordinate range from %u is longer than there are uids", u->name,
            u->sub_base);
    if (u->uid >= u->sub_base && u->uid <= last)
        return err_set(err, -EINVAL,
            "user '%s': uid %u lies inside the user's own subordinate range from %u", u->name,
            u->uid, u->sub_base);
    return 0;
}

int user_check(const struct user *u, struct err *err)
{
    int r = name_check("user name", u->name, err);

    if (r < 0)
        return r;
    if (u->role <= ROLE_NONE || u->role >= ROLE_COUNT)
        return err_set(err, -EINVAL, "user '%s': role must be user, operator or admin", u->name);
    if (u->uid < USER_UID_MIN)
        return err_set(err, -EINVAL, "user '%s': uid must be %d or higher, not %u", u->name,
            USER_UID_MIN, u->uid);
    if (uid_is_reserved(u->uid))
        return err_set(err, -EINVAL, "user '%s': uid %u is reserved", u->name, u->uid);
    return check_range(u, err);
}

int user_assign(struct user *u, uint32_t n, struct err *err)
{
    uint64_t uid = UINT64_C(20001) + n;
    uint64_t base = UINT64_C(0x10000000) + (uint64_t)n * USER_SUB_COUNT;

    if (base + USER_SUB_COUNT - 1 > UID_MAX_USED || uid_is_reserved((uint32_t)uid))
        return err_set(err, -ERANGE, "there is no automatic uid and range number %u", n);
    u->uid = (uint32_t)uid;
    u->sub_base = (uint32_t)base;
    return 0;
}

void user_id_map(const struct user *u, struct id_extent map[USER_EXTENTS])
{
    map[0] = (struct id_extent){0, u->sub_base, 1000};
    map[1] = (struct id_extent){1000, u->uid, 1};
    map[2] = (struct id_extent){1001, u->sub_base + 1001, USER_SUB_COUNT - 1001};
}
