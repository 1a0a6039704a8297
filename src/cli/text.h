/* Values of API documents as people read them. Untrusted text is escaped here. Heap, never NULL. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "base/json.h"

/* Control characters of others never reach the terminal. */
char *text_clean(const char *s);
/* A member that is text; "-" when missing or null. */
char *text_member(const json_t *obj, const char *key);
/* {"cpus", "mem", "gpus"}: "2 CPUs, 4 GiB, 1 GPU". */
char *text_resources(const json_t *r);
char *text_cpus(const json_t *r);
char *text_mem(const json_t *r);
/* A member that is a time, RFC 3339, in usec; missing: there is none. */
uint64_t text_read_time(const json_t *obj, const char *key, uint64_t missing);
/* RFC 3339 to "2026-11-30 14:37:48" (local, or UTC); "-" for null. */
char *text_time(const json_t *obj, const char *key, bool utc);
/* Between two times of the document, or up to now when "to" is null; "-" if there is no "from". */
char *text_span(const json_t *obj, const char *from, const char *to);
/* "running", "ended (succeeded)". */
char *text_state(const json_t *session);
/* The reason's text; "" when there is none. */
char *text_reason(const json_t *session);
/* Words as a shell would take them. */
char *text_words(const json_t *list);
/* [0, 1]: "0,1". */
char *text_numbers(const json_t *list);
/* One word, in quotes where a shell needs them. */
char *text_quote(const char *word);
/* Microseconds since the epoch, "2026-11-30 14:37:48". */
char *text_usec(uint64_t usec, bool utc);

#endif
