/*
 * What is replayed: the nodes of a cluster and the jobs that came to it. Readers of three forms of
 * job lists; which one a file is, its name and its first lines say.
 *
 * - CSV: the first line names the columns, in any order: submit, duration (seconds); size, cpus,
 *   mem, gpus (of each container; gpus=0.5 is a share), gpu_model, limit, estimate (seconds), user,
 *   group, single_node, nice. Only submit and duration are needed.
 * - SWF: the Standard Workload Format, 18 numbers a line (Feitelson et al.); processors are CPUs,
 *   or GPUs with workload_options.swf_gpus.
 * - sacct: what `sacct --parsable2 --format=...` prints: User, Submit, Start, End, Timelimit, and
 *   ReqTRES or ReqCPUS, ReqMem, ReqNodes; jobs without an end are left out.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "base/err.h"
#include "sched/book.h"

#define WORKLOAD_JOBS_MAX 10000000

struct workload_job {
    uint64_t submit, duration; /* usec; submit from the first job's */
    struct book_job job;       /* shape, limit, estimate, owner, nice; submitted: as submit */
};

struct workload {
    struct workload_job *jobs; /* by submit, then as in the file */
    size_t count, cap;
    size_t skipped; /* lines that are no job that has run */
};

struct workload_options {
    bool swf_gpus;
    uint32_t gpus_per_node; /* a job of more GPUs becomes a gang of whole nodes; 0: never */
};

/* The number of a group of nodes; "" is "default". */
uint32_t workload_group(struct book *b, const char *name);
/* Nodes from a CSV file (name, cpus, mem, gpus, gpu_model, leaf, spine, group), or from a text like
 * "8x cpus=96,mem=768G,gpus=8,gpu_model=v100". Into the book. */
int workload_nodes(struct book *b, const char *text, struct err *err);
int workload_read(struct book *b, const char *path, const struct workload_options *o,
    struct workload *ret, struct err *err);
void workload_done(struct workload *w);

#endif
