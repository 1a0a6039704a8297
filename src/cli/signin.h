/* Who started the cluster is signed in to it. */
#ifndef CLI_SIGNIN_H
#define CLI_SIGNIN_H

#include "cli/cluster.h"

/* admin: a client with the administrator's token. Leaves configurations that work as they are. */
int signin_caller(const struct cluster *c, struct cli *admin, struct err *err);

#endif
