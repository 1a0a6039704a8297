/* Each address has a moment at which all its tries would be forgotten; a try moves it on. */
#include "manager/throttle.h"

struct tries {
    uint64_t forgotten_usec;
};

void throttle_init(struct throttle *t)
{
    map_init(&t->addresses);
}

void throttle_done(struct throttle *t)
{
    map_done(&t->addresses, free);
}

static void forget_old(struct throttle *t, uint64_t mono_usec)
{
    map_for_each (e, &t->addresses) {
        const struct tries *tries = e->value;
        if (tries->forgotten_usec <= mono_usec)
            free(map_remove(&t->addresses, e->key));
    }
}

/* The key that counts for this address. */
static const char *key_of(const struct throttle *t, const char *address)
{
    bool full = map_count(&t->addresses) >= THROTTLE_ADDRESSES_MAX;

    return full && !map_get(&t->addresses, address) ? "others" : address;
}

uint64_t throttle_wait_usec(struct throttle *t, const char *address, uint64_t mono_usec)
{
    const struct tries *tries = map_get(&t->addresses, key_of(t, address));
    uint64_t may_at;

    if (!tries)
        return 0;
    may_at = tries->forgotten_usec - (THROTTLE_TRIES - 1) * THROTTLE_EACH_USEC;
    return tries->forgotten_usec > (THROTTLE_TRIES - 1) * THROTTLE_EACH_USEC && may_at > mono_usec
        ? may_at - mono_usec
        : 0;
}

void throttle_count(struct throttle *t, const char *address, uint64_t mono_usec)
{
    const char *key;
    struct tries *tries;

    if (map_count(&t->addresses) >= THROTTLE_ADDRESSES_MAX)
        forget_old(t, mono_usec);
    key = key_of(t, address);
    tries = map_get(&t->addresses, key);
    if (!tries) {
        tries = xnew(struct tries);
        map_set(&t->addresses, key, tries);
    }
    tries->forgotten_usec = MAX_OF(tries->forgotten_usec, mono_usec) + THROTTLE_EACH_USEC;
}
