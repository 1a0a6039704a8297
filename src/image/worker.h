/*
 * The conversion of one layer in a process of its own that has no rights: it has the descriptors of
 * what it reads and writes, and a socket for progress, for what lies below, and for its result.
 */
#ifndef IMAGE_WORKER_H
#define IMAGE_WORKER_H

#include <sys/types.h>

#include "image/layer.h"

enum worker_task {
    WORKER_CONVERT,
    WORKER_PROVE, /* only the digests: the blob is here already */
};

struct worker_opts {
    enum worker_task task;
    const struct piece *piece;
    int blob;            /* empty file to write; WORKER_CONVERT */
    const char *scratch; /* folder for a file, used before rights are given up */
    struct layer_limits limits;
    uint64_t stream_max; /* decompressed bytes */
    bool skip_plain;     /* WORKER_PROVE: the packed digest is enough */
};

struct worker_result {
    struct layer_result layer;
    char packed[DIGEST_TEXT_MAX], plain[DIGEST_TEXT_MAX]; /* plain "": not computed */
    bool asked_below;
};

/* What a worker says. */
enum worker_says {
    WORKER_PROGRESS, /* bytes */
    WORKER_LOOKUP,   /* path; a reply is due */
    WORKER_OPEN,     /* path; a reply is due */
    WORKER_ROOT,     /* a reply is due */
    WORKER_DONE,     /* result */
    WORKER_FAILED,   /* err */
};

struct worker_message {
    enum worker_says says;
    uint64_t bytes;
    char path[LAYER_PATH_MAX];
    struct worker_result result;
    struct err err;
};

/* Starts one. *ret_socket is the other end, *ret_pid to be reaped. */
int worker_start(const struct worker_opts *opts, pid_t *ret_pid, int *ret_socket, struct err *err);
/* The next message; blocks shortly. -EPIPE: it is gone. -EPROTO: it says nonsense. */
int worker_read(int socket, struct worker_message *ret, struct err *err);
/* Replies. result < 0: that error instead. */
int worker_reply_item(int socket, int result, const struct item *i, const struct err *why);
int worker_reply_fd(int socket, int fd, const struct err *why);
int worker_reply_root(int socket, const struct layer_root *root);

#endif
