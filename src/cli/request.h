/* What a person asks for when making a session: options of create and run, and the body of
 * POST /v1/sessions made of them. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/cli.h"

struct request_opts {
    char *name, *kind, *mode, *cpus, *mem, *gpu_model, *shm, *group, *time, *grace, *on,
        *on_failure, *workdir, *retry, *dependency, *account, *qos, *switches, *nice, *begin,
        *deadline;
    uint64_t size, gpus;
    char **volumes, **env;
    bool dry_run, hold, spot, requeue;
};

int request_check_kind(const char *value, struct err *err);
int request_check_mode(const char *value, struct err *err);
int request_check_on(const char *value, struct err *err);
int request_check_on_failure(const char *value, struct err *err);
int request_check_size(const char *value, struct err *err);
int request_check_volume(const char *value, struct err *err);
int request_check_cpus(const char *value, struct err *err);
int request_check_bytes(const char *value, struct err *err);
int request_check_dependency(const char *value, struct err *err);
int request_check_retry(const char *value, struct err *err);
int request_check_qos(const char *value, struct err *err);
int request_check_switches(const char *value, struct err *err);
int request_check_nice(const char *value, struct err *err);
int request_check_moment(const char *value, struct err *err);
int request_check_time(const char *value, struct err *err);

#define REQUEST_O(type, m) offsetof(type, request.m)
/* clang-format off */
#define REQUEST_OPTIONS(type) \
    { "name", OPT_STR, REQUEST_O(type, name), NULL, "NAME", "what to call the session", 'n', true }, \
    { "kind", OPT_STR, REQUEST_O(type, kind), NULL, "KIND", \
      "debug (stays until stopped) or train (ends with its command); train when there is a command", \
      'k', true, request_check_kind }, \
    { "size", OPT_U64, REQUEST_O(type, size), NULL, "N", "containers: main1 and N-1 subs (1 if unset)", \
      's', true, request_check_size }, \
    { "mode", OPT_STR, REQUEST_O(type, mode), NULL, "MODE", \
      "single-node, or multi-node (may be spread; still on one node if it fits)", 0, true, \
      request_check_mode }, \
    { "cpus", OPT_STR, REQUEST_O(type, cpus), NULL, "CPUS", \
      "CPUs of each container: 2, 0.5 (1 if unset)", 'c', true, request_check_cpus }, \
    { "mem", OPT_STR, REQUEST_O(type, mem), NULL, "SIZE", \
      "memory of each container: 4G, 512M (2G if unset)", 'm', true, request_check_bytes }, \
    { "gpus", OPT_U64, REQUEST_O(type, gpus), NULL, "N", "GPUs of each container (none if unset)", \
      'g', true }, \
    { "gpu_model", OPT_STR, REQUEST_O(type, gpu_model), NULL, "MODEL", \
      "only GPUs of this model: h100, a100", 0, true }, \
    { "shm", OPT_STR, REQUEST_O(type, shm), NULL, "SIZE", \
      "/dev/shm of each container, a part of its memory (64M if unset)", 0, true, \
      request_check_bytes }, \
    { "group", OPT_STR, REQUEST_O(type, group), NULL, "GROUP", "group of nodes to run in", 0, true }, \
    { "volume", OPT_STRV, REQUEST_O(type, volumes), NULL, "NAME[:PATH][:ro|rw]", \
      "mount a volume at PATH (/data/NAME if not given); may be given several times", 'v', true, \
      request_check_volume }, \
    { "env", OPT_STRV, REQUEST_O(type, env), NULL, "NAME[=VALUE]", \
      "set a variable; without a value: to what it is here; may be given several times", 'e', true }, \
    { "time", OPT_STR, REQUEST_O(type, time), NULL, "TIME", \
      "end the session after so long: 8h, 90s, 1-00:00:00; a number alone is minutes, 0 is no limit", 't', true, request_check_time }, \
    { "grace", OPT_STR, REQUEST_O(type, grace), NULL, "TIME", \
      "between the stop signal and the end by force (debug 10s, train 30s)", 0, true, \
      request_check_time }, \
    { "on", OPT_STR, REQUEST_O(type, on), NULL, "WHERE", \
      "run the command in main (only main1) or all containers", 0, true, request_check_on }, \
    { "on_failure", OPT_STR, REQUEST_O(type, on_failure), NULL, "POLICY", \
      "strict: one container's failure ends the session; tolerant: only main1's", 0, true, \
      request_check_on_failure }, \
    { "workdir", OPT_STR, REQUEST_O(type, workdir), NULL, "PATH", \
      "start the command in this folder of the container", 'w', true }, \
    { "dependency", OPT_STR, REQUEST_O(type, dependency), NULL, "LIST", \
      "start only after others: after:N, afterok:N, afternotok:N, afterany:N, singleton; N,M: both", 0, \
      true, request_check_dependency }, \
    { "account", OPT_STR, REQUEST_O(type, account), NULL, "ACCOUNT", \
      "for which of the accounts that you work for", 0, true }, \
    { "qos", OPT_STR, REQUEST_O(type, qos), NULL, "TIER", \
      "low, normal or high (for operators): higher ones go first", 0, true, request_check_qos }, \
    { "retry", OPT_STR, REQUEST_O(type, retry), NULL, "N[:on=HOW,...]", \
      "a train session that is tried again so often after node-fail, timeout, exit (all, if none is named)", \
      0, true, request_check_retry }, \
    { "spot", OPT_BOOL, REQUEST_O(type, spot), NULL, NULL, \
      "a train session that only borrows, and leaves as soon as others need the place", 0, true }, \
    { "requeue", OPT_BOOL, REQUEST_O(type, requeue), NULL, NULL, \
      "a train session that waits again when it had to leave for others", 0, true }, \
    { "switches", OPT_STR, REQUEST_O(type, switches), NULL, "N[@TIME]", \
      "on N leaf switches at most; after waiting TIME (5m) for it on any number", 0, true, \
      request_check_switches }, \
    { "nice", OPT_STR, REQUEST_O(type, nice), NULL, "N", \
      "points less of priority, so that others go first (below 0: more; for operators)", 0, true, \
      request_check_nice }, \
    { "hold", OPT_BOOL, REQUEST_O(type, hold), NULL, NULL, \
      "do not start it before 'muster release'", 0, true }, \
    { "begin", OPT_STR, REQUEST_O(type, begin), NULL, "TIME", \
      "do not start it before: 2h (from now), 18:00, 2026-12-24T18:00", 0, true, \
      request_check_moment }, \
    { "deadline", OPT_STR, REQUEST_O(type, deadline), NULL, "TIME", \
      "be over by then (with --time: or do not start at all)", 0, true, request_check_moment }, \
    { "dry_run", OPT_BOOL, REQUEST_O(type, dry_run), NULL, NULL, \
      "only say whether and where it would start", 0, true }
/* clang-format on */

/* The body; words: IMAGE [COMMAND...] (a "--" behind the image is dropped). -EINVAL. */
int request_body(
    const struct request_opts *o, int count, char **words, json_t **ret, struct err *err);

/* "NAME[:PATH][:ro|rw]" as {"volume", "path", "read_only"}; owned by the caller. */
int request_volume(const char *spec, json_t **ret, struct err *err);
/* "K=V", or K alone with the value it has here, added to env. */
int request_env(json_t *env, const char *text, struct err *err);

/* POST it: prints what a dry run found, or gives the session. CLI_GO_ON, or the exit code when
 * done. Warns when no volume is mounted. */
int request_send(
    struct cli *cli, const struct request_opts *o, int count, char **words, json_t **ret_session);

#endif
