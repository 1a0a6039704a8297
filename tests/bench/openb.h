/*
 * Nodes and requests of a published trace of GPU work (alibaba/clusterdata,
 * cluster-trace-gpu-v2023), or requests that are made up in its place.
 */
#ifndef BENCH_OPENB_H
#define BENCH_OPENB_H

#include "base/err.h"
#include "sched/book.h"
#include "support/prng.h"

#define OPENB_REQUESTS_MAX 1000000

struct requests {
    struct shape *list; /* heap */
    size_t count, cap;
};

/* The node list (sn, cpu_milli, memory_mib, gpu, model) into the book. */
int openb_nodes(struct book *b, const char *path, struct err *err);
/* A list of requests (cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec). */
int openb_requests(struct book *b, const char *path, struct requests *ret, struct err *err);
/* In shape like those, where there is no trace: of 1000, 130 ask for no GPU, 380 for a part of one,
 * 470 for one, the others for 2, 4 or 8; 4 to 12 CPUs and 16 to 64 GiB for each. */
void openb_made_up(struct prng *random, struct requests *ret);
void requests_shuffle(struct requests *r, struct prng *random);
void requests_done(struct requests *r);

#endif
