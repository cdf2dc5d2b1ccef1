/* For tests: a scripted kube-apiserver and a link to it on a simulated network
 * (kubeclient/call/kube_server_sim_test.h). One file of a program includes this. */
#ifndef VIGIL_TIER_LINK_LINK_FIXTURE_TEST_H
#define VIGIL_TIER_LINK_LINK_FIXTURE_TEST_H

#include "kubeclient/call/kube_server_sim_test.h"
#include "tier/link/link.h"

struct link_world {
    struct sim *sim;
    struct kube_server_sim server;
    char url[ADDRESS_TEXT_BYTES + 64];
    const char *path_prefix;
    vigil_kube_options options;
    struct loop *loop;
    struct tier_link *link;
    struct error error;
    char log[2048]; /* one line after the other */
};

static struct link_world *link_world_checked;

static inline void link_world_check(void)
{
    struct link_world *w = link_world_checked;
    assert_true(faults.turns < SIM_TURNS_MAX);
    if (!w || !w->link)
        return;
    http_pool_check(tier_link_own(w->link));
    http_pool_check(tier_link_callers(w->link));
}

static inline void link_world_on_log(void *ctx, int level, const char *text)
{
    struct link_world *w = ctx;
    size_t len = strlen(w->log);
    snprintf(w->log + len, sizeof(w->log) - len, "%d %s\n", level, text);
}

/* Routes and options may be set before the start. */
static inline void link_world_init(struct link_world *w, enum sim_protocol protocol,
                                   const struct sim_options *sim_options)
{
    struct sim_options defaults = SIM_OPTIONS_DEFAULT;
    memset(w, 0, sizeof(*w));
    w->sim = sim_new(sim_options ? sim_options : &defaults);
    w->path_prefix = "";
    kube_server_init(&w->server, w->sim, protocol);
    vigil_kube_options_init(&w->options);
    if (protocol == SIM_HTTP2)
        w->options.http = VIGIL_KUBE_HTTP_2;
    if (protocol == SIM_TLS_HTTP1)
        w->options.http = VIGIL_KUBE_HTTP_1;
    if (sim_is_secure(protocol))
        w->options.ca_file = w->server.certs.ca_file;
    (void)faulty_network(sim_network(w->sim));
    assert_int_equal(network_loop_new(&faults.network, &w->loop), ST_OK);
    faults.check = link_world_check;
    faults.turns = 0;
    link_world_checked = w;
}

/* Makes the link. */
static inline enum status link_world_connect(struct link_world *w)
{
    struct tier_link_options options = {
        .loop = w->loop,
        .network = &faults.network,
        .client = &w->options,
        .log = link_world_on_log,
        .log_ctx = w,
    };
    faulty_memory_begin();
    enum status status = tier_link_new(&options, &w->link, &w->error);
    faulty_memory_end();
    assert_true(status == ST_OK || (!w->link && w->error.text[0]));
    return status;
}

static inline void link_world_listen(struct link_world *w)
{
    kube_server_start(&w->server);
    kube_server_url(&w->server, w->url, sizeof(w->url));
    strncat(w->url, w->path_prefix, sizeof(w->url) - strlen(w->url) - 1);
    if (!w->options.kubeconfig && !w->options.server)
        w->options.server = w->url;
}

static inline enum status link_world_start(struct link_world *w)
{
    link_world_listen(w);
    return link_world_connect(w);
}

static inline void link_world_fini(struct link_world *w)
{
    link_world_checked = NULL;
    tier_link_free(w->link);
    kube_server_fini(&w->server);
    loop_free(w->loop);
    faults.loop = NULL;
    sim_free(w->sim);
}

static inline int64_t link_world_now(const struct link_world *w)
{
    return clock_mono_ns(sim_clock(w->sim));
}

static inline void link_world_run(struct link_world *w, int64_t ns)
{
    sim_run_until(w->sim, link_world_now(w) + ns);
}

#endif
