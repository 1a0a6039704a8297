/*
 * Volumes: folders VOLUMES_DIR/OWNER/NAME on shared storage, owned by their user. Made and removed
 * in a worker thread, since the storage may be slow.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/work.h"
#include "manager/api_page.h"
#include "manager/state.h"

static json_t *volume_json(const struct manager *m, const struct volume *v)
{
    json_t *o = json_object();
    _cleanup_free_ char *path = volume_path(m, v);
    char time[CLOCK_TEXT_MAX];

    json_set_str(o, "name", v->name);
    json_set_str(o, "owner", v->owner);
    json_set_str(o, "path", path);
    json_set_str(o, "created", clock_format(v->created_usec, time));
    return o;
}

static bool may_see(const struct call *c, const void *value)
{
    const struct volume *v = value;

    return str_eq(v->owner, c->user->name) || (call_is_admin(c) && call_query_flag(c, "all"));
}

static json_t *listed(const struct call *c, void *value, UNUSED void *arg)
{
    return volume_json(c->m, value);
}

void api_volume_list(struct call *c)
{
    reply_page(c,
        &(struct page_of){
            .what = "volumes", .map = &c->m->volumes, .may_see = may_see, .to_json = listed});
}

struct volume_job {
    struct call *c;
    struct volume v;
    char *base, *path;
    uint32_t uid;
    bool data; /* remove what is in it, too */
};

static void job_free(struct volume_job *j)
{
    free(j->base);
    free(j->path);
    free(j);
}

static int make_folder(void *arg, struct err *err)
{
    struct volume_job *j = arg;
    _cleanup_close_ int base = -1, dir = -1;
    _cleanup_free_ char *parent = xasprintf("%s/%s", j->base, j->v.owner);
    int r = fs_mkdir_p(parent, 0711, err);

    if (r < 0)
        return r;
    base = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (base < 0)
        return err_sys(err, -errno, "cannot open '%s'", parent);
    if (mkdirat(base, j->v.name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "cannot make '%s'", j->path);
    dir = openat(base, j->v.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys(err, -errno, "cannot open '%s'", j->path);
    if (fchown(dir, j->uid, j->uid) < 0)
        return err_sys(err, -errno, "cannot give '%s' to uid %u", j->path, j->uid);
    return fs_sync_parent(j->path);
}

static void folder_made(void *arg, int result, const struct err *err)
{
    struct volume_job *j = arg;
    struct manager *m = j->c->m;

    if (result < 0) {
        log_err("volume %s/%s: %s", j->v.owner, j->v.name, err_text(err));
        reply_error(j->c, 500, "storage", "%s", err_text(err));
    } else if (volume_find(m, j->v.owner, j->v.name)) {
        reply_error(j->c, 409, "exists", "you have a volume '%s' already", j->v.name);
    } else {
        struct volume *v = xmemdup(&j->v, sizeof(j->v));
        char *key = xasprintf("%s/%s", v->owner, v->name);
        map_set(&m->volumes, key, v);
        free(key);
        volume_save(m, v);
        reply_committed(j->c, 201, volume_json(m, v));
    }
    job_free(j);
}

static struct volume_job *job_new(struct call *c, const char *name)
{
    struct volume_job *j = xnew(struct volume_job);

    j->c = c;
    STR_SET(j->v.name, name);
    STR_SET(j->v.owner, c->user->name);
    j->v.created_usec = clock_real_usec();
    j->uid = c->user->uid;
    j->base = xstrdup(c->m->config.volumes_dir);
    j->path = volume_path(c->m, &j->v);
    return j;
}

void api_volume_create(struct call *c)
{
    const char *name = json_str_or(c->body, "name", "");
    struct err err = ERR_INIT;

    if (name_check("a volume's name", name, &err) < 0)
        reply_err(c, &err);
    else if (volume_find(c->m, c->user->name, name))
        reply_error(c, 409, "exists", "you have a volume '%s' already", name);
    else
        work_start(c->m->loop, make_folder, folder_made, job_new(c, name));
}

static int remove_folder(void *arg, struct err *err)
{
    struct volume_job *j = arg;

    if (j->data)
        return fs_remove_tree(j->path, err);
    if (rmdir(j->path) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(err, -ENOTEMPTY,
            "the volume '%s' is not empty; 'muster volume rm --data %s' removes its data too",
            j->v.name, j->v.name);
    return err_sys(err, -errno, "cannot remove '%s'", j->path);
}

static void folder_removed(void *arg, int result, const struct err *err)
{
    struct volume_job *j = arg;
    struct volume *v = volume_find(j->c->m, j->v.owner, j->v.name);

    if (result < 0) {
        reply_err(j->c, err);
    } else {
        if (v)
            volume_forget(j->c->m, v);
        reply_committed(j->c, 200, json_object());
    }
    job_free(j);
}

static const struct session *user_of_volume(struct manager *m, const struct volume *v)
{
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        for (uint32_t i = 0; str_eq(s->owner, v->owner) && i < s->mount_count; i++)
            if (str_eq(s->mounts[i].volume, v->name))
                return s;
    }
    return NULL;
}

void api_volume_delete(struct call *c)
{
    struct volume *v = volume_find(c->m, c->user->name, c->params[0]);
    const struct session *s = v ? user_of_volume(c->m, v) : NULL;
    struct volume_job *j;

    if (!v) {
        reply_error(c, 404, "not_found", "you have no volume '%.63s'; see 'muster volume ls'",
            c->params[0]);
    } else if (s) {
        reply_error(c, 409, "in_use", "session %s (%llu) uses the volume '%s'; stop it first",
            s->name, (unsigned long long)s->num, v->name);
    } else {
        j = job_new(c, v->name);
        j->data = call_query_flag(c, "data");
        work_start(c->m->loop, remove_folder, folder_removed, j);
    }
}
