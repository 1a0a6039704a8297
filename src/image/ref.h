/*
 * Image references: how people name images, and one form for each name. Accepted:
 *
 *   docker://HOST[:PORT]/NAME[:TAG][@DIGEST]     (the scheme may be left out)
 *   NAME[:TAG]                                   (a name in the cluster, or of Docker Hub)
 *   HOST[:PORT]#NAME[:TAG]                       (enroot's and pyxis' form)
 *
 * Grammar of the parts: the reference package of the "distribution" project.
 */
#ifndef IMAGE_REF_H
#define IMAGE_REF_H

#include "image/digest.h"
#include "model/session.h"

#define IMAGE_REF_HUB "docker.io" /* where names without a host are */

struct image_ref {
    char host[IMAGE_REF_MAX + 1]; /* with its port; "" when none was given */
    char name[IMAGE_REF_MAX + 1]; /* "library/ubuntu" */
    char tag[129];                /* "" only when there is a digest */
    char digest[DIGEST_TEXT_MAX]; /* "" none */
};

/* -EINVAL with what is wrong; a tag that is left out is "latest" unless there is a digest. */
int image_ref_parse(const char *text, struct image_ref *ret, struct err *err);
/* It is a reference as above, at most IMAGE_REF_MAX long, with clean text. */
int image_ref_check(const char *text, struct err *err);
/* "HOST/NAME:TAG@DIGEST", less what is not there: equal for equal references. A host that nobody
 * would take for one ("registry") stays in front of a "#". */
int image_ref_normal(const char *text, char ret[IMAGE_REF_MAX + 1], struct err *err);
/* Where it is: the registry's host, and the name there ("library/ubuntu"). Heap. */
const char *image_ref_host(const struct image_ref *ref);
char *image_ref_path(const struct image_ref *ref);

#endif
