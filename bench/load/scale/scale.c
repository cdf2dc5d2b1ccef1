/*
 * The load of a large cluster on a server of the Kubernetes API: simulated nodes, their pods,
 * services and endpoint slices.
 *
 *     set up ──► starting ──► filling ──► steady (warm-up, then measured, with a restart) ──► stop
 */
#include "base/xalloc.h"
#include "load/context.h"
#include "load/scale/fleet.h"
#include "load/scale/pods.h"
#include "load/scale/series.h"
#include "load/scale/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    SERVERS_MAX = 64,
    CALL_TIMEOUT_MS = 60000,
    PER_NODES = 100000, /* that --churn is about */
};
/* What the verdict allows. */
#define LATE_NS UINT64_C(1000000000)
#define SECOND_NS UINT64_C(1000000000)
/* Limit on the time in which nothing changes while something is awaited. */
#define PATIENCE_NS (120 * SECOND_NS)

struct run {
    struct bench_context *context;
    struct scale_world world;
    vigil_kube_options client;
    char *servers[SERVERS_MAX]; /* owned: URLs */
    uint32_t server_count;
    struct scale_fleet *fleets[BENCH_THREADS_MAX]; /* owned */
    uint32_t fleet_count;
    struct scale_series series;
    struct bench_usage before, after; /* usage of the server in the measured time */
    bool has_usage;
    uint64_t own_cpu_ns, measured_ns;
};

/* -- Options -- */

/* "127.0.0.1:8001,https://10.0.0.1:6443" */
static enum status read_servers(struct run *run)
{
    struct slice rest = slice_from_text(run->context->options.endpoint);
    while (rest.len) {
        struct slice one = slice_cut(&rest, ',');
        bool has_scheme = slice_has_prefix(one, SLICE_LITERAL("http://")) ||
                          slice_has_prefix(one, SLICE_LITERAL("https://"));
        if (run->server_count == SERVERS_MAX)
            return error_set(&run->context->error, ST_INVALID, "--endpoint: at most %d servers",
                             SERVERS_MAX);
        if (asprintf(&run->servers[run->server_count], "%s%.*s", has_scheme ? "" : "http://",
                     SLICE_ARGS(one)) < 0)
            return ST_NOMEM;
        run->server_count++;
    }
    if (!run->server_count)
        return error_set(&run->context->error, ST_INVALID, "--endpoint is empty");
    return ST_OK;
}

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

static void set_client(struct run *run)
{
    const struct bench_options *options = &run->context->options;
    vigil_kube_options *client = &run->client;
    vigil_kube_options_init(client);
    client->server = run->servers[0];
    client->ca_file = given(options->cacert);
    client->cert_file = given(options->cert);
    client->key_file = given(options->key);
    client->token = given(options->token);
    client->insecure_skip_verify = options->insecure;
    client->user_agent = "vigil-bench";
    client->http = VIGIL_KUBE_HTTP_2;
    client->calls_per_second = 0;
    client->call_timeout_ms = CALL_TIMEOUT_MS;
}

static void set_world(struct run *run)
{
    const struct bench_options *options = &run->context->options;
    struct scale_world *world = &run->world;
    world->options = options;
    world->nodes = (uint32_t)options->nodes;
    world->pods = (uint32_t)(options->pod_count ? options->pod_count : options->nodes);
    double writes_per_second = (double)options->churn * world->nodes / PER_NODES;
    world->lives_per_second = writes_per_second / SCALE_POD_WRITES;
    world->services_per_second =
        (double)options->services * 1e9 / (double)options->service_interval_ns;
    world->slices = xcalloc(options->services + 1, sizeof(world->slices[0]));
}

/* -- Threads -- */

static enum status start_fleets(struct run *run)
{
    const struct bench_options *options = &run->context->options;
    uint32_t threads = (uint32_t)options->threads, nodes = run->world.nodes, first = 0, pod = 0;
    if (threads > nodes)
        threads = nodes;
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t next = (uint32_t)((uint64_t)nodes * (i + 1) / threads);
        uint32_t pods = (uint32_t)((uint64_t)run->world.pods * (i + 1) / threads);
        struct scale_fleet_config config = {
            .world = &run->world,
            .options = &run->client,
            .servers = (const char *const *)run->servers,
            .server_count = run->server_count,
            .index = i,
            .first = first,
            .count = next - first,
            .pods = pods - pod,
            .changes_services = i == 0,
        };
        TRY(scale_fleet_new(&config, &run->fleets[run->fleet_count], &run->context->error));
        run->fleet_count++;
        first = next;
        pod = pods;
    }
    return ST_OK;
}

static void stop_fleets(struct run *run)
{
    for (uint32_t i = 0; i < run->fleet_count; i++)
        scale_fleet_stop(run->fleets[i]);
}

/* A second passes, and becomes a sample. */
static void pass_second(struct run *run)
{
    struct scale_series *series = &run->series;
    uint64_t until = series->last_ns + SECOND_NS;
    struct timespec at = {.tv_sec = (time_t)(until / SECOND_NS),
                          .tv_nsec = (long)(until % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        continue;
    struct scale_sample *sample = scale_series_begin(series);
    for (uint32_t i = 0; i < run->fleet_count; i++)
        scale_measures_take(scale_fleet_measures(run->fleets[i]), sample);
    scale_series_complete(series);
}

/* -- Phases -- */

/* Until so many are there. Fails if nothing changes for a long time. */
static enum status await_count(struct run *run, const _Atomic uint32_t *count, uint32_t wanted,
                               const char *what)
{
    uint32_t last = 0;
    uint64_t changed_ns = bench_now_ns();
    for (;;) {
        uint32_t now = atomic_load(count);
        if (now >= wanted)
            return ST_OK;
        if (now != last)
            changed_ns = bench_now_ns();
        last = now;
        if (bench_now_ns() - changed_ns > PATIENCE_NS)
            return error_set(&run->context->error, ST_TIMEOUT,
                             "%u of %u %s, and nothing has changed for %d seconds", now, wanted,
                             what, (int)(PATIENCE_NS / SECOND_NS));
        pass_second(run);
    }
}

/* Until all calls are answered and no event arrives any more. */
static enum status await_silence(struct run *run)
{
    uint64_t give_up_ns = bench_now_ns() + PATIENCE_NS;
    do {
        if (bench_now_ns() > give_up_ns)
            return error_set(&run->context->error, ST_TIMEOUT,
                             "events still arrive after the last change");
        pass_second(run);
    } while (atomic_load(&run->world.calls) || run->series.second->counts[SCALE_EVENTS]);
    return ST_OK;
}

static void begin_measuring(struct run *run)
{
    const struct bench_processes *server = &run->context->target.processes;
    scale_series_measure(&run->series);
    run->has_usage = server->server && bench_usage_read(server, &run->before) == ST_OK;
    run->own_cpu_ns = bench_usage_own_cpu_ns();
    run->measured_ns = bench_now_ns();
}

static void end_measuring(struct run *run)
{
    run->measured_ns = bench_now_ns() - run->measured_ns;
    run->own_cpu_ns = bench_usage_own_cpu_ns() - run->own_cpu_ns;
    run->has_usage =
        run->has_usage && bench_usage_read(&run->context->target.processes, &run->after) == ST_OK;
}

static enum status pass_phases(struct run *run)
{
    const struct bench_options *options = &run->context->options;
    struct scale_world *world = &run->world;
    struct bench_report *report = &run->context->report;
    uint64_t begun = bench_now_ns();
    TRY(await_count(run, &world->synced, world->nodes, "nodes have started"));
    bench_report_number(report, "start_seconds", (double)(bench_now_ns() - begun) / 1e9);
    begun = bench_now_ns();
    atomic_store(&world->phase, SCALE_FILLING);
    TRY(await_count(run, &world->pods_ready, world->pods, "pods are ready"));
    bench_report_number(report, "fill_seconds", (double)(bench_now_ns() - begun) / 1e9);
    atomic_store(&world->phase, SCALE_STEADY);
    for (uint64_t at = bench_now_ns(); bench_now_ns() < at + options->warmup_ns;)
        pass_second(run);
    begin_measuring(run);
    begun = bench_now_ns();
    while (bench_now_ns() < begun + options->duration_ns) {
        if (options->restart && bench_now_ns() >= begun + options->restart_at_ns)
            atomic_store(&world->restarts, 1);
        pass_second(run);
    }
    /* Restarted nodes are awaited, even longer than --duration. */
    enum status status = await_count(run, &world->synced, world->nodes, "nodes are back");
    end_measuring(run);
    TRY(status);
    atomic_store(&world->phase, SCALE_SETTLING);
    TRY(await_count(run, &world->pods_ready, world->pods, "pods are ready"));
    return await_silence(run);
}

/* -- The result -- */

/* A text for people that says what was missed; "" if nothing was. */
static void judge(const struct run *run, char *text, size_t size)
{
    const struct scale_sample *total = run->series.total, *whole = run->series.run;
    static const struct {
        enum scale_count count;
        const char *text;
    } none[] = {
        {SCALE_WATCHES_ENDED, "watches were ended by the server"},
        {SCALE_RELISTS, "watches had to begin with a new list"},
        {SCALE_RENEWALS_MISSED, "renewals were not answered before the next one"},
        {SCALE_ERRORS, "errors"},
    };
    FILE *to = fmemopen(text, size, "w");
    text[0] = 0;
    if (!to)
        return;
    for (unsigned i = 0; i < SCALE_MEASURES; i++) {
        uint64_t p99 = bench_histogram_quantile(&total->durations[i], 0.99);
        if ((i < SCALE_WRITES || scale_measure_is_delay(i)) && p99 > LATE_NS)
            fprintf(to, "%sp99 of %s is %.1f s, the goal is 1 s", ftell(to) ? "; " : "",
                    scale_measure_name(i), (double)p99 / 1e9);
    }
    for (size_t i = 0; i < COUNT_OF(none); i++)
        if (whole->counts[none[i].count])
            fprintf(to, "%s%" PRIu64 " %s", ftell(to) ? "; " : "", whole->counts[none[i].count],
                    none[i].text);
    fclose(to);
}

static void report_measures(struct run *run)
{
    const struct scale_sample *total = run->series.total, *whole = run->series.run;
    struct bench_report *report = &run->context->report;
    double seconds = (double)run->measured_ns / 1e9;
    char name[64];
    for (unsigned i = 0; i < SCALE_MEASURES; i++) {
        /* Nodes start before the measured time. */
        const struct bench_histogram *h = i == SCALE_NODE_SYNC || i == SCALE_REGISTER
                                              ? &whole->durations[i]
                                              : &total->durations[i];
        if (!h->count)
            continue;
        snprintf(name, sizeof(name), "%s_count", scale_measure_name(i));
        bench_report_count(report, name, h->count);
        bench_report_latency(report, scale_measure_name(i), h);
    }
    for (unsigned i = 0; i < SCALE_COUNTS; i++)
        bench_report_count(report, scale_count_name(i), whole->counts[i]);
    bench_report_count(report, "renewals_answered", whole->durations[SCALE_RENEW].count);
    bench_report_count(report, "pods_started", whole->durations[SCALE_POD_READY].count);
    bench_report_number(report, "events_per_second", (double)total->counts[SCALE_EVENTS] / seconds);
}

/* Those of the first thread that has some. */
static void report_texts(struct run *run)
{
    char error[SCALE_ERROR_BYTES] = "", end[SCALE_ERROR_BYTES] = "", more[2][SCALE_ERROR_BYTES];
    for (uint32_t i = 0; i < run->fleet_count; i++) {
        scale_measures_texts(scale_fleet_measures(run->fleets[i]), more[0], more[1]);
        if (!*error)
            memcpy(error, more[0], sizeof(error));
        if (!*end)
            memcpy(end, more[1], sizeof(end));
    }
    if (*error)
        bench_report_text(&run->context->report, "first_error", error);
    if (*end)
        bench_report_text(&run->context->report, "first_watch_end", end);
}

static void report(struct run *run)
{
    const struct scale_world *world = &run->world;
    struct bench_report *report = &run->context->report;
    double seconds = (double)run->measured_ns / 1e9;
    uint64_t writes = 0;
    bench_report_count(report, "nodes", world->nodes);
    bench_report_count(report, "nodes_running", atomic_load(&world->synced));
    bench_report_count(report, "watches", (uint64_t)world->nodes * SCALE_FOLLOWS);
    bench_report_count(report, "pods", world->pods);
    bench_report_count(report, "pods_ready", atomic_load(&world->pods_ready));
    bench_report_count(report, "services", run->context->options.services);
    bench_report_number(report, "seconds", seconds);
    report_measures(run);
    for (unsigned i = 0; i < SCALE_WRITES; i++)
        writes += run->series.total->durations[i].count;
    bench_report_number(report, "writes_per_second", (double)writes / seconds);
    bench_report_number(report, "generator_cores", (double)run->own_cpu_ns / 1e9 / seconds);
    bench_report_number(report, "generator_cpu_us_per_node_second",
                        (double)run->own_cpu_ns / 1e3 / seconds / world->nodes);
    bench_report_count(report, "generator_resident_kb", run->series.own.resident_kb);
    bench_report_number(report, "generator_kb_per_node",
                        (double)run->series.own.resident_kb / world->nodes);
    if (run->has_usage)
        bench_report_usage(report, &run->before, &run->after, (double)writes / seconds);
    report_texts(run);
}

static enum status conclude(struct run *run, enum status status)
{
    char missed[sizeof(run->context->error.text) - 16];
    report(run);
    if (status != ST_OK)
        return status;
    judge(run, missed, sizeof(missed));
    if (!missed[0])
        return ST_OK;
    return error_set(&run->context->error, ST_LIMIT, "missed: %s", missed);
}

static enum status run_all(struct run *run)
{
    struct bench_context *context = run->context;
    if (context->options.restart && context->options.restart_at_ns >= context->options.duration_ns)
        return error_set(&context->error, ST_INVALID, "--restart-at must be less than --duration");
    TRY(read_servers(run));
    set_client(run);
    set_world(run);
    TRY(scale_setup(&context->options, &run->client, &run->context->error));
    TRY(scale_series_init(&run->series, &run->world, &context->target.processes,
                          context->options.series, &run->context->error));
    enum status status = start_fleets(run);
    if (status == ST_OK) {
        status = conclude(run, pass_phases(run));
        if (run->series.is_terminal)
            fputc('\n', stderr);
    }
    stop_fleets(run);
    return status;
}

enum status bench_kube_scale_run(struct bench_context *context)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->context = context;
    enum status status = run_all(run);
    for (uint32_t i = 0; i < run->fleet_count; i++)
        scale_fleet_free(run->fleets[i]);
    for (uint32_t i = 0; i < run->server_count; i++)
        free(run->servers[i]);
    scale_series_fini(&run->series);
    free(run->world.slices);
    free(run);
    return status;
}
