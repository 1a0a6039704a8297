/*
 * Spec files: STATE/sessions/ID.json holds the assignment and what this node adds to it, so that a
 * restarted agent goes on where the last one was. Written beside and renamed, without fsync: they
 * have to survive the agent, and after a reboot nothing they speak of is left.
 */
#include <dirent.h>

#include "agent/sess.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

#define SPEC_MAX (16 * 1024 * 1024)

static char *spec_path(const struct agent *ag, const char *id)
{
    return xasprintf("%s/sessions/%s.json", ag->config.state_dir, id);
}

static json_t *ct_json(const struct ct *c)
{
    json_t *o = report_to_json(&c->report);

    json_set_bool(o, "started", c->started);
    json_set_u64(o, "pid", (uint64_t)c->pid);
    json_set_u64(o, "conmon_pid", (uint64_t)c->conmon_pid);
    json_set_u64(o, "start_time", c->start_time);
    json_set_bool(o, "stop_sent", c->stop_sent);
    json_set_bool(o, "killed", c->killed);
    return o;
}

int spec_write(const struct sess *s, struct err *err)
{
    _cleanup_(json_decrefp) json_t *o = json_object();
    _cleanup_free_ char *path = spec_path(s->agent, s->a->session), *text = NULL;
    json_t *cts = json_array();

    json_set_u64(o, "edge_index", s->edge_index);
    json_set_bool(o, "quarantined", s->quarantined);
    json_object_set_new(o, "assignment", assignment_to_json(s->a));
    for (uint32_t i = 0; i < s->a->container_count; i++)
        json_array_append_new(cts, ct_json(&s->cts[i]));
    json_object_set_new(o, "containers", cts);
    text = json_text(o);
    return fs_write(path, text, strlen(text), 0600, err);
}

void spec_remove(struct agent *ag, const char *session_id)
{
    _cleanup_free_ char *path = spec_path(ag, session_id);

    unlink(path);
}

static int load_ct(struct ct *c, const json_t *o, struct err *err)
{
    struct report report;
    int r = report_from_json(o, &report, err);

    if (r < 0)
        return r;
    c->report = report;
    c->started = json_bool_or(o, "started", false);
    c->pid = (pid_t)json_u64_or(o, "pid", 0);
    c->conmon_pid = (pid_t)json_u64_or(o, "conmon_pid", 0);
    c->start_time = json_u64_or(o, "start_time", 0);
    c->stop_sent = json_bool_or(o, "stop_sent", false);
    c->killed = json_bool_or(o, "killed", false);
    return 0;
}

static int load_one(struct agent *ag, const char *path, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(json_decrefp) json_t *o = NULL;
    json_t *aj = NULL, *cts = NULL;
    struct assignment *a = NULL;
    struct sess *s;
    size_t len;
    int r = fs_read(path, SPEC_MAX, &text, &len, err);

    if (r == 0)
        r = json_parse(text, len, SPEC_MAX, &o, err);
    if (r == 0)
        r = json_get_obj(o, "assignment", &aj, err);
    if (r == 0)
        r = json_get_arr(o, "containers", &cts, err);
    if (r == 0)
        r = assignment_from_json(aj, &a, err);
    if (r != 0)
        return err_prefix(err, "spec file '%s'", path);
    s = sess_new(ag, a);
    s->edge_index = (uint32_t)json_u64_or(o, "edge_index", 0);
    s->quarantined = json_bool_or(o, "quarantined", false);
    for (uint32_t i = 0; i < a->container_count && r == 0; i++)
        r = load_ct(&s->cts[i], json_array_get(cts, i), err);
    return r < 0 ? err_prefix(err, "spec file '%s'", path) : 0;
}

int spec_load_all(struct agent *ag, struct err *err)
{
    _cleanup_free_ char *folder = xasprintf("%s/sessions", ag->config.state_dir);
    DIR *dir = opendir(folder);
    struct dirent *e;

    if (!dir)
        return err_sys(err, -errno, "cannot read '%s'", folder);
    while ((e = readdir(dir))) {
        _cleanup_free_ char *path = xasprintf("%s/%s", folder, e->d_name);
        struct err one = ERR_INIT;
        if (!str_ends(e->d_name, ".json"))
            continue;
        /* A spec that cannot be read is left where it is; what it spoke of is removed as unknown
         * only by a person, since nobody knows whose it is. */
        if (load_one(ag, path, &one) < 0)
            log_err("%s", err_text(&one));
    }
    closedir(dir);
    return 0;
}
