/* Inside of the EROFS writer: what is kept in the arena about every inode and name. */
#ifndef IMAGE_EROFS_WRITE_H
#define IMAGE_EROFS_WRITE_H

#include "image/arena.h"
#include "image/erofs.h"
#include "image/erofs_format.h"

#define EROFS_CHUNK (128u * 1024) /* content that is compressed as one */
#define EROFS_OUT (1024u * 1024)

struct erofs_name;

struct erofs_file { /* an inode */
    uint64_t nid;   /* 0: has no place yet */
    uint64_t size;  /* of a folder: known when it is laid out */
    int64_t sec;
    uint32_t nsec, uid, gid, nlink;
    uint16_t mode; /* with the type's bits */
    uint8_t layout;
    uint32_t xattr_len;
    void *xattrs; /* as on disk, without the header */
    union {
        char *tail;                /* EROFS_INLINE: the content */
        struct erofs_index *index; /* EROFS_COMPRESSED */
        struct erofs_name *names;  /* of a folder: its first */
    };
    uint32_t where; /* as struct erofs_inode has it */
    uint32_t name_count;
    struct erofs_file *parent; /* of a folder; the root's is itself */
    struct erofs_name **order; /* of a folder: its names sorted, while it is written */
};

struct erofs_name {
    struct erofs_file *dir, *file; /* file NULL: was dropped */
    struct erofs_name *chain;      /* of the hash table */
    struct erofs_name *next;       /* in the folder */
    uint16_t len;
    char text[];
};

struct erofs_out { /* content of files, in the order they come */
    int fd;
    char *buf;
    size_t len;
    uint32_t block;          /* the next one, counting what is in buf */
    uint64_t written, begun; /* bytes; of these on their way to the disk */
};

struct erofs_chunk { /* of the file that is open */
    char *buf;
    size_t len;
    uint64_t at;      /* content in front of buf */
    uint64_t zeros;   /* ... that ends with so many zeros not yet written */
    uint32_t first;   /* block of the first chunk */
    bool all_stored;  /* nothing could be compressed so far */
    uint32_t on_disk; /* blocks */
};

struct erofs_writer {
    struct sink sink;
    struct arena arena;
    struct erofs_out out;
    struct erofs_chunk chunk;
    struct erofs_file *root, *open; /* open: the file whose content comes */
    uint64_t open_got;              /* of a small one: its bytes that came */
    struct erofs_name **table;
    size_t table_size, name_count, inode_count;
};

static inline uint32_t erofs_blocks(uint64_t bytes)
{
    return (uint32_t)((bytes + EROFS_BLOCK - 1) / EROFS_BLOCK);
}

/* erofs_data.c: content of the open file, which is too large to stand beside its inode. */
int erofs_content_begin(struct erofs_writer *w, struct err *err);
int erofs_content_add(
    struct erofs_writer *w, const void *p, size_t n, uint64_t off, struct err *err);
int erofs_content_end(struct erofs_writer *w, struct err *err);
/* Whole blocks; zeros are added behind. */
int erofs_out_put(struct erofs_out *o, const void *p, size_t n, struct err *err);
int erofs_out_flush(struct erofs_out *o, struct err *err);

/* erofs_meta.c: everything else, when all names are there. */
int erofs_meta_write(struct erofs_writer *w, struct err *err);

int erofs_disk_full(struct err *err);

#endif
