/* Texts that decisions have in common. Inside sched only. */
#ifndef SCHED_REASON_H
#define SCHED_REASON_H

#include "model/session.h"

/* "2 CPUs, 4 GiB, 1 h100 GPU"; with_gpus: the GPUs too. */
#define REASON_TEXT_MAX (RESOURCES_TEXT_MAX + NAME_MAX_LEN + 2)
char *reason_resources(
    const struct resources *r, bool with_gpus, const char *gpu_model, char text[REASON_TEXT_MAX]);
/* What a session asks for: "4 x (2 CPUs, 4 GiB)", without "1 x ()" for one container. */
#define REASON_GANG_MAX (REASON_TEXT_MAX + 16)
char *reason_gang(const struct session *s, char text[REASON_GANG_MAX]);

#endif
