/*
 * The on-disk format of EROFS, as far as it is written here (Linux: fs/erofs/erofs_fs.h). All
 * numbers are little-endian. Nothing here is newer than Linux 5.13.
 */
#ifndef IMAGE_EROFS_FORMAT_H
#define IMAGE_EROFS_FORMAT_H

#include <stdint.h>

#define EROFS_BLOCK 4096u
#define EROFS_BLOCK_BITS 12
#define EROFS_SUPER_AT 1024
#define EROFS_MAGIC UINT32_C(0xe0f5e1e2)
#define EROFS_SLOT 32 /* inodes stand at multiples of it; a nid is the number of the slot */

#define EROFS_COMPAT_MTIME 2u
#define EROFS_INCOMPAT_LZ4_0PADDING 1u /* compressed data end with their block */
#define EROFS_INCOMPAT_BIG_PCLUSTER 2u /* several blocks compressed as one; a configuration too */

struct erofs_super {
    uint32_t magic, checksum, compat;
    uint8_t block_bits, ext_slots;
    uint16_t root_nid;
    uint64_t inodes, build_time;
    uint32_t build_nsec, blocks, meta_block, xattr_block;
    uint8_t uuid[16], volume_name[16];
    uint32_t incompat;
    uint16_t algorithms; /* bit 0: LZ4 */
    uint8_t reserved[42];
    /* Behind the super block proper, one for each algorithm: */
    uint16_t lz4_config_size, lz4_max_distance, lz4_max_blocks;
    uint8_t lz4_reserved[10];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_super) == 128 + 2 + 14, "super block and the LZ4 configuration");

enum erofs_layout { EROFS_PLAIN = 0, EROFS_COMPRESSED = 1, EROFS_INLINE = 2 };

struct erofs_inode { /* the extended form */
    uint16_t format; /* 1 | layout << 1 */
    uint16_t xattr_count;
    uint16_t mode, reserved;
    uint64_t size;
    uint32_t where; /* plain, inline: first block; compressed: count of blocks; device: number */
    uint32_t ino, uid, gid;
    uint64_t mtime;
    uint32_t mtime_nsec, nlink;
    uint8_t reserved2[16];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_inode) == 64, "an extended inode");

#define EROFS_NO_BLOCK UINT32_MAX

struct erofs_dirent {
    uint64_t nid;
    uint16_t name_at;
    uint8_t type, reserved;
} __attribute__((packed));

enum {
    EROFS_FT_FILE = 1,
    EROFS_FT_DIR,
    EROFS_FT_CHR,
    EROFS_FT_BLK,
    EROFS_FT_FIFO,
    EROFS_FT_SOCK,
    EROFS_FT_LINK
};

struct erofs_xattr_header {
    uint32_t filter;
    uint8_t shared_count, reserved[7];
} __attribute__((packed));

struct erofs_xattr { /* then the name without its prefix, then the value; multiples of 4 bytes */
    uint8_t name_len, prefix;
    uint16_t value_len;
} __attribute__((packed));

/* Behind an inode and its attributes, 8-byte aligned, when its content is compressed; then 8 bytes
 * of nothing, then an index of 8 bytes for each block of content. */
struct erofs_map_header {
    uint16_t reserved, inline_size;
    uint16_t advise;
    uint8_t algorithms, cluster_bits;
} __attribute__((packed));

#define EROFS_ADVISE_BIG_PCLUSTER 2u

struct erofs_index {
    uint16_t type; /* below */
    uint16_t offset;
    union {
        uint32_t block;    /* EROFS_STORED, EROFS_HEAD */
        uint16_t delta[2]; /* EROFS_BEHIND: blocks back to the head, on to the next */
    };
} __attribute__((packed));

enum erofs_index_type { EROFS_STORED = 0, EROFS_HEAD = 1, EROFS_BEHIND = 2 };
#define EROFS_DELTA_BLOCKS \
    2048u /* | in delta[0] of the first behind a head: its length on disk \
           */

#endif
