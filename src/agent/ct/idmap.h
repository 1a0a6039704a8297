/* User namespaces that carry a user's id map, for idmapped mounts. Internal to this folder. */
#ifndef AGENT_CT_IDMAP_H
#define AGENT_CT_IDMAP_H

#include "model/user.h"

/* A descriptor of a user namespace with user_id_map(u), the caller's to close. Making one takes
 * milliseconds, so the latest ones are kept. Threads may call it at once. */
int idmap_userns(const struct user *u, int *ret_fd, struct err *err);
/* inside -> outside by the map; UINT32_MAX if it is not mapped. */
uint32_t idmap_outside(const struct user *u, uint32_t inside);

#endif
