/* "did you mean": the refusal of members that are not known. Inside wire only. */
#ifndef WIRE_SUGGEST_H
#define WIRE_SUGGEST_H

#include "base/err.h"

/* -EINVAL "unknown member 'imgae'; did you mean 'image'?"; known: count names. */
int suggest_unknown(const char *key, const char *const *known, size_t count, struct err *err);

#endif
