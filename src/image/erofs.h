/*
 * Writes an EROFS image (Linux: Documentation/filesystems/erofs.rst) as the sink of a layer's
 * conversion: content is compressed and written as it comes, names and attributes follow at the
 * end. The same layer always gives the same bytes. Needs no privilege and no other program.
 */
#ifndef IMAGE_EROFS_H
#define IMAGE_EROFS_H

#include "image/item.h"

/* fd: an empty file, open for reading and writing; borrowed. scratch: a folder for a file that
 * holds what is known about the names until they are written. */
int sink_erofs_new(int fd, const char *scratch, struct sink **ret, struct err *err);

#endif
