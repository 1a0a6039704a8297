/* Texts that decisions have in common. */
#include "sched/reason.h"

char *reason_resources(
    const struct resources *r, bool with_gpus, const char *gpu_model, char text[REASON_TEXT_MAX])
{
    struct resources plain = *r;
    size_t n;

    plain.gpus = 0;
    resources_format(&plain, text);
    n = strlen(text);
    if (with_gpus)
        snprintf(text + n, REASON_TEXT_MAX - n, ", %u %s%sGPU%s", r->gpus, gpu_model,
            gpu_model[0] ? " " : "", r->gpus == 1 ? "" : "s");
    return text;
}

char *reason_gang(const struct session *s, char text[REASON_GANG_MAX])
{
    char each[REASON_TEXT_MAX];

    reason_resources(&s->each, s->each.gpus > 0, s->gpu_model, each);
    if (s->size == 1)
        snprintf(text, REASON_GANG_MAX, "%s", each);
    else
        snprintf(text, REASON_GANG_MAX, "%u x (%s)", s->size, each);
    return text;
}
