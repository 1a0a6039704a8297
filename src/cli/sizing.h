/*
 * What a person asked 'muster up' for. It is kept in DIR/up.json through a 'down', so that the next
 * 'up' brings back what was there; options that are given then replace single ones of it.
 */
#ifndef CLI_SIZING_H
#define CLI_SIZING_H

#include "cli/cluster.h"

struct sizing {
    char *nodes; /* virtual ones; "0": this machine is the node */
    char *node_cpus, *node_mem, *gpu;
}; /* as given; NULL: not given */

struct made {
    struct sizing sizing;
    uint16_t port; /* of the API, by which people's configurations know it; 0: not known */
    char **names;  /* of the nodes */
    char **former; /* nodes that were there before, and of which the manager may still know */
};

int sizing_check_nodes(const char *value, struct err *err);
int sizing_check_gpu(const char *value, struct err *err);

size_t sizing_nodes(const struct sizing *s);
/* What is not given is as in old. */
void sizing_merge(struct sizing *s, const struct sizing *old);
/* "--nodes 2 --gpu fake:h100:2"; "" when nothing is given. Heap. */
char *sizing_words(const struct sizing *s);
/* -EEXIST when something is given that the cluster is not up with. */
int sizing_check_same(const struct sizing *s, const struct cluster *c, struct err *err);

/* Nothing at all when there is no record. */
int made_load(const char *dir, struct made *ret, struct err *err);
int made_save(const char *dir, const struct made *m, struct err *err);
/* The plan is c now: nodes of before that are not in it are former ones. */
void made_plan(struct made *m, const struct sizing *s, const struct cluster *c);

#endif
