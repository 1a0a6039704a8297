/*
 * GPUs by NVML. Only the few functions that are needed, with prototypes of our own, so that neither
 * the library nor its header is needed to build.
 */
#include "agent/ct/nvml.h"

#include <ctype.h>
#include <dlfcn.h>

#define NVML_SUCCESS 0
/* nvmlGpuTopologyLevel_t: the same NUMA domain, or nearer. */
#define TOPOLOGY_NODE 40
/* nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t */
#define P2P_NVLINK 2
#define P2P_OK 0

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml {
    void *lib;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, void **device);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*name)(void *device, char *text, unsigned size);
    int (*memory)(void *device, struct nvml_memory *memory);
    /* Newer; NULL where they are not. */
    int (*ancestor)(void *device, void *other, int *level);
    int (*p2p)(void *device, void *other, int what, int *status);
};

static bool load(struct nvml *n)
{
    /* clang-format off */
    const struct { const char *symbol; void *to; bool optional; } wanted[] = {
        { "nvmlInit_v2", &n->init },
        { "nvmlShutdown", &n->shutdown },
        { "nvmlDeviceGetCount_v2", &n->count },
        { "nvmlDeviceGetHandleByIndex_v2", &n->handle },
        { "nvmlDeviceGetUUID", &n->uuid },
        { "nvmlDeviceGetName", &n->name },
        { "nvmlDeviceGetMemoryInfo", &n->memory },
        { "nvmlDeviceGetTopologyCommonAncestor", &n->ancestor, true },
        { "nvmlDeviceGetP2PStatus", &n->p2p, true },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        void *symbol = dlsym(n->lib, wanted[i].symbol);

        if (!symbol && !wanted[i].optional)
            return false;
        memcpy(wanted[i].to, &symbol, sizeof(symbol));
    }
    return true;
}

static bool is_noise(const char *word)
{
    static const char *const noise[] = {"nvidia", "tesla", "geforce", "quadro", "graphics"};

    for (size_t i = 0; i < ARRAY_LEN(noise); i++)
        if (str_eq(word, noise[i]))
            return true;
    return false;
}

/* Words that belong to the number before or behind them. */
static bool is_series(const char *word)
{
    return str_eq(word, "rtx") || str_eq(word, "gtx") || str_eq(word, "titan");
}

static bool is_suffix(const char *word)
{
    return str_eq(word, "ti") || str_eq(word, "super") || str_eq(word, "ada");
}

/* The next word, lower case, of letters and digits. */
static const char *next_word(const char *at, char word[32])
{
    size_t n = 0;

    while (*at && !isalnum((unsigned char)*at))
        at++;
    for (; isalnum((unsigned char)*at); at++)
        if (n < 31)
            word[n++] = (char)tolower((unsigned char)*at);
    word[n] = '\0';
    return at;
}

void gpu_model_name(const char *product, char model[NAME_MAX_LEN + 1])
{
    bool open = true; /* the next word still belongs to the name */
    size_t n = 0;
    char word[32];

    for (product = next_word(product, word); *word; product = next_word(product, word)) {
        if (n == 0 && is_noise(word))
            continue;
        if (!open && !is_suffix(word))
            break;
        n += (size_t)snprintf(model + n, NAME_MAX_LEN + 1 - n, "%s", word);
        if (n >= 32)
            break;
        open = is_series(word);
    }
    if (n == 0)
        snprintf(model, NAME_MAX_LEN + 1, "gpu");
}

static int read_one(const struct nvml *n, uint32_t i, struct gpu *g, struct err *err)
{
    struct nvml_memory memory;
    char product[128] = "";
    void *device;

    if (n->handle(i, &device) != NVML_SUCCESS ||
        n->uuid(device, g->uuid, sizeof(g->uuid)) != NVML_SUCCESS ||
        n->name(device, product, sizeof(product)) != NVML_SUCCESS ||
        n->memory(device, &memory) != NVML_SUCCESS)
        return err_set(err, -EIO, "NVML does not tell about GPU %u", i);
    g->index = i;
    g->mem = memory.total;
    g->healthy = true;
    gpu_model_name(product, g->model);
    return 0;
}

static bool shares_numa(const struct nvml *n, void *a, void *b)
{
    int level;

    return n->ancestor && n->ancestor(a, b, &level) == NVML_SUCCESS && level <= TOPOLOGY_NODE;
}

static bool has_nvlink(const struct nvml *n, void *a, void *b)
{
    int status;

    return n->p2p && n->p2p(a, b, P2P_NVLINK, &status) == NVML_SUCCESS && status == P2P_OK;
}

/* Each GPU joins the first one before it that is near, or has a number of its own. */
static void read_nearness(const struct nvml *n, struct gpu *gpus, uint32_t count)
{
    void *a, *b;

    for (uint32_t i = 0; i < count; i++) {
        gpus[i].numa = n->ancestor ? i + 1 : 0;
        gpus[i].nvlink = n->p2p ? i + 1 : 0;
        for (uint32_t k = i; k-- > 0 && n->handle(i, &a) == NVML_SUCCESS;) {
            if (n->handle(k, &b) != NVML_SUCCESS)
                continue;
            if (shares_numa(n, a, b))
                gpus[i].numa = gpus[k].numa;
            if (has_nvlink(n, a, b))
                gpus[i].nvlink = gpus[k].nvlink;
        }
    }
}

static int read_all(const struct nvml *n, struct gpu **ret, uint32_t *ret_count, struct err *err)
{
    _cleanup_free_ struct gpu *gpus = NULL;
    unsigned count;

    if (n->count(&count) != NVML_SUCCESS)
        return err_set(err, -EIO, "NVML does not count the GPUs");
    if (count > NODE_GPUS_MAX)
        return err_set(err, -E2BIG, "%u GPUs are more than %d", count, NODE_GPUS_MAX);
    gpus = xnew_array(struct gpu, count);
    for (uint32_t i = 0; i < count; i++) {
        int r = read_one(n, i, &gpus[i], err);

        if (r < 0)
            return r;
    }
    read_nearness(n, gpus, count);
    *ret = TAKE_PTR(gpus);
    *ret_count = count;
    return 0;
}

int nvml_discover(struct gpu **ret, uint32_t *ret_count, struct err *err)
{
    struct nvml n = {.lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    int r;

    if (!n.lib)
        return err_set(err, -ENOENT, "libnvidia-ml.so.1 is not there");
    if (!load(&n)) {
        r = err_set(err, -ENOENT, "libnvidia-ml.so.1 is too old");
    } else if (n.init() != NVML_SUCCESS) {
        r = err_set(err, -EIO, "NVML finds no driver");
    } else {
        r = read_all(&n, ret, ret_count, err);
        n.shutdown();
    }
    dlclose(n.lib);
    return r;
}
