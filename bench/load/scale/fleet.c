#include "load/scale/fleet.h"

#include "base/xalloc.h"
#include "io/socket.h"
#include "kubeclient/call/kube.h"
#include "load/scale/node.h"
#include "load/scale/pods.h"
#include "load/scale/services.h"

enum {
    /* Connections from one address to one server: it has about 28,000 ports for them. */
    ADDRESS_CONNECTIONS = 20000,
    ADDRESSES_MAX = 250,
    STARTED_PER_TICK_MAX = 200, /* so that a turn stays short */
};
#define TICK_NS (10 * NS_PER_MS)

/* A connection, and the nodes that use it. */
struct link {
    vigil_kube *kube; /* owned; NULL: not started */
    uint32_t first, count;
};

struct scale_fleet {
    struct scale_fleet_config config;
    pthread_t thread;
    struct scale_thread shared;
    struct scale_measures measures;
    struct kube_group **groups; /* one for each server */
    struct network *networks;   /* one for each address that connections come from */
    struct address *addresses;
    uint32_t network_count;
    struct link *links;
    uint32_t link_count, links_started;
    struct scale_node *nodes;
    struct scale_pods *pods;
    struct scale_services *services; /* NULL: another thread changes them */
    vigil_kube *control;             /* owned: for what is not done by nodes */
    struct scale_pace starts;
    uint32_t restarts; /* that were carried out */
    struct timer tick;
};

static uint32_t nodes_per_link(const struct scale_fleet *fleet)
{
    return (uint32_t)fleet->shared.world->options->nodes_per_connection;
}

/* -- Connections -- */

static vigil_kube *make_client(struct scale_fleet *fleet, uint32_t number)
{
    vigil_kube *kube;
    vigil_error error;
    struct kube_group *group = fleet->groups[number % fleet->config.server_count];
    struct network *network = &fleet->networks[number / ADDRESS_CONNECTIONS % fleet->network_count];
    if (kube_new_in(group, network, NULL, &kube, &error) == VIGIL_OK)
        return kube;
    scale_measures_error(&fleet->measures, "a client", error.text);
    return NULL;
}

static void start_link(struct scale_fleet *fleet, struct link *link)
{
    link->kube = make_client(fleet, (uint32_t)(link - fleet->links));
    if (!link->kube)
        return;
    for (uint32_t i = 0; i < link->count; i++)
        scale_node_start(&fleet->nodes[link->first + i], link->kube);
}

static void stop_link(struct scale_fleet *fleet, struct link *link)
{
    for (uint32_t i = 0; i < link->count; i++)
        scale_node_stop(&fleet->nodes[link->first + i]);
    vigil_kube_free(TAKE(link->kube));
}

/* -- The tick -- */

static void start_due(struct scale_fleet *fleet, int64_t now_ns)
{
    struct scale_world *world = fleet->shared.world;
    double nodes = (double)world->options->start_rate * fleet->config.count / world->nodes;
    uint64_t due = scale_pace_due(&fleet->starts, nodes / nodes_per_link(fleet), now_ns);
    for (unsigned i = 0;
         due && fleet->links_started < fleet->link_count && i < STARTED_PER_TICK_MAX; due--, i++) {
        struct link *link = &fleet->links[fleet->links_started++];
        fleet->starts.done++;
        start_link(fleet, link);
        atomic_fetch_add(&world->started, link->count);
    }
}

/* Some nodes of each connection's thread close everything and come back at once. */
static void restart_ordered(struct scale_fleet *fleet)
{
    struct scale_world *world = fleet->shared.world;
    uint32_t ordered = atomic_load(&world->restarts);
    if (fleet->restarts == ordered)
        return;
    fleet->restarts = ordered;
    uint64_t part = world->options->restart * fleet->config.count / world->nodes;
    uint32_t links = (uint32_t)(part / nodes_per_link(fleet));
    for (uint32_t i = 0; i < links && i < fleet->links_started; i++)
        stop_link(fleet, &fleet->links[i]);
    for (uint32_t i = 0; i < links && i < fleet->links_started; i++)
        start_link(fleet, &fleet->links[i]);
}

static void on_tick(struct timer *timer)
{
    struct scale_fleet *fleet = CONTAINER_OF(timer, struct scale_fleet, tick);
    struct loop *loop = fleet->shared.loop;
    int64_t now_ns = loop_now_ns(loop);
    start_due(fleet, now_ns);
    restart_ordered(fleet);
    scale_pods_tick(fleet->pods, now_ns);
    if (fleet->services)
        scale_services_tick(fleet->services, now_ns);
    loop_timer_set(loop, timer, now_ns + TICK_NS);
}

static void on_pod(struct scale_follower *follower, const vigil_kube_object *pod, bool is_change)
{
    struct scale_node *node = CONTAINER_OF(follower, struct scale_node, follower);
    struct scale_fleet *fleet = CONTAINER_OF(follower->thread, struct scale_fleet, shared);
    scale_pods_see(fleet->pods, node, pod, is_change);
}

/* -- Life -- */

static void *run(void *arg)
{
    struct scale_fleet *fleet = arg;
    loop_run(fleet->shared.loop);
    loop_timer_cancel(fleet->shared.loop, &fleet->tick);
    scale_pods_stop(fleet->pods);
    scale_services_stop(fleet->services);
    for (uint32_t i = 0; i < fleet->links_started; i++)
        stop_link(fleet, &fleet->links[i]);
    vigil_kube_free(TAKE(fleet->control));
    return NULL;
}

/* Loopback servers are reached from several addresses of this machine, because one address has too
 * few ports for all connections. */
static void make_networks(struct scale_fleet *fleet)
{
    bool is_local = true;
    for (uint32_t i = 0; i < fleet->config.server_count; i++)
        is_local = is_local && strstr(fleet->config.servers[i], "://127.");
    uint32_t wanted = is_local ? fleet->link_count / ADDRESS_CONNECTIONS + 1 : 1;
    fleet->network_count = wanted < ADDRESSES_MAX ? wanted : ADDRESSES_MAX;
    fleet->networks = xcalloc(fleet->network_count, sizeof(fleet->networks[0]));
    fleet->addresses = xcalloc(fleet->network_count, sizeof(fleet->addresses[0]));
    for (uint32_t i = 0; i < fleet->network_count; i++) {
        char host[32];
        fleet->networks[i] = *network_posix();
        if (!is_local)
            continue;
        snprintf(host, sizeof(host), "127.0.%u.%u", fleet->config.index, i + 1);
        enum status status = address_from_host(slice_from_text(host), 0, &fleet->addresses[i]);
        assert(status == ST_OK);
        fleet->networks[i].source = &fleet->addresses[i];
    }
}

static void make_nodes(struct scale_fleet *fleet)
{
    const struct scale_fleet_config *config = &fleet->config;
    uint32_t each = nodes_per_link(fleet);
    fleet->nodes = xcalloc(config->count, sizeof(fleet->nodes[0]));
    for (uint32_t i = 0; i < config->count; i++)
        scale_node_init(&fleet->nodes[i], &fleet->shared, config->first + i);
    fleet->link_count = (config->count + each - 1) / each;
    fleet->links = xcalloc(fleet->link_count, sizeof(fleet->links[0]));
    for (uint32_t i = 0; i < fleet->link_count; i++) {
        uint32_t first = i * each, left = config->count - first;
        fleet->links[i] = (struct link){.first = first, .count = left < each ? left : each};
    }
}

static enum status make_groups(struct scale_fleet *fleet, struct error *error)
{
    const struct scale_fleet_config *config = &fleet->config;
    fleet->groups = xcalloc(config->server_count, sizeof(fleet->groups[0]));
    for (uint32_t i = 0; i < config->server_count; i++) {
        vigil_kube_options options = *config->options;
        vigil_error why;
        options.server = config->servers[i];
        if (kube_group_new(fleet->shared.loop, &options, &fleet->groups[i], &why) != VIGIL_OK)
            return error_set(error, ST_INVALID, "%s", why.text);
    }
    return ST_OK;
}

static enum status fleet_init(struct scale_fleet *fleet, struct error *error)
{
    struct scale_thread *shared = &fleet->shared;
    TRY(network_loop_new(network_posix(), &shared->loop));
    TRY(make_groups(fleet, error));
    make_nodes(fleet);
    make_networks(fleet);
    fleet->pods = scale_pods_new(shared, fleet->nodes, fleet->config.count, fleet->config.pods);
    fleet->control = make_client(fleet, fleet->link_count);
    if (!fleet->control)
        return error_set(error, ST_INVALID, "%s", fleet->measures.first_error);
    scale_pods_start(fleet->pods, fleet->control);
    if (fleet->config.changes_services) {
        fleet->services = scale_services_new(shared);
        scale_services_start(fleet->services, fleet->control);
    }
    fleet->tick.fn = on_tick;
    loop_timer_set(shared->loop, &fleet->tick, loop_now_ns(shared->loop));
    if (pthread_create(&fleet->thread, NULL, run, fleet) != 0)
        return error_set(error, ST_LIMIT, "cannot start a thread");
    return ST_OK;
}

/* After its thread has ended, or before it was started. */
static void destroy(struct scale_fleet *fleet)
{
    if (fleet->shared.loop)
        loop_timer_cancel(fleet->shared.loop, &fleet->tick);
    vigil_kube_free(fleet->control);
    for (uint32_t i = 0; fleet->groups && i < fleet->config.server_count; i++)
        kube_group_free(fleet->groups[i]);
    loop_free(fleet->shared.loop);
    scale_pods_free(fleet->pods);
    scale_services_free(fleet->services);
    buf_fini(&fleet->shared.scratch);
    scale_measures_fini(&fleet->measures);
    free(fleet->groups);
    free(fleet->networks);
    free(fleet->addresses);
    free(fleet->links);
    free(fleet->nodes);
    free(fleet);
}

enum status scale_fleet_new(const struct scale_fleet_config *config, struct scale_fleet **ret_fleet,
                            struct error *error)
{
    struct scale_fleet *fleet = xcalloc(1, sizeof(*fleet));
    fleet->config = *config;
    fleet->shared.world = config->world;
    fleet->shared.measures = &fleet->measures;
    fleet->shared.on_pod = on_pod;
    random_init(&fleet->shared.random, random_seed_system());
    scale_measures_init(&fleet->measures);
    enum status status = fleet_init(fleet, error);
    if (status == ST_OK)
        *ret_fleet = fleet;
    else
        destroy(fleet);
    return status;
}

void scale_fleet_stop(struct scale_fleet *fleet)
{
    loop_stop(fleet->shared.loop);
}

void scale_fleet_free(struct scale_fleet *fleet)
{
    if (!fleet)
        return;
    pthread_join(fleet->thread, NULL);
    destroy(fleet);
}

struct scale_measures *scale_fleet_measures(struct scale_fleet *fleet)
{
    return &fleet->measures;
}
