/*
 * Process specifications for `crun exec`. Without one it would run as uid 0 with the container's
 * environment (seen), so there always is one. What it executes is muster-init's `step`, which goes
 * to the folder and runs the command: for a missing one the runtime's own words and exit status
 * (255, or 1) tell a person nothing.
 */
#include "agent/ct/oci.h"
#include "agent/ct/paths.h"
#include "base/fs.h"
#include "base/strv.h"

#define SHELL_MAX 256

static int exec_path(
    const struct runtime *rt, const char *exec_id, char path[CT_PATH_MAX], struct err *err)
{
    /* It becomes a file name. */
    int r = name_check("exec id", exec_id, err);

    if (r < 0)
        return r;
    snprintf(path, CT_PATH_MAX, "%s/exec/%s.json", rt->dirs.run, exec_id);
    return 0;
}

/* The login shell that rootfs_make found. Heap. */
static char *shell_of(const struct runtime *rt, const char *id)
{
    char path[CT_PATH_MAX], *text = NULL;

    if (fs_read(ct_run_path(&rt->dirs, id, "shell", path), SHELL_MAX, &text, NULL, NULL) < 0)
        return xstrdup("/bin/sh");
    return text;
}

/* out with the words behind; NULL when one is not UTF-8. */
static json_t *extend(json_t *out, char *const *v)
{
    for (; v && *v; v++)
        if (json_array_append_new(out, json_string(*v)) < 0) {
            json_decref(out);
            return NULL;
        }
    return out;
}

static json_t *command(const struct runtime *rt, const char *id, const struct exec_spec *spec)
{
    json_t *words = json_pack(
        "[s, s, s]", "/opt/muster/bin/muster-init", "step", spec->cwd ? spec->cwd : "/home/work");
    _cleanup_free_ char *shell = NULL;
    char *login[] = {NULL, "-l", NULL};

    if (!words || (spec->command && *spec->command))
        return words ? extend(words, spec->command) : NULL;
    login[0] = shell = shell_of(rt, id);
    return extend(words, login);
}

static json_t *environment(const struct exec_spec *spec)
{
    _cleanup_(strv_freep) char **env = strv_copy(spec->env);

    if (spec->root) {
        strv_env_set(&env, "HOME", "/root");
        strv_env_set(&env, "USER", "root");
        strv_env_set(&env, "LOGNAME", "root");
    }
    return extend(json_array(), env);
}

static int write_spec(const struct runtime *rt, const char *id, const char *path,
    const struct exec_spec *spec, struct err *err)
{
    int uid = spec->root ? 0 : CT_UID_WORK;
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;

    doc = json_pack("{s:b, s:{s:i, s:i}, s:o, s:o, s:s, s:o, s:b}", "terminal", spec->tty, "user",
        "uid", uid, "gid", uid, "args", command(rt, id, spec), "env", environment(spec), "cwd", "/",
        "capabilities", oci_capability_sets(spec->root), "noNewPrivileges", 0);
    if (!doc)
        return err_set(err, -EINVAL, "the command or its environment is not valid UTF-8");
    text = json_text(doc);
    return fs_write(path, text, strlen(text), 0600, err);
}

int runtime_exec_argv(const struct runtime *rt, const char *container_id, const char *exec_id,
    const struct exec_spec *spec, char ***ret_argv, struct err *err)
{
    char path[CT_PATH_MAX], folder[CT_PATH_MAX], **argv = NULL;
    int r = ct_check_id("container", container_id, err);

    if (r == 0)
        r = exec_path(rt, exec_id, path, err);
    if (r == 0)
        r = fs_mkdir_p(ct_path(rt->dirs.run, "exec", folder), 0700, err);
    if (r == 0)
        r = write_spec(rt, container_id, path, spec, err);
    if (r < 0)
        return r;
    strv_push(&argv, rt->shim);
    strv_push(&argv, rt->crun);
    strv_push(&argv, "--root");
    strv_push(&argv, rt->root);
    strv_push(&argv, "--cgroup-manager=cgroupfs");
    strv_push(&argv, "exec");
    strv_push(&argv, "--process");
    strv_push(&argv, path);
    strv_push(&argv, container_id);
    *ret_argv = argv;
    return 0;
}

void runtime_exec_done(const struct runtime *rt, const char *exec_id)
{
    char path[CT_PATH_MAX];

    if (exec_path(rt, exec_id, path, NULL) == 0)
        unlink(path);
}
