/* YAML as JSON, for CDI files. Internal to this folder. */
#ifndef AGENT_CT_CDI_YAML_H
#define AGENT_CT_CDI_YAML_H

#include "base/json.h"

/* One document of at most max bytes: maps, lists, strings; plain scalars that look like numbers or
 * booleans become such. No anchors. -EINVAL with the line. */
int yaml_to_json(const char *text, size_t len, size_t max, json_t **ret, struct err *err);

#endif
