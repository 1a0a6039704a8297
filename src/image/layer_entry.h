/* Inside of the layer conversion: a tar entry as an item, its values checked and bounded. */
#ifndef IMAGE_LAYER_ENTRY_H
#define IMAGE_LAYER_ENTRY_H

#include "image/item.h"

struct archive_entry;

/* -ENODATA: a device or socket, which is not taken over. For hard links only type and target. */
int layer_entry_item(struct archive_entry *e, const char *raw, struct item *ret, struct err *err);

#endif
