/*
 * Any bytes as a plan: it is refused with a reason, or every string of it ends inside the bytes and
 * parsing it again gives the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_string(const char *s, const char *data, size_t size)
{
    assert(s >= data && s < data + size);
    assert(memchr(s, '\0', size - (size_t)(s - data)));
}

static void check_plan(const struct plan *plan, const char *data, size_t size)
{
    assert(!plan->argv[plan->argc] && !plan->envp[plan->envc]);
    assert(plan->envc <= PLAN_MAX_ENV && plan->groups_len <= PLAN_MAX_GROUPS);
    assert(plan->uid != (uid_t)-1 && plan->gid != (gid_t)-1);
    assert(plan->stop_signal >= 1 && plan->stop_signal <= 64);
    assert(plan->cwd[0] == '/' && !plan->sshd == !plan->sshd_config);
    for (size_t i = 0; i < plan->argc; i++)
        check_string(plan->argv[i], data, size);
    for (size_t i = 0; i < plan->envc; i++) {
        check_string(plan->envp[i], data, size);
        assert(strchr(plan->envp[i], '=') > plan->envp[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    struct plan plan;
    struct plan_err err = {{0}};

    assert(copy);
    memcpy(copy, data, size);
    if (plan_parse(&plan, copy, size, &err) == 0) {
        check_plan(&plan, copy, size);
        plan_done(&plan);
    } else {
        assert(err.text[0] && memchr(err.text, '\0', sizeof(err.text)));
    }
    assert(size == 0 || memcmp(copy, data, size) == 0);
    free(copy);
    return 0;
}
