#include "load/context.h"
#include "load/watch_client.h"

#include <time.h>

#define WAIT_NS UINT64_C(20000000)
#define CREATE_TIMEOUT_NS UINT64_C(60000000000)
#define CREATE_EACH_NS UINT64_C(20000) /* and for each watcher */
#define READING_EVERY_NS UINT64_C(50000000)
#define QUIET_NS UINT64_C(10000000000) /* without any event: what is missing does not come */

/* A measurement under way. */
struct watching {
    struct bench_context *context;
    struct bench_watch_client *client;
    const struct bench_watch_counts *counts;
    uint64_t watchers; /* in all, but for those that are behind */
    uint64_t behind;   /* how many those are */
    uint64_t of_a_put; /* events that each put makes */
    bool has_usage;
    struct bench_usage before, after;
    uint64_t anonymous_kb_most; /* the most of the readings on the way */
    uint64_t next_reading_ns;
};

static struct bench_watch_config config_of(const struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    return (struct bench_watch_config){
        .target = &context->target,
        .prefix = options->prefix,
        .keys = context->watch_keys,
        .connections = (uint32_t)options->connections,
        .streams = (uint32_t)options->streams,
        .watchers = (uint32_t)options->watchers,
        .key_space = options->key_space,
        .random_puts = context->order == BENCH_RANDOM,
        .value_bytes = size_max(options->value_bytes, sizeof(uint64_t)),
        .pipeline = (uint32_t)options->pipeline,
        .behind = options->behind,
        .behind_start = options->from ? (int64_t)options->from : 1,
    };
}

static void read_usage(const struct bench_context *context, struct bench_usage *usage, bool *has)
{
    const struct bench_processes *processes = &context->target.processes;
    *has = processes->server && bench_usage_read(processes, usage) == ST_OK;
}

static enum status begin(struct watching *watching, const struct bench_watch_config *config)
{
    struct error *error = &watching->context->error;
    read_usage(watching->context, &watching->before, &watching->has_usage);
    TRY(bench_watch_client_new(config, &watching->client, error));
    watching->counts = bench_watch_client_counts(watching->client);
    watching->watchers = (uint64_t)config->connections * config->streams * config->watchers;
    watching->behind = config->behind[0] ? (uint64_t)config->connections * config->streams : 0;
    watching->of_a_put = config->keys == BENCH_WATCH_OWN_KEYS ? 1 : watching->watchers;
    return ST_OK;
}

static enum status wait_created(struct watching *watching)
{
    struct error *error = &watching->context->error;
    uint64_t wanted = watching->watchers + watching->behind;
    uint64_t give_up_ns = bench_now_ns() + CREATE_TIMEOUT_NS + wanted * CREATE_EACH_NS;
    while (watching->counts->created < wanted) {
        if (watching->counts->trouble.errors)
            return error_set(error, ST_IO, "%llu of %llu watchers were created: %s",
                             (unsigned long long)watching->counts->created,
                             (unsigned long long)wanted, watching->counts->trouble.first_error);
        if (bench_now_ns() > give_up_ns)
            return error_set(error, ST_IO, "only %llu of %llu watchers were created in 60 s",
                             (unsigned long long)watching->counts->created,
                             (unsigned long long)wanted);
        TRY(bench_watch_client_turn(watching->client, WAIT_NS, error));
    }
    return ST_OK;
}

/* The server's memory, looked at now and then while it works. */
static void sample_memory(struct watching *watching, uint64_t now_ns)
{
    struct bench_usage usage;
    bool has = false;
    if (now_ns < watching->next_reading_ns)
        return;
    watching->next_reading_ns = now_ns + READING_EVERY_NS;
    read_usage(watching->context, &usage, &has);
    if (has && usage.anonymous_kb > watching->anonymous_kb_most)
        watching->anonymous_kb_most = usage.anonymous_kb;
}

/* Until all have come, none for a while, or the time is over. */
static enum status wait_events(struct watching *watching, uint64_t wanted, uint64_t until_ns)
{
    struct error *error = &watching->context->error;
    uint64_t started_ns = bench_now_ns();
    while (watching->counts->events < wanted) {
        uint64_t last_ns = watching->counts->last_event_ns;
        uint64_t now_ns = bench_now_ns();
        if (now_ns > until_ns)
            return ST_OK;
        sample_memory(watching, now_ns);
        if (now_ns > (last_ns > started_ns ? last_ns : started_ns) + QUIET_NS)
            return error_set(error, ST_IO, "only %llu of %llu events came",
                             (unsigned long long)watching->counts->events,
                             (unsigned long long)wanted);
        TRY(bench_watch_client_turn(watching->client, WAIT_NS, error));
    }
    return ST_OK;
}

/* Whether one more put may be begun. Every put makes as many events, so that counting them is
 * enough: which of the puts in flight one belongs to, we need not know. */
static bool may_put(const struct watching *watching)
{
    const struct bench_options *options = &watching->context->options;
    if (!options->await_events)
        return true;
    uint64_t shown = watching->counts->events / watching->of_a_put;
    return watching->counts->puts_sent < shown + options->pipeline;
}

/* Those that are behind have all they are waited for. */
static bool behind_done(const struct watching *watching)
{
    uint64_t total = watching->context->options.total;
    return watching->behind && total && watching->counts->behind_events >= total * watching->behind;
}

/* Puts until `until_ns`, at the rate asked for or as fast as the answers come. */
static enum status put_until(struct watching *watching, uint64_t until_ns)
{
    struct error *error = &watching->context->error;
    uint64_t rate = watching->context->options.rate;
    uint64_t step_ns = rate ? 1000000000u / rate : 0;
    uint64_t due_ns = bench_now_ns();
    for (uint64_t now = due_ns; now < until_ns && !behind_done(watching); now = bench_now_ns()) {
        sample_memory(watching, now);
        /* A put's time is when it was due, so that a late one counts as late. */
        if (!rate)
            due_ns = now;
        while (due_ns <= now && may_put(watching) &&
               bench_watch_client_put(watching->client, due_ns))
            due_ns += step_ns;
        uint64_t wait_ns = rate && due_ns > now ? due_ns - now : WAIT_NS;
        TRY(bench_watch_client_turn(watching->client, wait_ns < WAIT_NS ? wait_ns : WAIT_NS,
                                    error));
    }
    return ST_OK;
}

static enum status wait_puts(struct watching *watching)
{
    struct error *error = &watching->context->error;
    uint64_t give_up_ns = bench_now_ns() + QUIET_NS;
    while (watching->counts->puts_done < watching->counts->puts_sent) {
        if (bench_now_ns() > give_up_ns || watching->counts->trouble.errors)
            return error_set(error, ST_IO, "puts failed: %s",
                             watching->counts->trouble.first_error);
        TRY(bench_watch_client_turn(watching->client, WAIT_NS, error));
    }
    return ST_OK;
}

static enum status tell(struct watching *watching, double seconds, uint64_t events)
{
    struct bench_report *report = &watching->context->report;
    const struct bench_watch_counts *counts = watching->counts;
    double rate = (double)events / seconds;
    bench_report_count(report, "connections", watching->context->options.connections);
    bench_report_count(report, "watchers", watching->watchers);
    bench_report_number(report, "seconds", seconds);
    bench_report_count(report, "operations", events);
    bench_report_number(report, "operations_per_second", rate);
    bench_report_count(report, "errors", counts->trouble.errors);
    bench_report_count(report, "bytes_in", counts->bytes_in);
    if (watching->has_usage)
        bench_report_usage(report, &watching->before, &watching->after, rate);
    if (counts->trouble.errors)
        return error_set(&watching->context->error, ST_IO, "%s", counts->trouble.first_error);
    return ST_OK;
}

static enum status watch(struct watching *watching)
{
    const struct bench_options *options = &watching->context->options;
    const struct bench_watch_config config = config_of(watching->context);
    TRY(begin(watching, &config));
    TRY(wait_created(watching));
    TRY(put_until(watching, bench_now_ns() + options->warmup_ns));

    uint64_t start_ns = bench_now_ns();
    uint64_t events_before = watching->counts->events;
    bench_watch_client_record(watching->client, true);
    read_usage(watching->context, &watching->before, &watching->has_usage);
    TRY(put_until(watching, start_ns + options->duration_ns));
    double put_seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    TRY(wait_puts(watching));
    TRY(wait_events(watching, watching->counts->puts_done * watching->of_a_put, UINT64_MAX));
    read_usage(watching->context, &watching->after, &watching->has_usage);
    double seconds = (double)(bench_now_ns() - start_ns) / 1e9;

    struct bench_report *report = &watching->context->report;
    bench_report_count(report, "puts", watching->counts->put_latency.count);
    if (watching->behind) {
        bench_report_count(report, "behind_events", watching->counts->behind_events);
        bench_report_count(report, "behind_bytes", watching->counts->behind_bytes);
        bench_report_number(report, "behind_seconds", put_seconds);
        bench_report_count(report, "server_anonymous_kb_most", watching->anonymous_kb_most);
    }
    bench_report_latency(report, "put_latency", &watching->counts->put_latency);
    bench_report_latency(report, "event_latency", &watching->counts->event_latency);
    return tell(watching, seconds, watching->counts->events - events_before);
}

/* The store's revision, from the answer of a put before the history. */
static enum status note_revision(struct bench_context *context, int64_t *ret_revision)
{
    struct bench_load load = bench_context_load(context, BENCH_PUT);
    struct bench_outcome outcome;
    load.total = load.connections = load.pipeline = load.threads = 1;
    TRY(bench_load_run(&load, &outcome, &context->error));
    if (outcome.errors)
        return error_set(&context->error, ST_IO, "%s", outcome.first_error);
    *ret_revision = outcome.last_revision;
    return ST_OK;
}

static enum status put_history(struct bench_context *context)
{
    struct bench_load load = bench_context_load(context, BENCH_PUT);
    struct bench_outcome outcome;
    load.connections = 10;
    load.pipeline = 100;
    load.threads = 1;
    load.value_bytes = size_max(load.value_bytes, sizeof(uint64_t));
    TRY(bench_load_run(&load, &outcome, &context->error));
    if (outcome.errors)
        return error_set(&context->error, ST_IO, "%s", outcome.first_error);
    return ST_OK;
}

/* Reads the history once; ret_seconds is the time until its last event arrived. */
static enum status catch_up_once(struct watching *watching, const struct bench_watch_config *config,
                                 uint64_t until_ns, double *ret_seconds)
{
    uint64_t start_ns = bench_now_ns();
    TRY(begin(watching, config));
    TRY(wait_created(watching));
    TRY(wait_events(watching, watching->context->options.total * watching->watchers, until_ns));
    read_usage(watching->context, &watching->after, &watching->has_usage);
    *ret_seconds = (double)(watching->counts->last_event_ns - start_ns) / 1e9;
    return ST_OK;
}

/* With a rate, the next round begins when it is due, or at once when it is late. */
static void await_round(const struct bench_options *options, uint64_t start_ns, uint64_t rounds)
{
    uint64_t due_ns = options->rate ? start_ns + rounds * 1000000000u / options->rate : 0;
    uint64_t now_ns = bench_now_ns();
    if (due_ns <= now_ns)
        return;
    uint64_t wait_ns = due_ns - now_ns;
    nanosleep(&(struct timespec){(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)},
              NULL);
}

static enum status catch_up(struct watching *watching)
{
    struct bench_context *context = watching->context;
    const struct bench_options *options = &context->options;
    struct bench_watch_config config = config_of(context);
    config.start_revision = (int64_t)options->from;
    if (!options->from) {
        TRY(note_revision(context, &config.start_revision));
        TRY(put_history(context));
        config.start_revision++;
    }
    uint64_t start_ns = bench_now_ns();
    uint64_t until_ns = start_ns + options->duration_ns;
    uint64_t rounds = 0, events = 0;
    double seconds, all_seconds = 0;
    do {
        bench_watch_client_free(TAKE(watching->client));
        await_round(options, start_ns, rounds);
        TRY(catch_up_once(watching, &config, until_ns, &seconds));
        rounds++;
        events += watching->counts->events;
        all_seconds += seconds;
    } while (options->again && bench_now_ns() < until_ns);
    struct bench_report *report = &context->report;
    bench_report_count(report, "history", options->total);
    bench_report_count(report, "rounds", rounds);
    bench_report_count(report, "whole",
                       watching->counts->events >= options->total * watching->watchers);
    bench_report_count(report, "server_anonymous_kb_most", watching->anonymous_kb_most);
    return tell(watching, all_seconds, events);
}

/* Makes the watchers, lets the server come to rest, and weighs it. */
static enum status hold(struct watching *watching)
{
    struct bench_context *context = watching->context;
    const struct bench_watch_config config = config_of(context);
    uint64_t start_ns = bench_now_ns();
    TRY(begin(watching, &config));
    TRY(wait_created(watching));
    double created_ms = (double)(bench_now_ns() - start_ns) / 1e6;
    for (uint64_t until_ns = bench_now_ns() + context->options.duration_ns;
         bench_now_ns() < until_ns;)
        TRY(bench_watch_client_turn(watching->client, WAIT_NS, &context->error));
    read_usage(context, &watching->after, &watching->has_usage);
    bench_report_number(&context->report, "created_ms", created_ms);
    if (watching->has_usage) {
        double kb = (double)watching->after.anonymous_kb - (double)watching->before.anonymous_kb;
        bench_report_number(&context->report, "server_anonymous_kb_more", kb);
    }
    return tell(watching, created_ms / 1e3, 0);
}

enum status bench_watch_run(struct bench_context *context)
{
    if (context->options.streams == 0)
        return error_set(&context->error, ST_INVALID, "--streams: at least one");
    const struct bench_options *options = &context->options;
    uint64_t watchers = options->connections * options->streams * options->watchers;
    if (context->watch_keys == BENCH_WATCH_OWN_KEYS && options->key_space > watchers)
        return error_set(&context->error, ST_INVALID,
                         "--key-space: no more than watchers, when each has an own key");
    if (context->order == BENCH_SHUFFLED)
        return error_set(&context->error, ST_INVALID, "--keys: sequential or random");
    struct watching watching = {.context = context};
    enum status status = watch(&watching);
    bench_watch_client_free(watching.client);
    return status;
}

enum status bench_catchup_run(struct bench_context *context)
{
    if (context->options.total == 0)
        return error_set(&context->error, ST_INVALID, "--total: the length of the history");
    if (context->options.streams == 0)
        return error_set(&context->error, ST_INVALID, "--streams: at least one");
    struct watching watching = {.context = context};
    enum status status = catch_up(&watching);
    bench_watch_client_free(watching.client);
    return status;
}

enum status bench_watch_idle_run(struct bench_context *context)
{
    struct watching watching = {.context = context};
    enum status status = hold(&watching);
    bench_watch_client_free(watching.client);
    return status;
}
