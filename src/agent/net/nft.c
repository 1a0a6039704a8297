/*
 * Owns the use of libnftables. A context costs 0.05 ms (1 ms for the process's first), a
 * transaction of ours 0.2 ms, and a context's sockets belong to the namespace it was made in: so
 * each call makes its own. The library keeps process-wide state (its cache of interfaces, the
 * allocator of its big numbers): one call at a time.
 */
#include "agent/net/nft.h"

#include <nftables/libnftables.h>
#include <pthread.h>

#include "base/str.h"

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static void unlock(pthread_mutex_t **m)
{
    pthread_mutex_unlock(*m);
}

static void context_freep(struct nft_ctx **c)
{
    if (*c)
        nft_ctx_free(*c);
}

/* The first line of the library's complaint is the one that says it. */
static int complain(struct nft_ctx *c, int code, struct err *err)
{
    const char *text = nft_ctx_get_error_buffer(c);
    size_t n = text ? strcspn(text, "\n") : 0;

    return err_set(
        err, code, "nft: %.*s", n ? (int)MIN_OF(n, 200) : 12, n ? text : "no reason given");
}

static int run(const char *text, char **ret_output, int code, struct err *err)
{
    _cleanup_(unlock) pthread_mutex_t *m = &library;
    _cleanup_(context_freep) struct nft_ctx *c = NULL;

    pthread_mutex_lock(m);
    c = nft_ctx_new(NFT_CTX_DEFAULT);
    if (!c)
        return err_set(err, -EIO, "cannot open nftables");
    if (nft_ctx_buffer_error(c) || nft_ctx_buffer_output(c))
        return err_set(err, -EIO, "cannot make nftables' buffers");
    nft_ctx_output_set_flags(c, NFT_CTX_OUTPUT_STATELESS | NFT_CTX_OUTPUT_NUMERIC_ALL);
    if (nft_run_cmd_from_buffer(c, text) != 0)
        return complain(c, code, err);
    if (ret_output)
        *ret_output = xstrdup(nft_ctx_get_output_buffer(c));
    return 0;
}

int nft_apply(const char *text, struct err *err)
{
    return run(text, NULL, -EIO, err);
}

int nft_list_table(const char *family_and_name, char **ret, struct err *err)
{
    _cleanup_free_ char *command = xasprintf("list table %s", family_and_name);
    _cleanup_free_ char *text = NULL;
    int r = run(command, &text, -ENOENT, err);

    if (r < 0)
        return r;
    if (str_is_empty(text))
        return err_set(err, -ENOENT, "nft: no table '%s'", family_and_name);
    *ret = TAKE_PTR(text);
    return 0;
}
