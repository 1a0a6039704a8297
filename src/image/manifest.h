/*
 * The JSON documents around an image, parsed and checked: OCI image index, manifest and config
 * (image-spec v1.1), Docker's schema 2 forms of them, and the manifest.json of "docker save".
 * Pure: text in, structs out. Everything here was written by strangers.
 */
#ifndef IMAGE_MANIFEST_H
#define IMAGE_MANIFEST_H

#include "image/image.h"

#define MANIFEST_MAX_BYTES (4 * 1024 * 1024)

struct blob_ref { /* OCI "descriptor" */
    char digest[DIGEST_TEXT_MAX];
    uint64_t size;
};

/* An index or a manifest, told apart by what it holds. */
struct manifest {
    bool is_index;
    struct blob_ref next;    /* index: the entry for our platform */
    bool next_is_index;      /* its media type says so */
    struct blob_ref config;  /* manifest */
    struct blob_ref *layers; /* manifest: lowest first; heap */
    uint32_t layer_count;
};

void manifest_done(struct manifest *m);
/*
 * arch: Go's name of it ("amd64"). -ENOENT when the index has no entry for linux/ARCH, with what it
 * has; -EINVAL when it has several; media types of layers that are not (compressed) tars are
 * refused.
 */
int manifest_parse(
    const char *text, size_t len, const char *arch, struct manifest *ret, struct err *err);

struct image_config {
    char (*diff_ids)[DIGEST_TEXT_MAX]; /* heap */
    uint32_t layer_count;
    struct image *run; /* env, entrypoint, cmd, workdir, user, stop_signal; nothing else set */
};

void image_config_done(struct image_config *c);
/* -EINVAL also when it is for another system or architecture. */
int image_config_parse(
    const char *text, size_t len, const char *arch, struct image_config *ret, struct err *err);

/* manifest.json of a docker-archive: member names. One image only: -EINVAL when it holds several.
 */
struct docker_manifest {
    char *config;
    char **layers;
    char *name; /* the first of RepoTags, or NULL */
};

void docker_manifest_done(struct docker_manifest *m);
int docker_manifest_parse(
    const char *text, size_t len, struct docker_manifest *ret, struct err *err);

/* The architecture we run on, by Go's name. */
const char *manifest_host_arch(void);

#endif
