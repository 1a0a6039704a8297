/*
 * The plan: what this container is to run and as whom. The agent writes it before the container
 * starts; init reads it once.
 *
 * Format: records `key=value`, each ended by a NUL byte, PLAN_MAX_BYTES at most in all.
 *
 *   user=UID:GID        whom sshd and the command run as            (default 1000:1000)
 *   groups=G1,G2        supplementary groups                        (default none)
 *   cwd=/path           where the command starts                    (default /)
 *   stop-signal=N       what SIGTERM to init becomes for the command (default 15)
 *   env=NAME=VALUE      repeated; all of the command's environment; a later NAME wins
 *   arg=WORD            repeated; the command; none at all is an idle container
 *   sshd=/path          an SSH server to keep running               (default none)
 *   sshd-config=/path   its configuration; both or neither
 *
 * Anything else (an unknown key, one given twice, an unfinished record) is an error: half a plan
 * is worse than none.
 */
#ifndef INIT_PLAN_H
#define INIT_PLAN_H

#include <stddef.h>
#include <sys/types.h>

#define PLAN_MAX_BYTES ((size_t)1 << 20)
#define PLAN_MAX_ENV 4096
#define PLAN_MAX_GROUPS 256

struct plan {
    uid_t uid;
    gid_t gid;
    gid_t groups[PLAN_MAX_GROUPS];
    size_t groups_len;
    const char *cwd;
    int stop_signal;
    const char *sshd; /* NULL: none */
    const char *sshd_config;
    char **argv; /* NULL-terminated; argv[0] is NULL in an idle container */
    size_t argc;
    char **envp; /* NULL-terminated */
    size_t envc;
};

struct plan_err {
    char text[160]; /* one printable line, without any value of the plan */
};

/*
 * The strings of *ret point into data, which must outlive it. plan_done() frees the rest.
 * -E2BIG: too long; -EINVAL: malformed; -ENOMEM. *ret is untouched on error.
 */
int plan_parse(struct plan *ret, char *data, size_t len, struct plan_err *err);
void plan_done(struct plan *plan);

/* The value of NAME in the plan's environment, or NULL. */
const char *plan_getenv(const struct plan *plan, const char *name);

#endif
