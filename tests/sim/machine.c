#include "machine.h"

#include "actors.h"
#include "base/xalloc.h"
#include "coverage.h"
#include "disk.h"
#include "front.h"
#include "server/server.h"
#include "tls.h"
#include "trace.h"

enum { LISTEN_MAX = 3, SEGMENT_BYTES_FRONT = 2 << 10 };

struct machine {
    struct machine_options options;
    const char *name;
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
    trace_line("%s fails: %s", machine->name, text);
    machine_die(machine, MACHINE_KILLED);
}

static void on_warning(void *ctx, const char *text)
{
    struct machine *machine = ctx;
    trace_line("%s warns: %s", machine->name, text);
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
    bool is_front = machine->options.is_front;
    listen_at(machine, is_front ? FRONT_ENDPOINT : MACHINE_ENDPOINT, SERVER_CLIENTS);
    if (!is_front)
        listen_at(machine, FRONT_LINK_ENDPOINT, SERVER_CLIENTS);
    if (machine->options.kube)
        listen_at(machine, is_front ? FRONT_KUBE_ENDPOINT : MACHINE_KUBE_ENDPOINT, SERVER_KUBE);
}

static void configure(struct machine *machine)
{
    static const struct slice peer_urls[] = {{(const uint8_t *)"http://127.0.0.1:2380", 21}};
    machine->config = (struct server_config){
        .engine =
            {
                .data_dir = machine->options.is_front ? FRONT_DIR : "/data",
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
        .kube_wanted = machine->options.kube,
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
    if (machine->options.is_front) /* with small segments, so that a full disk refuses something */
        machine->config.engine.segment_bytes_first = machine->config.engine.segment_bytes_max =
            SEGMENT_BYTES_FRONT;
    if (machine->options.is_front)
        front_configure(&machine->config, machine, machine->options.user);
}

struct machine *machine_new(const struct machine_options *options)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));
    machine->options = *options;
    machine->name = options->is_front ? "the front" : "the server";
    machine->disk = disk_new(&(struct disk_options){.dir = options->is_front ? FRONT_DIR : "/data",
                                                    .seed = options->seed,
                                                    .slow = options->slow_disk,
                                                    .misdirects = options->misdirects,
                                                    .is_front = options->is_front,
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
    if (machine->options.is_front) {
        front_starts();
        front_set_link(machine->options.sim, true);
    }
    struct server *server;
    enum status status = server_start(&machine->config, &server, ret_error);
    trace_line("%s starts: %s %s", machine->name, status_text(status),
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
    trace_line("%s is stopped", machine->name);
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
    coverage_add_at(COVERAGE_STOP, machine->options.is_front, clean);
    machine->died = false;
    disk_stop(machine->disk);
    trace_line("%s has stopped", machine->name);
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
    trace_line("%s dies: %s", machine->name, kind == MACHINE_CUT ? "power fails" : "killed");
    coverage_add_at(kind == MACHINE_CUT ? COVERAGE_CUT : COVERAGE_KILL, machine->options.is_front,
                    1);
    machine->died = true;
    disk_stop(machine->disk);
    for (size_t i = 0; i < machine->config.listen_count; i++)
        sim_unplug(machine->options.sim, &machine->listen[i].address);
    if (machine->options.is_front)
        front_set_link(machine->options.sim, false);
    if (kind == MACHINE_CUT)
        disk_cut_power(machine->disk);
    if (kind == MACHINE_CUT && machine->options.is_front)
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
