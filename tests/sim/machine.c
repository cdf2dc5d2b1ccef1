#include "machine.h"

#include "actors.h"
#include "base/xalloc.h"
#include "coverage.h"
#include "disk.h"
#include "front.h"
#include "server/server.h"
#include "tier.h"
#include "tls.h"
#include "trace.h"

enum { LISTEN_MAX = 4, SEGMENT_BYTES_FRONT = 2 << 10 };

/* What differs by the role of a machine. */
static const struct place {
    const char *name, *dir;
    const char *endpoint, *kube_endpoint; /* NULL: none */
    const char *link_endpoint;            /* by which it reaches the first one; NULL: it is that */
} places[] = {
    [MACHINE_FIRST] = {"the server", MACHINE_DIR, MACHINE_ENDPOINT, MACHINE_KUBE_ENDPOINT, NULL},
    [MACHINE_FRONT] = {"the front", FRONT_DIR, FRONT_ENDPOINT, FRONT_KUBE_ENDPOINT,
                       FRONT_LINK_ENDPOINT},
    [MACHINE_TIER] = {"the tier", TIER_DIR, NULL, TIER_KUBE_ENDPOINT, TIER_LINK_ENDPOINT},
};

struct machine {
    struct machine_options options;
    const struct place *place;
    struct disk *disk; /* owned */
    struct server_config config;
    struct url listen[LISTEN_MAX];
    enum server_role roles[LISTEN_MAX];
    struct server *server; /* owned; NULL: it is down */
    unsigned starts;
    bool died;
    bool freeing;    /* by machine_stop */
    bool was_rotten; /* the disk, when the server was started */
    bool mirror_is_void;
};

static void crash(void *ctx)
{
    machine_die(ctx, MACHINE_CUT);
}

/* The engine cannot write its log: the process ends. */
static void on_failure(void *ctx, const char *text)
{
    struct machine *machine = ctx;
    trace_line("%s fails: %s", machine->place->name, text);
    machine_die(machine, MACHINE_KILLED);
}

static void on_warning(void *ctx, const char *text)
{
    struct machine *machine = ctx;
    trace_line("%s warns: %s", machine->place->name, text);
}

/* The way from the tier leads to this machine or to the first one. */
static void share_link(const struct machine *machine)
{
    struct url shared, other;
    struct error error;
    enum status status = url_parse(slice_from_text(TIER_LINK_ENDPOINT), &shared, &error);
    assert(status == ST_OK);
    status = url_parse(slice_from_text(TIER_REPLICA_ENDPOINT), &other, &error);
    assert(status == ST_OK);
    sim_share(machine->options.sim, &shared.address, &other.address);
}

static void listen_at(struct machine *machine, const char *endpoint, enum server_role role)
{
    struct error error;
    size_t at = machine->config.listen_count++;
    assert(at < LISTEN_MAX);
    enum status status =
        url_parse(slice_from_text(sim_tls_endpoint(endpoint)), &machine->listen[at], &error);
    assert(status == ST_OK);
    machine->roles[at] = role;
}

static void configure_listeners(struct machine *machine)
{
    const struct machine_options *options = &machine->options;
    bool is_first = options->role == MACHINE_FIRST;
    if (machine->place->endpoint)
        listen_at(machine, machine->place->endpoint, SERVER_CLIENTS);
    if (is_first)
        listen_at(machine, FRONT_LINK_ENDPOINT, SERVER_CLIENTS);
    if (options->kube)
        listen_at(machine, machine->place->kube_endpoint, SERVER_KUBE);
    if (options->has_tier)
        listen_at(machine, is_first ? TIER_LINK_ENDPOINT : TIER_REPLICA_ENDPOINT, SERVER_KUBE);
    if (options->has_tier && !is_first)
        share_link(machine);
}

static bool is_in_front(const struct machine *machine)
{
    return machine->options.role != MACHINE_FIRST;
}

static void configure(struct machine *machine)
{
    static const struct slice peer_urls[] = {{(const uint8_t *)"http://127.0.0.1:2380", 21}};
    machine->config = (struct server_config){
        .engine =
            {
                .data_dir = machine->place->dir,
                .fs = disk_fs(machine->disk),
                .segment_bytes_first = 8 << 10,
                .segment_bytes_max = 32 << 10,
                .checkpoint_bytes = 16 << 10,
                .cluster_id = 1,
                .member_id = 2,
                .peer_urls = peer_urls,
                .peer_url_count = COUNT_OF(peer_urls),
                .on_failure = on_failure,
                .on_warning = on_warning,
                .ctx = machine,
                .leaves_signals = true,
            },
        .etcd =
            {
                .version = "3.7.0",
                .cluster_version = "3.7.0",
                .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
                .request_bytes_max = ETCD_REQUEST_BYTES_MAX_DEFAULT,
                .member_name = "default",
                .peer_urls = peer_urls,
                .peer_url_count = COUNT_OF(peer_urls),
            },
        .kube = {.version = "sim"},
        .kube_wanted = machine->options.kube && machine->options.role != MACHINE_TIER,
        .net = NET_OPTIONS_DEFAULT,
        .client_bytes_max = 64 << 20,
        .wire = WIRE_LIMITS_DEFAULT,
        .listen = machine->listen,
        .roles = machine->roles,
        .auth = {.simple_ttl_s = 300, .bcrypt_cost = 4},
        .tls = {.options = sim_tls_options(), .limits = NET_TLS_LIMITS_DEFAULT},
    };
    machine->config.net.shards = machine->options.shards;
    configure_listeners(machine);
    if (is_in_front(machine)) /* with small segments, so that a full disk refuses something */
        machine->config.engine.segment_bytes_first = machine->config.engine.segment_bytes_max =
            SEGMENT_BYTES_FRONT;
    if (machine->options.role == MACHINE_FRONT)
        front_configure(&machine->config, machine, machine->options.user);
    if (machine->options.role == MACHINE_TIER)
        tier_configure(&machine->config);
    if (machine->options.has_tier)
        tier_configure_upstream(&machine->config);
}

struct machine *machine_new(const struct machine_options *options)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));
    machine->options = *options;
    machine->place = &places[options->role];
    machine->disk = disk_new(&(struct disk_options){.dir = machine->place->dir,
                                                    .seed = options->seed,
                                                    .slow = options->slow_disk,
                                                    .misdirects = options->misdirects,
                                                    .is_front = options->role != MACHINE_FIRST,
                                                    .crash = crash,
                                                    .ctx = machine});
    configure(machine);
    return machine;
}

void machine_free(struct machine *machine)
{
    if (!machine)
        return;
    assert(!machine->server);
    disk_free(machine->disk);
    free(machine);
}

struct disk *machine_disk(struct machine *machine)
{
    return machine->disk;
}

void machine_set_link(struct machine *machine, bool exists)
{
    struct url url;
    struct error error;
    if (!machine->place->link_endpoint)
        return;
    enum status status = url_parse(slice_from_text(machine->place->link_endpoint), &url, &error);
    assert(status == ST_OK);
    sim_set_reachable(machine->options.sim, &url.address, exists);
}

bool machine_is_down(const struct machine *machine)
{
    return !machine->server;
}

bool machine_has_died(const struct machine *machine)
{
    return machine->died && !machine->freeing;
}

/* Ends the use of the disk without a server. Returns whether power has failed meanwhile. */
static bool end_use(struct machine *machine)
{
    bool died = machine->died;
    disk_stop(machine->disk);
    machine->died = false;
    return died;
}

enum status machine_start(struct machine *machine, bool *ret_died, struct error *ret_error)
{
    assert(!machine->server && !machine->died);
    machine->mirror_is_void = false;
    machine->was_rotten = disk_is_rotten(machine->disk);
    disk_start(machine->disk);
    if (machine->options.role == MACHINE_FRONT)
        front_starts();
    machine_set_link(machine, true);
    struct server *server;
    enum status status = server_start(&machine->config, &server, ret_error);
    trace_line("%s starts: %s %s", machine->place->name, status_text(status),
               status == ST_OK ? "" : ret_error->text);
    if (status == ST_OK) {
        machine->server = server;
        machine->starts++;
        return status;
    }
    *ret_died = end_use(machine);
    return status;
}

bool machine_stop(struct machine *machine)
{
    struct server *server = machine->server;
    unsigned starts = machine->starts;
    trace_line("%s is stopped", machine->place->name);
    server_drain(server);
    for (int i = 0; i < 1000 && !server_drained(server); i++) {
        actor_sleep(10 * NS_PER_MS);
        if (machine->died || !machine->server || machine->starts != starts)
            return false; /* it has died meanwhile, and may have been buried or started again */
    }
    if (machine->died)
        return false;
    machine->freeing = true;
    server_free(server);
    machine->freeing = false;
    machine->server = NULL;
    bool clean = !machine->died;
    coverage_add_at(COVERAGE_STOP, is_in_front(machine), clean);
    machine->died = false;
    disk_stop(machine->disk);
    trace_line("%s has stopped", machine->place->name);
    return clean;
}

bool machine_was_rotten(const struct machine *machine)
{
    return machine->was_rotten;
}

void machine_void_mirror(struct machine *machine)
{
    machine->mirror_is_void = true;
}

bool machine_has_void_mirror(const struct machine *machine)
{
    return machine->mirror_is_void && machine->server && !machine->died;
}

void machine_discard_mirror(struct machine *machine)
{
    struct error error = {0};
    unsigned starts = machine->starts;
    int64_t void_until = server_end_watches(machine->server);
    if (!machine_has_void_mirror(machine) || machine->starts != starts || !machine_stop(machine))
        return; /* it will find out again */
    disk_start(machine->disk);
    enum status status = server_discard_mirror(&machine->config, void_until, &error);
    bool died = end_use(machine);
    trace_line("the mirror is thrown away: %s", died ? "power fails" : status_text(status));
    coverage_add_at(COVERAGE_DISCARD, true, status == ST_OK);
}

void machine_die(struct machine *machine, enum machine_end_kind kind)
{
    if (machine->died)
        return;
    trace_line("%s dies: %s", machine->place->name, kind == MACHINE_CUT ? "power fails" : "killed");
    coverage_add_at(kind == MACHINE_CUT ? COVERAGE_CUT : COVERAGE_KILL, is_in_front(machine), 1);
    machine->died = true;
    disk_stop(machine->disk);
    for (size_t i = 0; i < machine->config.listen_count; i++)
        sim_unplug(machine->options.sim, &machine->listen[i].address);
    machine_set_link(machine, false);
    if (kind == MACHINE_CUT)
        disk_cut_power(machine->disk);
    if (kind == MACHINE_CUT && machine->options.role == MACHINE_FRONT)
        front_boot();
    actors_wake(&machine->died);
}

void machine_bury(struct machine *machine)
{
    assert(machine->died);
    server_free(machine->server);
    machine->server = NULL;
    machine->died = false;
}
