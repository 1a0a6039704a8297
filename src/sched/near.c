/*
 * GPUs of one container near to each other: all linked by NVLink if that is to be had, else all in
 * one NUMA domain, else in few of those. Of the domains that hold all, the tightest is taken.
 */
#include "sched/usage.h"

enum nearness { NEAR_NVLINK, NEAR_NUMA };

static uint32_t count_bits(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

/* Those of the bits that are in one domain with the GPU. */
static uint64_t domain_of(
    const struct book_node *n, uint64_t bits, uint32_t gpu, enum nearness level)
{
    const uint8_t *number = level == NEAR_NVLINK ? n->nvlink : n->numa;
    uint64_t domain = 0;

    for (uint64_t left = bits; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);

        if (number[i] == number[gpu])
            domain |= UINT64_C(1) << i;
    }
    return domain;
}

static bool is_better(uint32_t have, uint32_t best, uint32_t want)
{
    if (have >= want)
        return best < want || have < best;
    return best < want && have > best;
}

/* The domain to take from: the tightest that holds all that is wanted, else the fullest. */
static uint64_t choose(const struct book_node *n, uint64_t bits, uint32_t want, enum nearness level)
{
    uint64_t best = 0;

    for (uint64_t left = bits; left;) {
        uint64_t domain = domain_of(n, bits, (uint32_t)__builtin_ctzll(left), level);

        if (is_better(count_bits(domain), count_bits(best), want))
            best = domain;
        left &= ~domain;
    }
    return best;
}

static uint64_t first_bits(uint64_t bits, uint32_t want)
{
    uint64_t taken = 0;

    for (; want > 0; want--) {
        taken |= bits & -bits;
        bits &= bits - 1;
    }
    return taken;
}

/* From one domain after the other; want is at most the number of bits. */
static uint64_t take_by(
    const struct book_node *n, uint64_t bits, uint32_t want, enum nearness level)
{
    uint64_t taken = 0;

    while (want > 0) {
        uint64_t domain = choose(n, bits, want, level);
        uint32_t part = MIN_OF(want, count_bits(domain));

        taken |= first_bits(domain, part);
        bits &= ~domain;
        want -= part;
    }
    return taken;
}

static uint64_t take(const struct book_node *n, uint64_t bits, uint32_t want)
{
    uint64_t linked = choose(n, bits, want, NEAR_NVLINK), numa;

    if (count_bits(linked) >= want)
        return take_by(n, linked, want, NEAR_NUMA);
    numa = choose(n, bits, want, NEAR_NUMA);
    if (count_bits(numa) >= want)
        return take_by(n, numa, want, NEAR_NVLINK);
    return take_by(n, bits, want, NEAR_NUMA);
}

uint64_t usage_near_gpus(const struct usage *u, uint32_t node, const struct shape *s)
{
    const struct book_node *n = &u->book->nodes[node];
    uint64_t bits = 0;

    for (uint32_t i = 0; i < n->gpus; i++)
        if (u->nodes[node].gpu[i] == SHAPE_WHOLE && book_gpu_suits(n, i, s))
            bits |= UINT64_C(1) << i;
    assert(count_bits(bits) >= shape_gpus(s));
    return take(n, bits, shape_gpus(s));
}
