/*
 * The cluster that `muster up` makes on one machine: what was made is written down in
 * DIR/cluster.json before it is made, so that `muster down` finds it after any crash.
 *
 *   DIR/                 musterd's state directory (store, blobs, tokens)
 *   DIR/up.json          with which options it was made; stays when it is taken down
 *   DIR/volumes          volumes
 *   DIR/log/NAME.log     what the daemons say
 *   DIR/nodes/NAME/state, run    of that node's agent
 *
 * Without virtual nodes the one agent runs in the machine's own network. With N of them each has a
 * network namespace TAG-nK with two links: mgmt, on the bridge TAG-mg on which the machine has an
 * address (musterd listens there, and the way out of sessions leads over it), and fab, on the
 * bridge TAG-fb on which it has none. Virtual nodes join, and speak TLS with musterd; an agent in
 * the machine's own network speaks to it on loopback.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "base/str.h"
#include "cli/cli.h"

#define CLUSTER_DIR "/var/lib/muster"
#define CLUSTER_NODES_MAX 200
/* Networks between virtual nodes: 10.SECOND.SUBNET.0/24. */
enum {
    CLUSTER_MGMT = 101,
    CLUSTER_FABRIC,
};
/* What clusters of one machine share; gone with the last of them, or a reboot. */
#define CLUSTER_SHARED "/run/muster-up"

struct daemon {
    pid_t pid;           /* 0: not started */
    uint64_t start_time; /* proc_start_time: tells it from a later process of that number */
};

struct cluster_node {
    char name[NAME_MAX_LEN + 1];
    char tag[9];
    char netns[24];            /* "" : the machine's own network */
    char mgmt[16], fabric[16]; /* addresses */
    struct daemon agent;
};

struct cluster {
    char *dir;
    char tag[9];
    char boot_id[37];                 /* of the boot in which the daemons were started */
    uint16_t port;                    /* of the API on 127.0.0.1 */
    uint32_t subnet;                  /* third byte of the two networks; virtual nodes only */
    char *overlay;                    /* CIDR of sessions' networks; NULL: the manager's default */
    char *node_cpus, *node_mem, *gpu; /* as given; NULL: the agent's defaults */
    struct daemon manager;
    struct cluster_node *nodes;
    size_t count;
};

/* Of --dir. */
int cluster_check_dir(const char *value, struct err *err);

void cluster_done(struct cluster *c);
/* -ENOENT: nothing is up there. */
int cluster_load(const char *dir, struct cluster *ret, struct err *err);
bool cluster_exists(const char *dir);
int cluster_save(const struct cluster *c, struct err *err);
/* Nothing is left: forget it. */
int cluster_forget(const struct cluster *c, struct err *err);
/* A plan for a new one: tag from the directory, free port and networks. 0: no virtual nodes. */
int cluster_plan(const char *dir, size_t count, struct cluster *ret, struct err *err);
/* "m" for the default directory, else "m" and three characters made of it. */
void cluster_tag(const char *dir, char tag[9]);
bool cluster_is_virtual(const struct cluster *c);
/* Address N of the management or fabric network. */
void cluster_address(const struct cluster *c, unsigned second, unsigned n, char text[16]);
/* "sudo muster down --dir DIR": what to type, with the options that it needs; heap. */
char *cluster_command(const char *verb, const char *dir);
/* One up or down at a time in a folder; the lock is held until the process ends. */
int cluster_lock(const char *dir, struct err *err);
/* One at a time on the machine: what is chosen free must be in use before the next one looks, and
 * nobody may put back what another has just found as it wants it. Waits. */
int cluster_machine_lock(int *ret_fd, struct err *err);
void cluster_machine_unlock(int fd); /* -1: nothing to do */

/* --- network: bridges, namespaces, the way out ------------------------------------------- */

/* Make what is missing. */
int cluster_net_make(struct cluster *c, struct err *err);
/* Remove all of it; what is not there is no error. What several clusters of one machine share (IP
 * forwarding, /run/netns) goes back to what it was with the last of them. */
int cluster_net_remove(const struct cluster *c, struct err *err);
/* An fd of the node's namespace, or 0 for the machine's own. */
int cluster_netns(const struct cluster_node *n, struct err *err);

/* --- daemons ------------------------------------------------------------------------------ */

bool daemon_runs(const struct cluster *c, const struct daemon *d);
/* Start it unless it runs; started says whether. */
int cluster_start_manager(struct cluster *c, bool *ret_started, struct err *err);
/* admin: for a token, if the node has to join first. */
int cluster_start_agent(struct cluster *c, struct cluster_node *n, struct cli *admin,
    bool *ret_started, struct err *err);
/* Unless it has joined already, or speaks to the manager on loopback. */
int cluster_join(
    const struct cluster *c, const struct cluster_node *n, struct cli *admin, struct err *err);
/* How the node's agent reaches the manager, and its state folder; heap. */
char *cluster_manager_url(const struct cluster *c, const struct cluster_node *n);
char *cluster_node_state(const struct cluster *c, const struct cluster_node *n);
/* SIGTERM, after a while SIGKILL; returns when it is gone. */
void daemon_stop(const struct cluster *c, struct daemon *d);
/* SIGTERM only, so that several end together. */
void daemon_ask_stop(const struct cluster *c, const struct daemon *d);
/* Last lines of its log, for a message; heap. */
char *daemon_last_words(const struct cluster *c, const char *name);
/* Path of a program that belongs to Muster; heap. NULL: not found. */
char *cluster_program(const char *name, const char *build_folder);
/* What containers see as /opt/muster; heap. NULL: not found. */
char *cluster_guest(const struct cluster *c);
/* Kill and unmount what a stopped agent left: containers, monitors, namespaces, links, cgroups. */
int cluster_clean_node(const struct cluster *c, const struct cluster_node *n, struct err *err);

/* A client with the administrator's token; cli->http of earlier calls is closed. */
int cluster_client(const struct cluster *c, struct cli *cli, struct err *err);

#endif
