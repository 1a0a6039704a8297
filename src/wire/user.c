/* Users as documents. */
#include "wire/user.h"

#include "wire/tables.h"

const struct field user_fields[] = {
    F_NAME(struct user, name),
    F_WORD(struct user, role, role_words),
    F_U32(struct user, uid, UINT32_MAX),
    F_U32(struct user, sub_base, UINT32_MAX),
    F_BOOL(struct user, disabled),
    F_END,
};

json_t *user_to_json_public(const struct user *u)
{
    json_t *obj = json_object();

    json_set_str(obj, "name", u->name);
    json_set_str(obj, "role", role_name(u->role));
    json_set_u64(obj, "uid", u->uid);
    json_set_bool(obj, "disabled", u->disabled);
    return obj;
}

json_t *user_to_json_stored(const struct user *u)
{
    return fields_to_json(user_fields, u);
}

int user_from_json_stored(const json_t *j, struct user *ret, struct err *err)
{
    struct user u = {0};
    int r = fields_read(user_fields, j, &u, err);

    if (r >= 0)
        r = user_check(&u, err);
    if (r < 0)
        return r;
    *ret = u;
    return 0;
}
