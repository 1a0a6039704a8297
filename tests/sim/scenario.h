/*
 * A cluster and its queue as text, for tests of the scheduler:
 *
 *   # comment
 *   node n1 cpus=8 mem=32G gpus=4xh100 group=default drained state=unreachable bad=2 used=1:4G:0+1
 *   node n2 leaf=l1 spine=s1 gpus=8xh100 numa=4 nvlink=2
 *   session a size=4 cpus=2 mem=4G gpus=1 model=h100 mode=single-node group=default
 *   session b switches=2 nice=100
 *
 * numa=4, nvlink=2: each so many GPUs share a NUMA domain, or are linked; behind gpus.
 * bad: indexes of unhealthy GPUs, used: CPUs, memory and GPUs that something else holds; "+"
 * between several. gpus=2xh100+2xa100 gives two models, first one first.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "sched/sched.h"

#define SCENARIO_MAX 64
#define SCENARIO_NOW UINT64_C(1700000000000000)

struct scenario {
    struct node nodes[SCENARIO_MAX];
    struct sched_withheld withheld[SCENARIO_MAX];
    size_t node_count;
    struct session *sessions[SCENARIO_MAX];
    size_t session_count;
};

/* Aborts the test program on bad text. */
void scenario_parse(struct scenario *sc, const char *text);
void scenario_done(struct scenario *sc);
/* The decisions of one pass, a line or two each; heap. */
char *scenario_decide(struct scenario *sc);
/* "GPU bits" as "0,1,3". */
char *scenario_gpus(uint64_t bits, char text[256]);

#endif
