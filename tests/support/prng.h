/*
 * Random numbers that can be had again: the seed comes from MUSTER_SEED or the clock and is printed
 * by whoever starts. (splitmix64, Steele, Lea and Flood 2014.)
 */
#ifndef SUPPORT_PRNG_H
#define SUPPORT_PRNG_H

#include <time.h>

#include "base/base.h"

struct prng {
    uint64_t state;
};

static inline uint64_t prng_seed(const char *what)
{
    const char *text = getenv("MUSTER_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL) * 1000003 + getpid();

    printf("%s: MUSTER_SEED=%ju\n", what, (uintmax_t)seed);
    fflush(stdout);
    return seed;
}

static inline uint64_t prng_next(struct prng *p)
{
    uint64_t z = (p->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. n-1 */
static inline uint32_t prng_below(struct prng *p, uint32_t n)
{
    return (uint32_t)(prng_next(p) % n);
}

/* from .. to, both included */
static inline uint32_t prng_range(struct prng *p, uint32_t from, uint32_t to)
{
    return from + prng_below(p, to - from + 1);
}

static inline bool prng_chance(struct prng *p, uint32_t percent)
{
    return prng_below(p, 100) < percent;
}

#endif
