/* From libarchive's entry to an item. Owners are the numbers; names of users are ignored. */
#include "image/layer_entry.h"

#include <archive.h>
#include <archive_entry.h>

#include "image/layer_path.h"

#define XATTRS_MAX 64
#define XATTR_MAX_BYTES 65536
#define ID_MAX (INT64_C(0xffffffff) - 1)
#define SEC_MAX ((INT64_C(1) << 34) - 1) /* the year 2514; ext4 ends in 2446 */

static int copy_xattrs(struct archive_entry *e, const char *raw, struct item *i, struct err *err)
{
    const char *name;
    const void *value;
    size_t len;

    archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
        if (!name || !item_xattr_is_kept(name))
            continue;
        if (i->xattr_count >= XATTRS_MAX || len > XATTR_MAX_BYTES || strlen(name) > LAYER_NAME_MAX)
            return layer_failed(raw, -EFBIG, "too many or too large extended attributes", err);
        item_set_xattr(i, name, value, len);
    }
    return 0;
}

static int copy_target(const char *target, const char *raw, struct item *i, struct err *err)
{
    if (!target || target[0] == '\0')
        return layer_failed(raw, -EINVAL, "a link to nothing", err);
    if (strlen(target) >= LAYER_PATH_MAX)
        return layer_failed(raw, -ENAMETOOLONG, "a link to a path over 4095 bytes", err);
    i->target = xstrdup(target);
    return 0;
}

static int set_type(struct archive_entry *e, struct item *i)
{
    switch (archive_entry_filetype(e)) {
    case AE_IFDIR:
        i->type = ITEM_DIR;
        return 0;
    case AE_IFREG:
        i->type = ITEM_FILE;
        return 0;
    case AE_IFLNK:
        i->type = ITEM_SYMLINK;
        return 0;
    case AE_IFIFO:
        i->type = ITEM_FIFO;
        return 0;
    default:
        return -ENODATA;
    }
}

static int set_numbers(struct archive_entry *e, const char *raw, struct item *i, struct err *err)
{
    la_int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);
    la_int64_t size = archive_entry_size(e), sec = archive_entry_mtime(e);
    long nsec = archive_entry_mtime_nsec(e);

    if (uid < 0 || uid > ID_MAX || gid < 0 || gid > ID_MAX)
        return layer_failed(raw, -EINVAL, "an owner that is no 32-bit number", err);
    if (size < 0)
        return layer_failed(raw, -EINVAL, "a size below zero", err);
    i->uid = (uint32_t)uid;
    i->gid = (uint32_t)gid;
    i->mode = (uint32_t)archive_entry_perm(e) & 07777;
    i->sec = sec < 0 ? 0 : MIN_OF(sec, SEC_MAX);
    i->nsec = nsec < 0 || nsec > 999999999 || sec != i->sec ? 0 : (uint32_t)nsec;
    i->size = i->type == ITEM_FILE ? (uint64_t)size : 0;
    return 0;
}

int layer_entry_item(struct archive_entry *e, const char *raw, struct item *ret, struct err *err)
{
    _cleanup_(item_done) struct item i = {0};
    const char *hardlink = archive_entry_hardlink(e);
    int r = 0;

    if (hardlink) {
        i.type = ITEM_HARDLINK;
        r = copy_target(hardlink, raw, &i, err);
    } else if (set_type(e, &i) < 0) {
        return -ENODATA;
    } else {
        r = set_numbers(e, raw, &i, err);
        if (r == 0)
            r = copy_xattrs(e, raw, &i, err);
        if (r == 0 && i.type == ITEM_SYMLINK)
            r = copy_target(archive_entry_symlink(e), raw, &i, err);
    }
    if (r < 0)
        return r;
    *ret = i;
    i = (struct item){0};
    return 0;
}
