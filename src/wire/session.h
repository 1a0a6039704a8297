/* Sessions as documents: what a person sends, what the API shows, what the store keeps. */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include "base/json.h"
#include "model/session.h"

/*
 * The body of POST /v1/sessions. Members (all but "image" may be missing or null):
 *   name        a name; missing: "" (the manager gives one)
 *   kind        "debug" or "train"; missing: "train" when there is a command, else "debug"
 *   size        containers, 1 to 1000; missing: 1
 *   mode        "single-node" or "multi-node" (default)
 *   cpus        per container: 2, 0.5 or "0.5", "1500m"; missing: 1
 *   mem         per container: bytes or "4G"; missing: 2 GiB
 *   gpus        per container; missing: 0
 *   gpu_model   "h100", "a100|h100" (any case); missing: any
 *   shm         bytes or "64M": /dev/shm, a part of mem; missing: 64 MiB, or mem if that is less
 *   group       missing: "default"
 *   image       reference or name
 *   command     list of words; missing or []: none
 *   env         {"NAME": "value"}
 *   workdir     absolute path; missing: the image's
 *   mounts      [{"volume", "path", "read_only" (false)}]
 *   time_limit  seconds, or a duration as text ("8h", "1-00:00:00"); missing: 0, none (the group's
 *               default is the manager's to apply)
 *   grace       likewise; missing: 10 s for debug, 30 s for train
 *   on          where the command runs: "main" (default) or "all"
 *   on_failure  "strict" (default) or "tolerant"
 *   switches    leaf switches at most; missing: any number
 *   switch_wait so long it waits for that, seconds or "5m"; missing: 5 minutes
 *   nice        points less of priority; missing: 0
 *   hold        true: not started before somebody releases it; missing: false
 *   begin       RFC 3339: not started before; missing: at once
 *   finish_by   RFC 3339: over by then, or not started at all; missing: whenever
 * An unknown member is an error with a suggestion. The values' forms are checked here; their sense
 * by session_request_check, which the caller calls next. ret: from session_new, touched on success
 * only.
 */
int session_request_from_json(const json_t *body, struct session *ret, struct err *err);

/*
 * What the API shows to whoever may see the session; no secrets:
 * {"id", "num", "name", "owner", "kind", "mode", "placed_mode" (null before it was placed), "size",
 *  "state", "result" (null), "reason": {"code", "text"} (null),
 *  "resources": {"each": {"cpus", "mem", "gpus"}, "total": {...}, "gpu_model" (null), "shm"},
 *  "group", "image", "image_id" (null), "command" (null), "env": {}, "workdir" (null),
 *  "mounts": [{"volume", "path", "read_only"}], "time_limit_usec" (null), "grace_usec", "on",
 *  "on_failure", "estimate_usec" (null), "switches" (null), "switch_wait_usec" (null), "nice",
 * "hold": "none" | "user" | "operator", "begin" (null), "finish_by" (null), "attempt", "exit_code"
 * (null), "submitted", "placed", "started", "ended", "state_since", "deadline": RFC 3339, null: not
 * yet, "containers": [{"id", "name", "role": "main" | "sub", "idx", "rank", "node" (null), "gpus":
 * [0], "ip" (null), "state", "end" (null), "exit_code" (null; of "signal" its number), "text"
 * (null), "started", "ended"}] by rank}
 */
json_t *session_to_json_public(const struct session *s);

/* Everything, secrets included, for the store; exact round trip. s has its containers. */
json_t *session_to_json_stored(const struct session *s);
int session_from_json_stored(const json_t *j, struct session **ret, struct err *err);

#endif
