/* Who started the cluster is signed in to it. */
#ifndef CLI_SIGNIN_H
#define CLI_SIGNIN_H

#include "cli/cluster.h"

/* admin: a client with the administrator's token. Leaves configurations that work as they are;
 * *ret_elsewhere: it is one of those, and leads to another cluster. */
int signin_caller(const struct cluster *c, struct cli *admin, bool *ret_elsewhere, struct err *err);
#endif
