/* Users as documents. */
#ifndef WIRE_USER_H
#define WIRE_USER_H

#include "base/json.h"
#include "model/user.h"

/* {"name", "role", "uid", "disabled"} */
json_t *user_to_json_public(const struct user *u);
/* Everything, for the store; exact round trip, checked by user_check. */
json_t *user_to_json_stored(const struct user *u);
int user_from_json_stored(const json_t *j, struct user *ret, struct err *err);

#endif
