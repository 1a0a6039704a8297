/*
 * Following a session: until it runs (with progress on the terminal), its log, until it ended. All
 * survive restarts of the manager and agents: they try again, and say so after a while.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdatomic.h>

#include "cli/cli.h"

/* Tries again without an answer: tells the person once it takes long, and when it is over. */
struct patience {
    uint64_t since_usec; /* monotonic; 0: all is well */
    bool said;
    unsigned tries;
};

/* Sleep before the next try. */
void patience_wait(struct patience *p, const char *what);
void patience_over(struct patience *p);

/*
 * Wait until the session is "running" or beyond ("running"), or has ended ("ended"). until_usec:
 * monotonic time at which to give up, 0: never. The session as it is then, owned by the caller.
 * -ETIME when it took too long (ret is set all the same).
 */
int follow_until(struct cli *cli, const char *id, const char *until, uint64_t until_usec,
    json_t **ret, struct err *err);

struct log_opts {
    const char *session, *container;
    bool follow, timestamps;
    int out_fd, err_fd; /* channel 1 and 2 go there, byte for byte */
};

/* Until the container's end (or what there is, without follow). -EPIPE: the reader has gone. */
int follow_log(struct cli *cli, const struct log_opts *opts, struct err *err);

/* The session has ended: its command's exit code, or dflt when it ended otherwise than by itself
 * (said on stderr). */
int follow_exit_code(const json_t *session, int dflt);

#endif
