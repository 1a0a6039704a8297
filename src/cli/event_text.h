/* Events as people read them. */
#ifndef CLI_EVENT_TEXT_H
#define CLI_EVENT_TEXT_H

#include "base/json.h"

/* "session 12 (tune) of alice: ended (failed): main1 ended with 3", without the time. Heap. */
char *event_text(const json_t *event);

#endif
