/* Sessions for the unit tests of edges. */
#ifndef EDGE_CASES_H
#define EDGE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "agent/net/edge.h"
#include "base/str.h"

struct edge_case {
    struct node_net n;
    struct assignment a;
    struct assigned_peer peers[3];
};

/* count 1: solo on 10.8.0.1; 3: main1 and sub1 there, sub2 on 10.8.0.2. */
static inline void edge_case_init(struct edge_case *c, uint32_t count)
{
    static const char *const fabric[] = {"10.8.0.1", "10.8.0.1", "10.8.0.2"};
    static const char *const names[] = {"main1", "sub1", "sub2"};

    *c = (struct edge_case){.a = {.subnet = 0x0a800400, .peers = c->peers, .peer_count = count}};
    c->a.vni = count > 1 ? 0x4d0001 : 0;
    STR_SET(c->n.tag, "t1");
    STR_SET(c->n.netns_dir, "/run/muster/netns");
    STR_SET(c->n.fabric_addr, "10.8.0.1");
    c->n.fabric_mtu = 1500;
    c->n.uplink_base = 0xa9fe4000;
    STR_SET(c->a.session, "11111111-2222-4333-8444-555555555555");
    for (uint32_t i = 0; i < count; i++) {
        STR_SET(c->peers[i].name, names[i]);
        STR_SET(c->peers[i].fabric, fabric[i]);
        c->peers[i].ip = c->a.subnet + 1 + i;
    }
}

#endif
