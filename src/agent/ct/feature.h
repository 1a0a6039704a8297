/*
 * What the running kernel can do, found out by doing it once. Internal to this folder.
 *
 *   FEATURE_FILE_MOUNT   EROFS from a file without a loop device (Linux 6.12)
 *   FEATURE_DIRECTIO     and read past the page cache of that file (6.13)
 *   FEATURE_LAYER_FD     overlay takes detached, idmapped layers by descriptor (about 6.15)
 */
#ifndef AGENT_CT_FEATURE_H
#define AGENT_CT_FEATURE_H

#include "base/err.h"

enum feature { FEATURE_FILE_MOUNT = 1, FEATURE_DIRECTIO = 2, FEATURE_LAYER_FD = 4 };

bool feature_has(enum feature f);
/* It was tried and is not there: do not try again. */
void feature_clear(enum feature f);
/* For tests: be an older kernel. The bits of mask are never used. */
void feature_forbid(unsigned mask);

#endif
