/*
 * Taking edges away, and finding them. What there is to remove is found by looking: the pin files
 * by the session's id, links in the node by the session's id as their alias (IFLA_IFALIAS), so that
 * it does not matter how far the making had come.
 */
#include <dirent.h>

#include "agent/net/edge.h"
#include "agent/net/edge_parts.h"
#include "agent/net/netns.h"
#include "base/str.h"
#include "base/strv.h"

static void dir_closep(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* The session's id that a pin file's name starts with; false when it is no pin file of ours. */
static bool pin_session(const char *name, char id[UUID_TEXT_LEN + 1])
{
    size_t n = strcspn(name, ".");

    if (n != UUID_TEXT_LEN)
        return false;
    memcpy(id, name, n);
    id[n] = '\0';
    return uuid_is_valid(id);
}

static int each_pin(const struct node_net *n,
    int (*fn)(void *arg, const char *name, const char *session_id), void *arg, struct err *err)
{
    _cleanup_(dir_closep) DIR *d = opendir(n->netns_dir);
    char id[UUID_TEXT_LEN + 1];
    struct dirent *e;

    if (!d)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "cannot open '%s'", n->netns_dir);
    while ((e = readdir(d))) {
        int r = pin_session(e->d_name, id) ? fn(arg, e->d_name, id) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int collect_session(void *arg, const char *name, const char *session_id)
{
    char ***v = arg;

    if (!strv_has(*v, session_id))
        strv_push(v, session_id);
    return 0;
}

int edge_list(const struct node_net *n, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **v = NULL;
    int r = each_pin(n, collect_session, &v, err);

    if (r == 0)
        *ret = TAKE_PTR(v);
    return r;
}

struct pins_of {
    const char *session_id;
    char **names;
};

static int collect_pin(void *arg, const char *name, const char *session_id)
{
    struct pins_of *p = arg;

    if (str_eq(session_id, p->session_id))
        strv_push(&p->names, name);
    return 0;
}

/* The links are deleted first: a namespace without a pin dies later, when the kernel finds time,
 * and a link in it (and the VNI) would live until then. */
static int remove_pin(const struct node_net *n, const char *name, struct err *err)
{
    _cleanup_(netlink_close) struct netlink nl = {0};
    _cleanup_free_ char *path = xasprintf("%s/%s", n->netns_dir, name);
    _cleanup_close_ int fd = netns_open(path, err);
    int r = fd == -ENOENT ? 0 : fd;

    if (fd >= 0) {
        r = netlink_open_in(&nl, fd, err);
        if (r == 0)
            r = netlink_del_group(&nl, EDGE_GROUP, err);
    }
    return r < 0 ? r : netns_unpin(path, err);
}

static int remove_pins(const struct node_net *n, const char *session_id, struct err *err)
{
    struct pins_of p = {.session_id = session_id};
    _cleanup_(strv_freep) char **names = NULL;
    int r = each_pin(n, collect_pin, &p, err);

    names = p.names;
    strv_for_each (name, names)
        if (r == 0)
            r = remove_pin(n, *name, err);
    return r;
}

/* session_id NULL: of any session. */
static int remove_uplinks(const struct node_net *n, const char *session_id, struct err *err)
{
    _cleanup_(netlink_close) struct netlink node = {0};
    _cleanup_free_ struct netlink_link *links = NULL;
    char prefix[LINK_NAME_MAX];
    size_t count = 0;
    int r = netlink_open(&node, err);

    if (r == 0)
        r = netlink_link_list(&node, &links, &count, err);
    uplink_prefix(n, prefix);
    for (size_t i = 0; i < count && r == 0; i++)
        if (str_starts(links[i].name, prefix) &&
            (!session_id || str_eq(links[i].alias, session_id)))
            r = netlink_del_link(&node, links[i].index, err);
    return r;
}

int edge_remove(const struct node_net *n, const char *session_id, struct err *err)
{
    int r;

    if (!uuid_is_valid(session_id))
        return err_set(err, -EINVAL, "the session's id is no UUID");
    r = remove_pins(n, session_id, err);
    if (r == 0)
        r = remove_uplinks(n, session_id, err);
    if (r < 0)
        err_prefix(err, "cannot remove the network of session %s", session_id);
    return r;
}

int edge_remove_all(const struct node_net *n, struct err *err)
{
    _cleanup_(strv_freep) char **sessions = NULL;
    int r = edge_list(n, &sessions, err);

    strv_for_each (s, sessions)
        if (r == 0)
            r = edge_remove(n, *s, err);
    return r < 0 ? r : remove_uplinks(n, NULL, err);
}
