/* The agent's configuration: one table (config.c) for file, command line and --help. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include "base/opt.h"

struct agent_config {
    char *config_path;
    bool help, version;
    char *name;     /* of the node; the host's name if unset */
    char **manager; /* URLs */
    char *token_file;
    char *state_dir, *run_dir, *blobs_dir, *guest_dir;
    bool tls_off; /* a manager elsewhere may be reached by plain HTTP */
    char *addr_mgmt, *addr_fabric;
    char *cpus; /* declared capacity; what the machine has if unset */
    uint64_t mem, mem_reserved;
    char *gpu; /* auto, none, fake:MODEL:COUNT */
    char *tag; /* tells agents on one machine apart */
    char *cgroup, *crun, *conmon, *seccomp;
    uint64_t pids_max;
    uint64_t log_keep_usec, log_max;
    char *log_level, *log_format;
};

extern const struct opt agent_options[];

/* Read line, file and what the machine joined with, and check what must agree. */
int agent_config_read(struct agent_config *c, int argc, char **argv, struct err *err);
/* Is a manager reached by https? */
bool agent_config_uses_tls(const struct agent_config *c);
void agent_config_done(struct agent_config *c);

#endif
