/* The manager's configuration: one table (config.c) for file, command line and --help. */
#ifndef MANAGER_CONFIG_H
#define MANAGER_CONFIG_H

#include "base/opt.h"

struct manager_config {
    char *config_path;
    bool help, version;
    char **listen;            /* "HOST:PORT" */
    char *state_dir;          /* store, blobs, tokens */
    char *volumes_dir;        /* shared storage: volumes are folders in it */
    char *overlay;            /* CIDR of session networks, a /22 each */
    char **blocked;           /* CIDRs that sessions must not reach */
    char *import_program;     /* muster-import */
    char **insecure;          /* registries, "HOST[:PORT]", that need no valid certificate */
    char **auto_import;       /* registries that the first use of an image may import from */
    char **mirrors;           /* "HOST=MIRROR" */
    char **cas;               /* "HOST=FILE" */
    uint64_t stall_usec;      /* how long a registry may send nothing */
    char *tls_cert, *tls_key; /* the site's own, for people */
    char **tls_names;         /* more names and addresses of this manager */
    bool tls_off;             /* plain HTTP on all addresses */
    uint64_t tls_lifetime_usec;
    bool new_ca;
    char *log_level, *log_format;
    uint64_t prepare_usec;   /* deadline of preparing */
    uint64_t start_usec;     /* of starting */
    uint64_t heartbeat_usec; /* an agent's silence that makes its node unreachable */
    uint64_t fence_usec;     /* an agent that long without a manager ends its train sessions */
    uint64_t lost_usec;      /* a node that long unreachable is lost; more than fence_usec */
    uint64_t start_attempts; /* starts of a session before infrastructure failure ends it */
};

extern const struct opt manager_options[];

/* Read line, file and defaults, and check what must agree. */
int manager_config_read(struct manager_config *c, int argc, char **argv, struct err *err);
void manager_config_done(struct manager_config *c);

#endif
