/* The table of knobs, and reading and writing a knob by its place in struct pass_options. */
#include "sched/policy.h"

#define O(member) offsetof(struct pass_options, member)
#define POINTS_MAX 1000000
#define YEAR (365 * 86400 * UINT64_C(1000000))

/* clang-format off */
const struct policy_knob policy_knobs[] = {
    { "work", O(order.work), false, POINTS_MAX,
      "points less for each doubling of the expected GPU-seconds: small work first" },
    { "expansion", O(order.expansion), false, POINTS_MAX,
      "points for each doubling of (wait + run) / run: who waits long for what takes little time" },
    { "age", O(order.age), false, POINTS_MAX, "points for each day of waiting" },
    { "fair", O(order.fair), false, POINTS_MAX,
      "points for who has had least of what is his share; who has had most has none" },
    { "half_life_usec", O(order.half_life_usec), true, YEAR,
      "what somebody has had counts half after so long; 0: never less" },
    { "reservations", O(reservations), false, PLAN_RESERVATIONS_MAX,
      "sessions that do not fit and are planned for: 0 lets small ones pass for ever, the greatest number is "
      "conservative backfill" },
    { "patience_usec", O(patience_usec), true, YEAR,
      "after so long a session may have its turn, whatever its points; 0: nobody has one" },
    { "turns_milli", O(turns_milli), false, 1000, "thousandths of the cluster that go by turns" },
    { "min_run_usec", O(preempt.min_run_usec), true, YEAR,
      "a session that borrows is left alone for so long before it can be asked back" },
    { "spot_run_usec", O(preempt.spot_run_usec), true, YEAR, "the same of a spot session" },
    { "preempt_grace_usec", O(preempt.grace_usec), true, YEAR,
      "from the word that a session has to leave to its end" },
    { "lease_usec", O(lease_usec), true, YEAR,
      "the lease of a debug session that does not say how long it takes" },
    { "lease_notice_usec", O(lease_notice_usec), true, YEAR,
      "a debug session whose lease is over, and that others wait for, has so long to end" },
    { NULL }
};
/* clang-format on */

const struct policy_knob *policy_find(const char *name)
{
    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

uint64_t policy_get(const struct pass_options *o, const struct policy_knob *k)
{
    const char *at = (const char *)o + k->offset;
    uint64_t wide;
    uint32_t narrow;

    memcpy(&wide, at, k->wide ? sizeof(wide) : 0);
    memcpy(&narrow, at, k->wide ? 0 : sizeof(narrow));
    return k->wide ? wide : narrow;
}

int policy_set(struct pass_options *o, const struct policy_knob *k, uint64_t value, struct err *err)
{
    char *at = (char *)o + k->offset;
    uint32_t narrow = (uint32_t)value;

    if (value > k->max)
        return err_set(
            err, -ERANGE, "'%s' must be at most %llu", k->name, (unsigned long long)k->max);
    if (k->wide)
        memcpy(at, &value, sizeof(value));
    else
        memcpy(at, &narrow, sizeof(narrow));
    return 0;
}

int policy_read(const json_t *body, struct pass_options *o, struct err *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(body))
        return err_set(err, -EINVAL, "a policy is an object like {\"reservations\": 16}");
    json_object_foreach ((json_t *)body, key, value) {
        const struct policy_knob *k = policy_find(key);
        int r;

        if (!k)
            return err_set(err, -EINVAL, "there is no '%.60s' in the policy", key);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return err_set(err, -EINVAL, "'%s' must be a whole number", key);
        r = policy_set(o, k, (uint64_t)json_integer_value(value), err);
        if (r < 0)
            return r;
    }
    return 0;
}
