/* What the readers of requests (http1.c) and of answers (http1_answer.c) share: http1_fields.c. */
#ifndef NET_HTTP1_INTERNAL_H
#define NET_HTTP1_INTERNAL_H

#include "net/http1.h"

/* -EINVAL with the text; status is what a server answers then. */
int http1_refuse(struct err *err, unsigned *ret_status, unsigned status, const char *text);
/* End the line at *at with NUL (it ends with CRLF) and step behind it. */
char *http1_take_line(char **at);
/* "name: value" becomes a header of head. */
int http1_take_field(char *line, struct http1_head *head, unsigned *ret_status, struct err *err);
/* No control characters but tabs. */
bool http1_is_value(const char *s);
unsigned http1_count(const struct http1_head *head, const char *name);
/* Is word one of the comma-separated words of a header value (all of its lines)? */
bool http1_has_word(const struct http1_head *head, const char *name, const char *word);
/* Content-Length or chunks, never both. */
int http1_check_framing(struct http1_head *head, unsigned *ret_status, struct err *err);

#endif
