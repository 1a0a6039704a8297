/* Shortest remaining time first, as a reference. Inside sim only. */
#ifndef SIM_SRTF_H
#define SIM_SRTF_H

#include "sim/replay.h"

/* out: jobs that are left out. r has its arrays already. */
void srtf_run(struct book *b, const struct workload *w, const bool *out, struct replay_result *r);
void replay_sample_add(struct replay_result *r, struct replay_sample sample);

#endif
