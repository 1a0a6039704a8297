/* Field tables of the model's nouns, for documents that contain them. Inside wire only. */
#ifndef WIRE_TABLES_H
#define WIRE_TABLES_H

#include "wire/fields.h"

extern const struct field resources_fields[]; /* struct resources */
extern const struct field gpu_fields[];       /* struct gpu */
extern const struct field user_fields[];      /* struct user */
extern const struct field report_fields[];    /* struct report */
extern const struct words phase_words, link_type_words, image_state_words;

#endif
