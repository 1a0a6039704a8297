/*
 * Which switch a node hangs on, and which switch that one: as in Slurm's topology.conf(5) for
 * topology/tree. Lines "SwitchName=leaf1 Nodes=n[1-16]" and "SwitchName=spine1 Switches=leaf[1-4]";
 * other keys are passed over, '#' begins a comment.
 *
 * A leaf is a switch with nodes, its spine the one that lists it. What is above is not looked at.
 */
#ifndef MODEL_TOPOLOGY_H
#define MODEL_TOPOLOGY_H

#include "base/map.h"
#include "base/str.h"

#define TOPOLOGY_TEXT_MAX (512 * 1024) /* bytes */
#define TOPOLOGY_NAMES_MAX 100000      /* nodes and switches */

struct topology {
    struct map leaves; /* node -> name of its leaf, heap */
    struct map spines; /* leaf -> name of its spine, heap */
};

/* -EINVAL "line 3: ...", -E2BIG. */
int topology_parse(const char *text, struct topology *ret, struct err *err);
void topology_done(struct topology *t);
/* "" where it is not known. */
const char *topology_leaf(const struct topology *t, const char *node);
const char *topology_spine(const struct topology *t, const char *leaf);

/*
 * Names as Slurm writes many at once: "n[1-3,7]" is n1, n2, n3, n7; "n[08-10]" keeps its zeros;
 * several brackets and lists "a,b[1-2]" are allowed. fn is called with each in order; a negative
 * return ends it. -EINVAL; -E2BIG for more than max.
 */
int hostlist_each(const char *text, size_t max,
    int (*fn)(const char *name, void *arg, struct err *err), void *arg, struct err *err);

#endif
