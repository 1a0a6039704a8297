/*
 * What a request may say about a session: ranges, and that its parts agree with each other. The
 * texts are answers to a person: they name the member, what it may be, and what was said. Nothing
 * here knows the cluster (group, image and volumes exist? the manager looks).
 */
#include "base/clock.h"
#include "base/strv.h"
#include "model/node.h"
#include "model/path.h"
#include "model/session.h"

#define CPUS_MILLI_MIN 10
#define CPUS_MILLI_MAX 4096000
#define MEM_MIN (UINT64_C(16) << 20) /* init, sshd and a shell */
#define MEM_MAX (UINT64_C(1) << 50)
#define SHM_MIN (UINT64_C(64) << 10)
#define TIME_LIMIT_MAX (UINT64_C(10) * 365 * 86400 * USEC_PER_SEC)
#define GRACE_MAX (UINT64_C(3600) * USEC_PER_SEC)
/* execve(2): the kernel takes 128 KiB in one string; far less leaves room for ours, and keeps an
 * order for a node with a hundred containers within bounds. */
#define WORDS_BYTES_MAX (128 * 1024)

static int check_name(const struct session *s, struct err *err)
{
    uint64_t num;

    if (!s->name[0])
        return 0; /* the manager gives one */
    if (str_to_u64(s->name, UINT64_MAX, &num) != -EINVAL)
        return err_set(err, -EINVAL,
            "'name' must have something beside digits ('%s' would read as a job number)", s->name);
    if (uuid_is_valid(s->name))
        return err_set(err, -EINVAL, "'name' must not have the form of a session id");
    return name_check("'name'", s->name, err);
}

static int check_memory(const struct session *s, struct err *err)
{
    char mem[SIZE_TEXT_MAX], shm[SIZE_TEXT_MAX];

    if (s->each.mem < MEM_MIN || s->each.mem > MEM_MAX)
        return err_set(err, -EINVAL, "'mem' must be from 16 MiB to 1024 TiB, not %s",
            size_format(s->each.mem, mem));
    if (s->shm < SHM_MIN || s->shm > s->each.mem)
        return err_set(err, -EINVAL,
            "'shm' must be from 64 KiB to what 'mem' is (%s, of which it is a part), not %s",
            size_format(s->each.mem, mem), size_format(s->shm, shm));
    return 0;
}

static bool is_lower_case(const char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            return false;
    return true;
}

/* "h100", "a100|h100" */
static int check_models(const char *wish, struct err *err)
{
    _cleanup_(strv_freep) char **models = strv_split(wish, '|');
    int r = 0;

    strv_for_each (model, models)
        r = r < 0 ? r : name_check("'gpu_model'", *model, err);
    return r;
}

static int check_gpus(const struct session *s, struct err *err)
{
    if (s->each.gpus > NODE_GPUS_MAX)
        return err_set(err, -EINVAL, "'gpus' must be a whole number from 0 to %d, not %u",
            NODE_GPUS_MAX, s->each.gpus);
    if (!s->gpu_model[0])
        return 0;
    if (s->each.gpus == 0)
        return err_set(
            err, -EINVAL, "'gpu_model' is '%s', but 'gpus' is 0: say how many", s->gpu_model);
    if (!is_lower_case(s->gpu_model))
        return err_set(err, -EINVAL, "'gpu_model' must be in lower case, not '%s'", s->gpu_model);
    return check_models(s->gpu_model, err);
}

static int check_schedule(const struct session *s, struct err *err)
{
    if (s->nice < -SESSION_NICE_MAX || s->nice > SESSION_NICE_MAX)
        return err_set(err, -EINVAL, "'nice' must be a whole number from -%d to %d, not %d",
            SESSION_NICE_MAX, SESSION_NICE_MAX, s->nice);
    if (s->retry_max && s->kind == KIND_DEBUG)
        return err_set(err, -EINVAL,
            "'retry' is for 'train' sessions: what somebody did by hand is not done again");
    if ((s->spot || s->requeue) && s->kind == KIND_DEBUG)
        return err_set(err, -EINVAL,
            "'%s' is for 'train' sessions: a 'debug' session never leaves for others",
            s->spot ? "spot" : "requeue");
    if (s->finish_usec && s->begin_usec + s->time_limit_usec > s->finish_usec)
        return err_set(err, -EINVAL,
            "'finish_by' is before 'begin' and 'time_limit' together: it could not be over by "
            "then");
    return 0;
}

static int check_resources(const struct session *s, struct err *err)
{
    struct resources total;
    int r;

    if (s->size < 1 || s->size > SESSION_SIZE_MAX)
        return err_set(err, -EINVAL, "'size' must be a whole number from 1 to %d, not %u",
            SESSION_SIZE_MAX, s->size);
    if (s->each.cpu_milli < CPUS_MILLI_MIN || s->each.cpu_milli > CPUS_MILLI_MAX)
        return err_set(err, -EINVAL, "'cpus' must be a number from 0.01 to 4096");
    r = check_memory(s, err);
    if (r < 0)
        return r;
    r = check_gpus(s, err);
    if (r < 0)
        return r;
    if (resources_scale(&s->each, s->size, &total) < 0)
        return err_set(err, -EINVAL, "'cpus' times 'size' is more than can be counted");
    return 0;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* It becomes a word on a helper's command line: it never looks like an option. */
static int check_image(const struct session *s, struct err *err)
{
    if (!s->image[0])
        return err_set(err, -EINVAL, "'image' is missing: name the image to run");
    if (!is_alnum(s->image[0]))
        return err_set(err, -EINVAL, "'image' must start with a letter or digit");
    for (const char *p = s->image; *p; p++)
        if (!is_alnum(*p) && !strchr("._-/:@+[]", *p))
            return err_set(err, -EINVAL,
                "'image' must be like 'registry/name:tag': letters, digits and ._-/:@+[] only");
    return 0;
}

static size_t words_bytes(char *const *words)
{
    size_t n = 0;

    for (; words && *words; words++)
        n += strlen(*words) + 1;
    return n;
}

static int check_command(const struct session *s, bool image_has_command, struct err *err)
{
    if (strv_len(s->command) > SESSION_COMMAND_MAX)
        return err_set(err, -EINVAL, "'command' has %zu words; at most %d are taken",
            strv_len(s->command), SESSION_COMMAND_MAX);
    if (s->command && str_is_empty(s->command[0]))
        return err_set(err, -EINVAL, "'command' must begin with a program, not an empty word");
    if (words_bytes(s->command) + words_bytes(s->env) > WORDS_BYTES_MAX)
        return err_set(err, -EINVAL,
            "'command' and 'env' together have %zu bytes; at most %d are taken (put what is longer "
            "in a file on a volume)",
            words_bytes(s->command) + words_bytes(s->env), WORDS_BYTES_MAX);
    if (s->kind == KIND_TRAIN && !s->command && !image_has_command)
        return err_set(err, -EINVAL,
            "a 'train' session needs a 'command', since image '%s' has none of its own", s->image);
    return 0;
}

static bool is_env_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(s[i] == '_' || (is_alnum(s[i]) && (i > 0 || s[i] < '0' || s[i] > '9'))))
            return false;
    return len > 0;
}

static int check_env_entry(const char *entry, struct err *err)
{
    const char *equals = strchr(entry, '=');
    size_t len = equals ? (size_t)(equals - entry) : strlen(entry);
    _cleanup_free_ char *shown = str_escape(entry, len, 64);

    if (!equals)
        return err_set(err, -EINVAL, "'env' entry '%s' has no value", shown);
    if (!is_env_name(entry, len))
        return err_set(err, -EINVAL,
            "'env' name '%s' must be letters, digits and '_', and not start with a digit", shown);
    if (str_starts(entry, "BACKENDAI_") || str_starts(entry, "MUSTER_"))
        return err_set(err, -EINVAL,
            "'env' must not set '%s': BACKENDAI_* and MUSTER_* say what a container is, and Muster "
            "sets them",
            shown);
    return 0;
}

/* The first i entries have the same name before '='. */
static bool env_is_taken(char *const *env, size_t i)
{
    size_t len = (size_t)(strchr(env[i], '=') - env[i]) + 1;

    for (size_t k = 0; k < i; k++)
        if (strncmp(env[k], env[i], len) == 0)
            return true;
    return false;
}

static int check_env(const struct session *s, struct err *err)
{
    size_t count = strv_len(s->env);
    int r;

    if (count > SESSION_ENV_MAX)
        return err_set(
            err, -EINVAL, "'env' has %zu variables; at most %d are taken", count, SESSION_ENV_MAX);
    for (size_t i = 0; i < count; i++) {
        r = check_env_entry(s->env[i], err);
        if (r < 0)
            return r;
        if (env_is_taken(s->env, i))
            return err_set(err, -EINVAL, "'env' sets '%.*s' twice",
                (int)MIN_OF(strcspn(s->env[i], "="), 64u), s->env[i]);
    }
    return 0;
}

static int check_mount_place(const char *path, struct err *err)
{
    static const char *const ours[] = {"/etc/muster", "/etc/hosts", "/etc/hostname",
        "/etc/resolv.conf", "/etc/passwd", "/etc/group", "/opt/muster", "/proc", "/sys", "/dev"};

    if (str_eq(path, "/"))
        return err_set(err, -EINVAL, "a volume cannot be mounted on '/'");
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (path_overlaps(path, ours[i]))
            return err_set(err, -EINVAL,
                "a volume cannot be mounted on '%.100s': '%s' is Muster's; take another path", path,
                ours[i]);
    return 0;
}

static int check_mount(const struct session *s, uint32_t i, struct err *err)
{
    const struct session_mount *m = &s->mounts[i];
    int r = name_check("'volume' of a mount", m->volume, err);

    if (r < 0)
        return r;
    r = path_check("'path' of a mount", m->path, err);
    if (r < 0)
        return r;
    r = check_mount_place(m->path, err);
    if (r < 0)
        return r;
    for (uint32_t k = 0; k < i; k++)
        if (path_overlaps(m->path, s->mounts[k].path))
            return err_set(err, -EINVAL,
                "mounts '%.80s' and '%.80s' lie on each other; put them side by side",
                s->mounts[k].path, m->path);
    return 0;
}

static int check_mounts(const struct session *s, struct err *err)
{
    int r;

    if (s->mount_count > SESSION_MOUNTS_MAX)
        return err_set(err, -EINVAL, "there are %u mounts; at most %d are taken", s->mount_count,
            SESSION_MOUNTS_MAX);
    for (uint32_t i = 0; i < s->mount_count; i++) {
        r = check_mount(s, i, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_times(const struct session *s, struct err *err)
{
    char text[DURATION_TEXT_MAX];

    if (s->time_limit_usec > TIME_LIMIT_MAX)
        return err_set(err, -EINVAL, "'time_limit' must be 10 years at most, not %s",
            duration_format(s->time_limit_usec, text));
    if (s->grace_usec > GRACE_MAX)
        return err_set(err, -EINVAL, "'grace' must be 3600 seconds at most, not %ju",
            (uintmax_t)(s->grace_usec / USEC_PER_SEC));
    return 0;
}

int session_request_check(const struct session *s, bool image_has_command, struct err *err)
{
    int r = check_name(s, err);

    if (r >= 0)
        r = check_resources(s, err);
    if (r >= 0)
        r = name_check("'group'", s->group, err);
    if (r >= 0)
        r = check_image(s, err);
    if (r >= 0)
        r = check_env(s, err);
    if (r >= 0)
        r = check_command(s, image_has_command, err);
    if (r >= 0 && s->workdir[0])
        r = path_check("'workdir'", s->workdir, err);
    if (r >= 0)
        r = check_mounts(s, err);
    if (r >= 0)
        r = check_schedule(s, err);
    return r < 0 ? r : check_times(s, err);
}
