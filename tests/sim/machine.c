#include "machine.h"

#include "actors.h"
#include "disk.h"
#include "server/server.h"
#include "trace.h"

static struct {
    struct machine_options options;
    struct server_config config;
    struct url listen[2];
    enum server_role roles[2];
    struct server *server;
    bool died;
    bool freeing; /* by machine_stop */
} machine;

static void crash(void *ctx)
{
    (void)ctx;
    machine_die(MACHINE_CUT);
}

/* The engine cannot write its log: the process ends. */
static void on_failure(void *ctx, const char *text)
{
    (void)ctx;
    trace_line("the server fails: %s", text);
    machine_die(MACHINE_KILLED);
}

static void on_warning(void *ctx, const char *text)
{
    (void)ctx;
    trace_line("warning: %s", text);
}

static void configure(void)
{
    static const struct slice peer_urls[] = {{(const uint8_t *)"http://127.0.0.1:2380", 21}};
    machine.config = (struct server_config){
        .engine =
            {
                .data_dir = "/data",
                .fs = disk_fs(),
                .segment_bytes_first = 8 << 10,
                .segment_bytes_max = 32 << 10,
                .checkpoint_bytes = 16 << 10,
                .cluster_id = 1,
                .member_id = 2,
                .peer_urls = peer_urls,
                .peer_url_count = COUNT_OF(peer_urls),
                .on_failure = on_failure,
                .on_warning = on_warning,
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
        .kube_wanted = machine.options.kube,
        .net = NET_OPTIONS_DEFAULT,
        .client_bytes_max = 64 << 20,
        .wire = WIRE_LIMITS_DEFAULT,
        .listen = machine.listen,
        .roles = machine.roles,
        .listen_count = machine.options.kube ? 2 : 1,
        .auth = {.simple_ttl_s = 300, .bcrypt_cost = 4},
    };
    machine.config.net.shards = machine.options.shards;
    machine.roles[0] = SERVER_CLIENTS;
    machine.roles[1] = SERVER_KUBE;
}

static void parse(const char *text, struct url *ret_url)
{
    struct error error;
    enum status status = url_parse(slice_from_text(text), ret_url, &error);
    assert(status == ST_OK);
}

void machine_begin(const struct machine_options *options)
{
    machine.options = *options;
    machine.server = NULL;
    machine.died = false;
    disk_begin(&(struct disk_options){.seed = options->seed,
                                      .slow = options->slow_disk,
                                      .misdirects = options->misdirects,
                                      .crash = crash,
                                      .ctx = NULL});
    parse(MACHINE_ENDPOINT, &machine.listen[0]);
    parse(MACHINE_KUBE_ENDPOINT, &machine.listen[1]);
    configure();
}

void machine_end(void)
{
    assert(!machine.server);
    disk_end();
}

bool machine_is_down(void)
{
    return !machine.server;
}

bool machine_has_died(void)
{
    return machine.died && !machine.freeing;
}

enum status machine_start(bool *ret_died, struct error *ret_error)
{
    assert(!machine.server && !machine.died);
    disk_start();
    struct server *server;
    enum status status = server_start(&machine.config, &server, ret_error);
    trace_line("the server starts: %s %s", status_text(status),
               status == ST_OK ? "" : ret_error->text);
    if (status == ST_OK) {
        machine.server = server;
        return status;
    }
    disk_stop();
    *ret_died = machine.died;
    machine.died = false;
    return status;
}

bool machine_stop(void)
{
    struct server *server = machine.server;
    trace_line("the server is stopped");
    server_drain(server);
    for (int i = 0; i < 1000 && !server_drained(server) && !machine.died; i++)
        actor_sleep(10 * NS_PER_MS);
    if (machine.died)
        return false;
    machine.freeing = true;
    server_free(server);
    machine.freeing = false;
    machine.server = NULL;
    bool clean = !machine.died;
    machine.died = false;
    disk_stop();
    trace_line("the server has stopped");
    return clean;
}

void machine_die(enum machine_end_kind kind)
{
    if (machine.died)
        return;
    trace_line("the server dies: %s", kind == MACHINE_CUT ? "power fails" : "killed");
    machine.died = true;
    disk_stop();
    for (size_t i = 0; i < machine.config.listen_count; i++)
        sim_unplug(machine.options.sim, &machine.listen[i].address);
    if (kind == MACHINE_CUT)
        disk_cut_power();
    actors_wake(&machine.died);
}

void machine_bury(void)
{
    assert(machine.died);
    server_free(machine.server);
    machine.server = NULL;
    machine.died = false;
}
