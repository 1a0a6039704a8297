/* The plan as a picture. */
#ifndef CLI_PLAN_SVG_H
#define CLI_PLAN_SVG_H

#include "base/json.h"

/* The answer of GET /v1/plan as an SVG document: time from left to right, for each node a row for
 * work without GPUs and one for each GPU, what runs and what is planned as boxes. Heap. */
char *plan_svg(const json_t *plan);

#endif
