/*
 * Finds and opens muster-tls.so: in a build tree beside the program's own folder, and where it is
 * installed. Owns the loaded module, for as long as the process lives.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "base/proc.h"
#include "base/str.h"
#include "net/tls_ops.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct tls_ops *loaded;
static const char *named;

void tls_load_from(const char *path)
{
    named = path;
}

/* ".../src/cli" -> ".../src/net/muster-tls.so"; NULL where the program is in no build tree. */
static char *in_build_tree(const char *own)
{
    const char *slash = strrchr(own, '/');
    _cleanup_free_ char *parent = slash ? xstrndup(own, (size_t)(slash - own)) : NULL;

    return str_ends(parent ? parent : "", "/src") ? xasprintf("%s/net/" TLS_MODULE_NAME, parent)
                                                  : NULL;
}

static char *find(void)
{
    _cleanup_free_ char *own = proc_own_folder();
    char *places[] = {
        named ? xstrdup(named) : NULL,
        in_build_tree(own),
        own[0] ? xasprintf("%s/../" TLS_MODULE_FOLDER "/" TLS_MODULE_NAME, own) : NULL,
        own[0] ? xasprintf("%s/../../" TLS_MODULE_FOLDER "/" TLS_MODULE_NAME, own) : NULL,
        xstrdup(TLS_MODULE_PREFIX "/" TLS_MODULE_FOLDER "/" TLS_MODULE_NAME),
    };
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!found && places[i] && access(places[i], R_OK) == 0)
            found = xstrdup(places[i]);
        free(places[i]);
    }
    return found;
}

static int missing(struct err *err, const char *why)
{
    return err_set(err, -ENOSYS,
        "TLS needs Muster's module '" TLS_MODULE_NAME "' in " TLS_MODULE_PREFIX
        "/" TLS_MODULE_FOLDER " and OpenSSL 3 (Debian's package libssl3): %s",
        why);
}

static int load(struct err *err)
{
    _cleanup_free_ char *path = find();
    const struct tls_ops *ops;
    const char *why;
    void *module;

    if (!path)
        return missing(err, "there is no such file");
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module) {
        why = dlerror();
        return missing(err, why ? why : path);
    }
    ops = dlsym(module, TLS_MODULE_SYMBOL);
    if (!ops || ops->size != sizeof(*ops) || !str_eq(ops->version, MUSTER_VERSION)) {
        dlclose(module);
        return missing(err, "the one that is there is of another version");
    }
    loaded = ops;
    return 0;
}

int tls_load(const struct tls_ops **ret, struct err *err)
{
    int r = 0;

    pthread_mutex_lock(&lock);
    if (!loaded)
        r = load(err);
    *ret = loaded;
    pthread_mutex_unlock(&lock);
    return r;
}
