/* A small assignment for the tests of this folder. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "agent/ct/runtime.h"
#include "unit.h"

#define SESSION_ID "3e9f4c2a-8a5b-4b7e-9d63-1f0a2b3c4d5e"
#define CONTAINER_ID "5b7e9d63-1f0a-4b3c-8d5e-3e9f4c2a8a5b"

static char *fixture_env[] = {(char *)"A=1", (char *)"B=two words", NULL};
static char *fixture_command[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit 3", NULL};
static struct assigned_peer fixture_peers[] = {
    {.name = "main1", .ip = 0x0a800002, .node = "a"},
    {.name = "sub1", .ip = 0x0a800003, .node = "b"},
};
static struct assigned_mount fixture_mounts[] = {
    {.source = (char *)"/data/inner", .target = (char *)"/home/work/in", .read_only = true},
    {.source = (char *)"/data/outer", .target = (char *)"/home/work"},
};
static struct assigned_container fixture_container = {
    .id = CONTAINER_ID,
    .name = "sub1",
    .rank = 1,
    .env = fixture_env,
    .command = fixture_command,
};
static UNUSED struct assignment fixture = {
    .session = SESSION_ID,
    .user = {.name = "alice", .role = ROLE_USER, .uid = 20001, .sub_base = 0x10000000},
    .each = {.cpu_milli = 1500, .gpus = 0, .mem = UINT64_C(1) << 30},
    .shm = 1 << 24,
    .stop_signal = 10,
    .workdir = "/srv",
    .mounts = fixture_mounts,
    .mount_count = 2,
    .peers = fixture_peers,
    .peer_count = 2,
    .ssh_host_public = (char *)"ssh-ed25519 AAAAC3Nz host-comment\n",
    .containers = &fixture_container,
    .container_count = 1,
};

#endif
