/* How people name a session and a container of it: SESSION or SESSION/CONTAINER. */
#ifndef CLI_REF_H
#define CLI_REF_H

#include "base/err.h"

struct ref {
    char *session;      /* heap */
    char container[16]; /* "main1" unless said */
    bool has_container;
};

/* -EINVAL with what a reference looks like. */
int ref_parse(const char *text, struct ref *ret, struct err *err);
void ref_done(struct ref *r);

#endif
