/* Accounts and use as JSON: stored, shown to people, and as people change them. */
#ifndef WIRE_ACCOUNT_H
#define WIRE_ACCOUNT_H

#include "base/json.h"
#include "model/account.h"

json_t *account_to_json_stored(const struct account *a);
int account_from_json_stored(const json_t *j, struct account *ret, struct err *err);
/* GPUs are numbers (0.5), no limit is null. */
json_t *account_to_json_public(const struct account *a);
/* The members that are there; unknown ones are refused. a is then checked (account_check), and as
 * it was when something is wrong. 'name' is taken only while a has none. */
int account_update_from_json(const json_t *j, struct account *a, struct err *err);

json_t *account_use_to_json_stored(const struct account_use *u);
int account_use_from_json_stored(const json_t *j, struct account_use *ret, struct err *err);

#endif
