/* The loads on the Kubernetes API: pods created, listed, watched. */
#include "load/context.h"
#include "load/kube_client.h"
#include "load/pod.h"

#include <stdio.h>

#define WAIT_NS UINT64_C(20000000)
#define PATIENCE_NS UINT64_C(60000000000)
#define START_PATIENCE_NS UINT64_C(900000000000)
#define READING_EVERY_NS UINT64_C(50000000)

/* A measurement under way. */
struct watching {
    struct bench_context *context;
    struct bench_kube_client *client; /* owned */
    const struct bench_kube_counts *counts;
    uint64_t watches; /* in all, those that stop reading too */
    bool has_usage;
    struct bench_usage start, before, after;
    uint64_t anonymous_kb_most; /* the most of the readings on the way */
    uint64_t next_reading_ns;
};

static struct bench_load pods_of(const struct bench_context *context, enum bench_verb verb)
{
    struct bench_load load = bench_context_load(context, verb);
    load.nodes = context->options.nodes;
    load.value_bytes = size_max(load.value_bytes, BENCH_POD_BYTES_MIN);
    return load;
}

static enum status create_all(struct bench_context *context, struct slice object,
                              uint32_t connections, uint32_t pipeline,
                              struct bench_outcome *ret_outcome)
{
    struct bench_load load = pods_of(context, BENCH_POD_CREATE);
    load.object = object;
    load.path = context->options.path;
    load.order = BENCH_SEQUENTIAL;
    load.total = load.key_space;
    load.connections = connections;
    load.pipeline = pipeline;
    load.threads = 1;
    TRY(bench_load_run(&load, ret_outcome, &context->error));
    if (ret_outcome->errors)
        return error_set(&context->error, ST_IO, "creating objects: %s", ret_outcome->first_error);
    return ST_OK;
}

enum status bench_kube_prepare(struct bench_context *context, struct slice object)
{
    enum { CONNECTIONS = 10, PIPELINE = 50 };
    struct bench_outcome outcome;
    return context->options.prepare ? create_all(context, object, CONNECTIONS, PIPELINE, &outcome)
                                    : ST_OK;
}

/* The file of --object, which must fit the protocol's initial window. */
static enum status read_object(struct bench_context *context, struct buf *to)
{
    const char *name = context->options.object;
    FILE *file = fopen(name, "r");
    if (!file)
        return error_set(&context->error, ST_INVALID, "--object: cannot open %s", name);
    enum status status = buf_reserve(to, BENCH_VALUE_BYTES_MAX + 1);
    if (status == ST_OK)
        to->len = fread(to->ptr, 1, BENCH_VALUE_BYTES_MAX + 1, file);
    fclose(file);
    TRY(status);
    if (!to->len || to->len > BENCH_VALUE_BYTES_MAX)
        return error_set(&context->error, ST_INVALID, "--object: %s must have 1 to %d bytes", name,
                         BENCH_VALUE_BYTES_MAX);
    if (!memmem(to->ptr, to->len, BENCH_ZEROS, BENCH_KEY_DIGITS))
        return error_set(&context->error, ST_INVALID,
                         "--object: %s has no ten zeros for the number of the object", name);
    return ST_OK;
}

enum status bench_kube_load_run(struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    struct bench_outcome outcome;
    AUTO(buf_fini) struct buf object = {0};
    if (*options->object)
        TRY(read_object(context, &object));
    bench_report_count(&context->report, *options->object ? "objects" : "pods", options->key_space);
    TRY(create_all(context, buf_slice(&object), (uint32_t)options->connections,
                   (uint32_t)options->pipeline, &outcome));
    bench_report_outcome(&context->report, &outcome);
    return ST_OK;
}

enum status bench_kube_list_run(struct bench_context *context)
{
    TRY(bench_kube_prepare(context, SLICE_EMPTY));
    struct bench_load load = pods_of(context, BENCH_POD_LIST);
    struct bench_outcome outcome;
    TRY(bench_load_run(&load, &outcome, &context->error));
    bench_report_count(&context->report, "pods", load.key_space);
    bench_report_outcome(&context->report, &outcome);
    if (outcome.errors)
        return error_set(&context->error, ST_IO, "%s", outcome.first_error);
    return ST_OK;
}

/* -- Watching -- */

static void read_usage(struct watching *watching, struct bench_usage *usage)
{
    const struct bench_processes *processes = &watching->context->target.processes;
    watching->has_usage = processes->server && bench_usage_read(processes, usage) == ST_OK;
}

/* The server's memory, looked at now and then while it works. */
static void sample_memory(struct watching *watching, uint64_t now_ns)
{
    struct bench_usage usage = {0};
    if (now_ns < watching->next_reading_ns)
        return;
    watching->next_reading_ns = now_ns + READING_EVERY_NS;
    read_usage(watching, &usage);
    if (usage.anonymous_kb > watching->anonymous_kb_most)
        watching->anonymous_kb_most = usage.anonymous_kb;
}

static bool all_opened(const struct watching *watching)
{
    return watching->counts->opened >= watching->watches;
}

static bool all_synced(const struct watching *watching)
{
    return watching->counts->synced >= watching->watches;
}

static bool all_came(const struct watching *watching)
{
    return watching->counts->changes_done == watching->counts->changes_sent &&
           watching->counts->events >= watching->counts->expected;
}

static enum status wait_for(struct watching *watching, bool (*there)(const struct watching *),
                            const char *what)
{
    struct error *error = &watching->context->error;
    uint64_t give_up_ns = bench_now_ns() + (there == all_synced ? START_PATIENCE_NS : PATIENCE_NS);
    while (!there(watching)) {
        if (bench_now_ns() > give_up_ns || watching->counts->trouble.errors)
            return error_set(error, ST_IO,
                             "%s: %llu watches opened, %llu of %llu changes answered, %llu of %llu "
                             "events came. %s",
                             what, (unsigned long long)watching->counts->opened,
                             (unsigned long long)watching->counts->changes_done,
                             (unsigned long long)watching->counts->changes_sent,
                             (unsigned long long)watching->counts->events,
                             (unsigned long long)watching->counts->expected,
                             watching->counts->trouble.first_error);
        TRY(bench_kube_client_turn(watching->client, WAIT_NS, error));
    }
    return ST_OK;
}

/* A change's time is when it was due, so that a late one counts as late. */
static enum status change_until(struct watching *watching, uint64_t until_ns)
{
    uint64_t rate = watching->context->options.rate;
    uint64_t step_ns = rate ? 1000000000u / rate : 0;
    uint64_t due_ns = bench_now_ns();
    for (uint64_t now = due_ns; now < until_ns; now = bench_now_ns()) {
        sample_memory(watching, now);
        if (!rate)
            due_ns = now;
        while (due_ns <= now && bench_kube_client_change(watching->client, due_ns))
            due_ns += step_ns;
        uint64_t wait_ns = rate && due_ns > now ? due_ns - now : WAIT_NS;
        TRY(bench_kube_client_turn(watching->client, wait_ns < WAIT_NS ? wait_ns : WAIT_NS,
                                   &watching->context->error));
    }
    return ST_OK;
}

static void tell(struct watching *watching, uint64_t events, double seconds)
{
    struct bench_report *report = &watching->context->report;
    double rate = (double)events / seconds;
    bench_report_count(report, "watches", watching->watches);
    bench_report_number(report, "seconds", seconds);
    bench_report_count(report, "operations", events);
    bench_report_number(report, "operations_per_second", rate);
    if (!watching->has_usage)
        return;
    bench_report_usage(report, &watching->before, &watching->after, rate);
    bench_report_count(report, "server_anonymous_kb_start", watching->start.anonymous_kb);
    bench_report_count(report, "server_anonymous_kb_most", watching->anonymous_kb_most);
}

/* With them, a reader of other processes' usage knows which of it belongs to the measurement. */
static void tell_times(struct bench_report *report, uint64_t start_ns, uint64_t end_ns)
{
    bench_report_count(report, "start_at_monotonic_ns", start_ns);
    bench_report_count(report, "end_at_monotonic_ns", end_ns);
}

static enum status measure(struct watching *watching)
{
    const struct bench_options *options = &watching->context->options;
    struct bench_report *report = &watching->context->report;
    TRY(change_until(watching, bench_now_ns() + options->warmup_ns));
    TRY(wait_for(watching, all_came, "warming up"));
    uint64_t start_ns = bench_now_ns(), before = watching->counts->events;
    uint64_t own_ns = bench_usage_own_cpu_ns();
    bench_kube_client_record(watching->client);
    read_usage(watching, &watching->before);
    TRY(change_until(watching, start_ns + options->duration_ns));
    TRY(wait_for(watching, all_came, "watching"));
    read_usage(watching, &watching->after);
    uint64_t end_ns = bench_now_ns();
    double seconds = (double)(end_ns - start_ns) / 1e9;
    uint64_t events = watching->counts->events - before;
    tell_times(report, start_ns, end_ns);
    bench_report_count(report, "changes", watching->counts->change_latency.count);
    bench_report_latency(report, "change_latency", &watching->counts->change_latency);
    bench_report_latency(report, "event_latency", &watching->counts->event_latency);
    bench_report_number(report, "generator_cpu_us_per_operation",
                        (double)(bench_usage_own_cpu_ns() - own_ns) / 1e3 / (double)events);
    tell(watching, events, seconds);
    return ST_OK;
}

/* How many nodes or ConfigMaps are watched. */
static uint64_t watched_of(const struct bench_options *options)
{
    return options->configs ? options->key_space : options->nodes;
}

static struct bench_kube_config config_of(const struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    return (struct bench_kube_config){
        .target = &context->target,
        .connections = (uint32_t)options->connections,
        .streams = (uint32_t)options->streams,
        .nodes = (uint32_t)watched_of(options),
        .configs = options->configs,
        .users = (uint32_t)options->users,
        .spread = options->spread,
        .stopped = (uint32_t)options->stopped,
        .pods = options->key_space,
        .pod_bytes = size_max(options->value_bytes, BENCH_POD_BYTES_MIN),
        .pipeline = (uint32_t)options->pipeline,
    };
}

/* Opens them, lets the server come to rest, and weighs it. */
static enum status open_and_weigh(struct watching *watching)
{
    const struct bench_kube_config config = config_of(watching->context);
    read_usage(watching, &watching->start);
    TRY(bench_kube_client_new(&config, &watching->client, &watching->context->error));
    watching->counts = bench_kube_client_counts(watching->client);
    watching->watches = (uint64_t)config.connections * config.streams + config.stopped;
    TRY(wait_for(watching, all_opened, "opening"));
    read_usage(watching, &watching->after);
    if (watching->has_usage)
        bench_report_number(&watching->context->report, "server_anonymous_kb_of_watches",
                            (double)watching->after.anonymous_kb -
                                (double)watching->start.anonymous_kb);
    return bench_kube_client_stop(watching->client);
}

enum status bench_kube_watch_run(struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    if (options->streams == 0 || options->connections * options->streams % watched_of(options))
        return error_set(&context->error, ST_INVALID,
                         "--nodes: must divide the number of watches, so that each has as many; "
                         "with --configs --key-space");
    TRY(bench_kube_prepare(context, SLICE_EMPTY));
    struct watching watching = {.context = context};
    enum status status = open_and_weigh(&watching);
    if (status == ST_OK)
        status = measure(&watching);
    bench_kube_client_free(watching.client);
    return status;
}

static enum status start_all(struct watching *watching)
{
    struct bench_kube_config config = config_of(watching->context);
    struct bench_report *report = &watching->context->report;
    config.initial = true;
    config.stopped = 0;
    watching->watches = (uint64_t)config.connections * config.streams;
    uint64_t start_ns = bench_now_ns(), own_ns = bench_usage_own_cpu_ns();
    read_usage(watching, &watching->before);
    TRY(bench_kube_client_new(&config, &watching->client, &watching->context->error));
    watching->counts = bench_kube_client_counts(watching->client);
    TRY(wait_for(watching, all_synced, "starting"));
    read_usage(watching, &watching->after);
    uint64_t end_ns = bench_now_ns();
    tell_times(report, start_ns, end_ns);
    bench_report_latency(report, "sync_latency", &watching->counts->sync_latency);
    bench_report_count(report, "retries", watching->counts->retries);
    bench_report_number(report, "generator_cpu_seconds",
                        (double)(bench_usage_own_cpu_ns() - own_ns) / 1e9);
    tell(watching, watching->counts->events, (double)(end_ns - start_ns) / 1e9);
    return ST_OK;
}

enum status bench_kube_start_run(struct bench_context *context)
{
    if (context->options.streams == 0)
        return error_set(&context->error, ST_INVALID, "--streams: at least one on a connection");
    struct watching watching = {.context = context};
    enum status status = start_all(&watching);
    bench_kube_client_free(watching.client);
    return status;
}
