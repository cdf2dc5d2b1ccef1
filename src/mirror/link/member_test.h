/* One simulated member and a client of it, for tests of what the follower asks. One test at a time.
 */
#ifndef VIGIL_MIRROR_LINK_MEMBER_TEST_H
#define VIGIL_MIRROR_LINK_MEMBER_TEST_H

#include "client/call/client.h"
#include "client/sim/etcd_sim_test.h"

static struct {
    struct sim *sim;
    struct etcd_cluster cluster;
    struct etcd_member member;
    vigil_client *client;
} m;

static inline void member_begin(void)
{
    memset(&m, 0, sizeof(m));
    m.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    etcd_cluster_init(&m.cluster);
    etcd_member_init(&m.member, &m.cluster);
    etcd_member_start(&m.member, sim_network(m.sim));
}

static inline void member_end(void)
{
    vigil_client_free(m.client);
    etcd_member_fini(&m.member);
    sim_free(m.sim);
}

static inline void member_connect(size_t receive_bytes_max)
{
    char address[ADDRESS_TEXT_BYTES], endpoint[ADDRESS_TEXT_BYTES + 8];
    vigil_options options;
    vigil_options_init(&options);
    address_format(&m.member.bound.address, address);
    snprintf(endpoint, sizeof(endpoint), "http://%s", address);
    options.endpoints = endpoint;
    options.own_thread = 0;
    options.receive_bytes_max = receive_bytes_max;
    assert_int_equal(client_new_over(sim_network(m.sim), NULL, &options, &m.client, NULL),
                     VIGIL_OK);
}

/* Until the flag is set, or the time has passed. */
static inline void member_run(int64_t ns, const unsigned *flag)
{
    int64_t until = clock_mono_ns(sim_clock(m.sim)) + ns;
    while (!*flag && clock_mono_ns(sim_clock(m.sim)) < until && sim_step(m.sim))
        vigil_client_process(m.client);
}

#endif
