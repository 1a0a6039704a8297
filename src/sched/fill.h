/* Nodes and sessions as the book has them. Inside sched only. */
#ifndef SCHED_FILL_H
#define SCHED_FILL_H

#include "sched/sched.h"

/* The node, put into the book. */
void fill_node(struct book *b, const struct node *n, const struct sched_withheld *withheld);

/* The session as a job; BOOK_FOREVER as limit when it has none. Names are interned. */
struct book_job fill_job(struct book *b, const struct session *s, uint64_t now_usec);
/* Where its containers are, one share each; heap. */
struct book_share *fill_shares(const struct book *b, const struct session *s);
/* Does any container of it hold anything? */
bool fill_holds(const struct session *s);
/* When what it holds began to be held. */
uint64_t fill_started(const struct session *s);

/* GPUs of the node, as bits, of a model that is wished for (gpu_model_fits); healthy ones only if
 * asked. */
uint64_t fill_gpus(const struct node *n, const char *wish, bool healthy_only);

#endif
