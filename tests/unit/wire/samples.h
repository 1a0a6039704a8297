/* Random and fixed nouns for the tests of documents. */
#ifndef UNIT_WIRE_SAMPLES_H
#define UNIT_WIRE_SAMPLES_H

#include "support/prng.h"
#include "wire/link.h"

struct session *sample_session(struct prng *p);
struct assignment *sample_assignment(struct prng *p);
void sample_report(struct prng *p, struct report *r);
/* A random message of this type. */
void sample_message(struct prng *p, enum link_type type, struct link_message *m);
/* Valid UTF-8 of fewer than size bytes, with quotes, newlines and other characters in it. */
void sample_text(struct prng *p, char *dst, size_t size);

#endif
