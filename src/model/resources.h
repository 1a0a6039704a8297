/* What a container asks for, a node has, and is left of it. Pure arithmetic. */
#ifndef MODEL_RESOURCES_H
#define MODEL_RESOURCES_H

#include "base/err.h"

struct resources {
    uint32_t cpu_milli; /* thousandths of a CPU */
    uint32_t gpus;      /* whole GPUs */
    uint64_t mem;       /* bytes */
};

/* a fits into b in every dimension. */
bool resources_fit(const struct resources *a, const struct resources *b);
/* How often a fits into b (UINT32_MAX when a is all zero). */
uint32_t resources_times(const struct resources *a, const struct resources *b);
void resources_add(struct resources *to, const struct resources *what);
/* Saturates at zero. */
void resources_sub(struct resources *from, const struct resources *what);
/* each times n; -EOVERFLOW. */
int resources_scale(const struct resources *each, uint32_t n, struct resources *ret);

/* CPUs: "2", "0.5", "1500m"; 0.01 to 4096. */
int cpus_parse(const char *text, uint32_t *ret_milli, struct err *err);
#define CPUS_TEXT_MAX 16
char *cpus_format(uint32_t milli, char text[CPUS_TEXT_MAX]); /* "2", "0.5" */

/* "2 CPUs, 4 GiB, 1 GPU" (no GPU part when 0). */
#define RESOURCES_TEXT_MAX 96
char *resources_format(const struct resources *r, char text[RESOURCES_TEXT_MAX]);

#endif
