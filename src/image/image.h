/*
 * An image of the cluster: an ordered list of read-only blobs and what its author wrote about
 * running it. Made by the program muster-import, whose output lines are read here; kept by the
 * manager, one store document an image.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "base/json.h"
#include "base/strv.h"
#include "image/ref.h"
#include "wire/assignment.h"

#define IMAGE_LAYERS_MAX 256
#define IMAGE_ENV_MAX 1024
#define IMAGE_WORDS_MAX 1024       /* of entrypoint and cmd each */
#define IMAGE_TEXT_MAX (64 * 1024) /* one word or one K=V */
#define IMAGE_LINE_MAX (4 * 1024 * 1024)

struct image {
    char id[DIGEST_TEXT_MAX];      /* digest of its config, or of the tar of a root file system */
    char name[IMAGE_REF_MAX + 1];  /* as image_ref_normal */
    struct assigned_layer *layers; /* lowest first */
    uint32_t layer_count;
    char **env; /* K=V */
    char **entrypoint, **cmd;
    char workdir[PATH_TEXT_MAX + 1];       /* "": none */
    char user[256];                        /* as written in the image; "": none */
    uint32_t stop_signal;                  /* 15 unless the image says otherwise */
    uint64_t size;                         /* bytes of all its blob files */
    bool pinned;                           /* never removed for space */
    uint64_t created_usec, last_used_usec; /* when imported, when a session used it; real time */
};

struct image *image_new(void);
void image_free(struct image *i);
void image_freep(struct image **i);

/* The whole, for the store; and what the API shows. */
json_t *image_to_json(const struct image *i);
json_t *image_public_json(const struct image *i);
/* Reads the stored form and a worker's "image" line alike (then without name and times). */
int image_from_json(const json_t *j, struct image **ret, struct err *err);

/* "SIGTERM", "TERM", "15" -> 15; "" -> 15. -EINVAL. */
int image_signal_parse(const char *text, uint32_t *ret, struct err *err);
/* "SIGTERM", or a number where there is no name. */
#define IMAGE_SIGNAL_TEXT_MAX 24
char *image_signal_format(uint32_t sig, char text[IMAGE_SIGNAL_TEXT_MAX]);

/* It brings a command of its own. */
bool image_has_command(const struct image *i);
/*
 * The words a container executes: Entrypoint, then what was asked, or Cmd when nothing was. *ret is
 * NULL (idle) for a debug session without a command. Heap. -EINVAL when a train session asks for
 * none and the image has none.
 */
int image_command(
    const struct image *i, char *const *asked, bool train, char ***ret, struct err *err);

/* One line of muster-import. */
enum image_line_type { IMAGE_LINE_PROGRESS, IMAGE_LINE_IMAGE, IMAGE_LINE_ERROR };

struct image_line {
    enum image_line_type type;
    char step[16];          /* progress: "fetch", "unpack", "pack" */
    uint32_t layer, layers; /* progress: 1-based; 0: not yet known */
    uint64_t bytes;         /* progress: done so far, of this layer and step */
    struct image *image;    /* image; owned */
    char text[1024];        /* error: for a person */
};

void image_line_done(struct image_line *l);
int image_line_parse(const char *text, size_t len, struct image_line *ret, struct err *err);

#endif
