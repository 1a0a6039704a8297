/*
 * What a container sees of its session: environment, /etc/hosts, hostfile. Each layer of the
 * environment replaces what a lower one said, and the identity comes last, so that neither an image
 * nor --env can make a container believe that it is another one.
 */
#include "base/buf.h"
#include "base/strv.h"
#include "model/ip.h"
#include "model/session.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_OURS "/opt/muster/bin"
#define HOSTFILE_PATH "/etc/muster/hostfile"
/* More than what we set ourselves, but for the list of names, which is there twice. */
#define OURS_WORDS 64
#define OURS_BYTES (8 * 1024)
#define LIST_ENTRY_BYTES (sizeof("sub999,") - 1)
/* A line of either file is shorter than 64 bytes. */
#define FILE_TEXT_MAX (64 * (SESSION_SIZE_MAX + 8))

static void set_number(char ***env, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%ju", (uintmax_t)value);
    strv_env_set(env, key, text);
}

/* Ours comes last: a program of the image by the same name wins. */
static void add_image(char ***env, char *const *image_env)
{
    _cleanup_free_ char *path = NULL;
    const char *of_image = strv_env_get(image_env, "PATH");

    path = xasprintf("%s:" PATH_OURS, str_is_empty(of_image) ? PATH_DEFAULT : of_image);
    strv_env_set(env, "PATH", path);
    for (; image_env && *image_env; image_env++) {
        const char *equals = strchr(*image_env, '=');
        _cleanup_free_ char *key = NULL;

        if (!equals || equals == *image_env)
            continue; /* not a variable: an image may hold anything */
        key = xstrndup(*image_env, (size_t)(equals - *image_env));
        if (!str_eq(key, "PATH"))
            strv_env_set(env, key, equals + 1);
    }
}

static void add_defaults(char ***env, const struct session *s, const struct container *c)
{
    strv_env_set(env, "HOME", "/home/work");
    strv_env_set(env, "USER", "work");
    strv_env_set(env, "LOGNAME", "work");
    if (!strv_env_get(*env, "LANG"))
        strv_env_set(env, "LANG", "C.UTF-8");
    strv_env_set(env, "MASTER_ADDR", s->containers[0].name);
    set_number(env, "MASTER_PORT", s->master_port);
    /* For launchers a container is a "node". */
    set_number(env, "NNODES", s->size);
    set_number(env, "NODE_RANK", c->rank);
    set_number(env, "WORLD_SIZE", s->size);
    set_number(env, "RANK", c->rank);
    set_number(env, "OMP_NUM_THREADS", MAX_OF(1u, s->each.cpu_milli / 1000));
    strv_env_set(env, "OMPI_MCA_orte_default_hostfile", HOSTFILE_PATH);
    strv_env_set(env, "PRTE_MCA_prte_default_hostfile", HOSTFILE_PATH);
}

static void add_users(char ***env, char *const *users)
{
    for (; users && *users; users++) {
        const char *equals = strchr(*users, '=');
        _cleanup_free_ char *key = NULL;

        assert(equals); /* session_request_check */
        key = xstrndup(*users, (size_t)(equals - *users));
        strv_env_set(env, key, equals + 1);
    }
}

/* The same variable under Backend.AI's name and ours. */
static void set_identity(char ***env, const char *name, const char *value)
{
    _cleanup_free_ char *theirs = xasprintf("BACKENDAI_%s", name);
    _cleanup_free_ char *ours = xasprintf("MUSTER_%s", name);

    strv_env_set(env, theirs, value);
    strv_env_set(env, ours, value);
}

static void set_identity_number(char ***env, const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    set_identity(env, name, text);
}

static char *join_names(const struct session *s)
{
    _cleanup_(strv_freep) char **names = NULL;

    for (uint32_t i = 0; i < s->size; i++)
        strv_push(&names, s->containers[i].name);
    return strv_join(names, ",");
}

static void add_identity(char ***env, const struct session *s, const struct container *c)
{
    _cleanup_free_ char *names = join_names(s);

    set_identity(env, "CLUSTER_HOST", c->name);
    set_identity(env, "CLUSTER_HOSTS", names);
    set_identity_number(env, "CLUSTER_IDX", container_role_idx(c));
    set_identity(env, "CLUSTER_MODE", session_mode_name(s->placed_mode));
    set_identity(env, "CLUSTER_ROLE", container_is_main(c) ? "main" : "sub");
    set_identity_number(env, "CLUSTER_SIZE", s->size);
    set_identity_number(env, "CLUSTER_LOCAL_RANK", c->rank);
    set_identity(env, "KERNEL_ID", c->id);
    set_identity(env, "SESSION_ID", s->id);
    strv_env_set(env, "MUSTER_SESSION_NAME", s->name);
    set_number(env, "MUSTER_JOB_ID", s->num);
}

char **session_environment(const struct session *s, const struct container *c,
    char *const *image_env, const char *gpu_uuids)
{
    char **env = NULL;

    add_image(&env, image_env);
    add_defaults(&env, s, c);
    add_users(&env, s->env);
    add_identity(&env, s, c);
    if (gpu_uuids) /* "void": none, and none of what an image's "all" would ask for */
        strv_env_set(&env, "NVIDIA_VISIBLE_DEVICES", gpu_uuids[0] ? gpu_uuids : "void");
    return env;
}

static size_t bytes_of(char *const *words)
{
    size_t n = 0;

    for (; words && *words; words++)
        n += strlen(*words) + 1;
    return n;
}

/* As they stand in sshd's configuration: a space, quotes, and what quotes cost inside. */
static size_t quoted_bytes_of(char *const *env)
{
    size_t n = bytes_of(env) + 2 * strv_len(env);

    for (; env && *env; env++)
        for (const char *c = *env; *c; c++)
            n += *c == '"' || *c == '\\';
    return n;
}

/* Variables that several say are counted for each: that is on the safe side. */
int session_environment_check(
    const struct session *s, char *const *image_env, char *const *command, struct err *err)
{
    size_t most = CONTAINER_ENV_BYTES_MAX - OURS_BYTES - 2 * LIST_ENTRY_BYTES * (size_t)s->size;
    size_t words = strv_len(image_env) + strv_len(s->env);
    size_t bytes = quoted_bytes_of(image_env) + quoted_bytes_of(s->env);

    if (words + OURS_WORDS > CONTAINER_ENV_MAX)
        return err_set(err, -EINVAL,
            "image '%s' and 'env' set %zu variables; at most %d are taken together", s->image,
            words, CONTAINER_ENV_MAX - OURS_WORDS);
    if (bytes > most)
        return err_set(err, -EINVAL,
            "the variables of image '%s' and of 'env' have %zu bytes; at most %zu are taken "
            "together",
            s->image, bytes, most);
    if (strv_len(command) > SESSION_COMMAND_MAX || bytes_of(command) > CONTAINER_COMMAND_BYTES_MAX)
        return err_set(err, -EINVAL,
            "the command with that of image '%s' has %zu words of %zu bytes; at most %d of %d are "
            "taken",
            s->image, strv_len(command), bytes_of(command), SESSION_COMMAND_MAX,
            CONTAINER_COMMAND_BYTES_MAX);
    return 0;
}

char *session_hosts(const struct session *s)
{
    struct buf text = BUF_INIT(FILE_TEXT_MAX);
    char ip[IPV4_TEXT_MAX];

    buf_puts(&text,
        "127.0.0.1 localhost\n"
        "::1 localhost ip6-localhost ip6-loopback\n");
    for (uint32_t i = 0; i < s->size; i++)
        buf_printf(&text, "%s %s\n", ipv4_format(s->containers[i].ip, ip), s->containers[i].name);
    return buf_take(&text);
}

char *session_hostfile(const struct session *s)
{
    struct buf text = BUF_INIT(FILE_TEXT_MAX);
    uint32_t slots = s->each.gpus ? s->each.gpus : MAX_OF(1u, s->each.cpu_milli / 1000);

    for (uint32_t i = 0; i < s->size; i++)
        buf_printf(&text, "%s slots=%u\n", s->containers[i].name, slots);
    return buf_take(&text);
}
