/* Values as public documents show them. */
#ifndef WIRE_PUBLIC_H
#define WIRE_PUBLIC_H

#include "base/json.h"

void public_set_time(json_t *obj, const char *key, uint64_t real_usec); /* null when 0 */
void public_set_text(json_t *obj, const char *key, const char *text);   /* null when "" */
void public_set_limit(json_t *obj, const char *key, uint64_t n);        /* null when 0 */
void public_set_cpus(json_t *obj, const char *key, uint64_t milli);     /* 2 or 0.5 */

#endif
