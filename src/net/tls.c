/*
 * TLS settings of servers and of clients. Owns those of clients, so that each of many connections
 * to the same host does not read the files again.
 */
#include "net/tls.h"

#include <sys/stat.h>

#include "base/str.h"

struct tls_client {
    struct list link;
    char *key; /* host and the identity of the files */
    struct tls_config *config;
};

void tls_config_free(struct tls_config *config)
{
    if (config)
        config->ops->config_free(config);
}

int tls_server(const struct tls_files *files, const struct tls_named *named,
    struct tls_config **ret, struct err *err)
{
    const struct tls_ops *ops;
    int r = tls_load(&ops, err);

    return r < 0 ? r : ops->config_server(files, named, ret, err);
}

/* A file that was replaced has another identity. */
static char *file_identity(const char *path)
{
    struct stat st;

    if (!path || stat(path, &st) < 0)
        return xstrdup("-");
    return xasprintf("%s %ju %ju %jd.%09ld", path, (uintmax_t)st.st_ino, (uintmax_t)st.st_size,
        (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static char *key_of(const char *host, const struct tls_files *files)
{
    _cleanup_free_ char *ca = file_identity(files->ca_path);
    _cleanup_free_ char *cert = file_identity(files->cert_path);
    _cleanup_free_ char *key = file_identity(files->key_path);

    return xasprintf("%s\n%s\n%s\n%s", host, ca, cert, key);
}

static struct tls_client *find(struct net *net, const char *key)
{
    list_for_each (it, &net->tls) {
        struct tls_client *c = LIST_ENTRY(it, struct tls_client, link);

        if (str_eq(c->key, key))
            return c;
    }
    return NULL;
}

static int add(struct net *net, const char *key, const char *host, const struct tls_files *files,
    struct tls_client **ret, struct err *err)
{
    const struct tls_ops *ops;
    struct tls_config *config = NULL;
    int r = tls_load(&ops, err);

    if (r == 0)
        r = ops->config_client(host, files, &config, err);
    if (r < 0)
        return r;
    *ret = xnew(struct tls_client);
    (*ret)->key = xstrdup(key);
    (*ret)->config = config;
    list_append(&net->tls, &(*ret)->link);
    return 0;
}

int tls_client(struct net *net, const char *host, const struct tls_files *files,
    struct tls_config **ret, struct err *err)
{
    _cleanup_free_ char *key = key_of(host, files);
    struct tls_client *c = find(net, key);
    int r = c ? 0 : add(net, key, host, files, &c, err);

    if (r < 0)
        return r;
    *ret = c->config;
    return 0;
}

void tls_clients_free(struct net *net)
{
    list_for_each_safe (it, &net->tls) {
        struct tls_client *c = LIST_ENTRY(it, struct tls_client, link);

        list_remove(it);
        tls_config_free(c->config);
        free(c->key);
        free(c);
    }
}
