#include "load/context.h"

#include "load/sink.h"

#include <time.h>

struct bench_load bench_context_load(const struct bench_context *context, enum bench_verb verb)
{
    const struct bench_options *options = &context->options;
    return (struct bench_load){
        .target = &context->target,
        .verb = verb,
        .order = context->order,
        .prefix = options->prefix,
        .key_space = options->key_space,
        .value_bytes = options->value_bytes,
        .connections = (uint32_t)options->connections,
        .pipeline = (uint32_t)options->pipeline,
        .threads = (uint32_t)options->threads,
        .total = options->total,
        .warmup_ns = options->warmup_ns,
        .duration_ns = options->duration_ns,
    };
}

enum status bench_context_put_all(struct bench_context *context, enum bench_order order)
{
    struct bench_load load = bench_context_load(context, BENCH_PUT);
    load.order = order;
    load.total = load.key_space;
    load.connections = 10;
    load.pipeline = 100;
    load.threads = 1;
    struct bench_outcome outcome;
    TRY(bench_load_run(&load, &outcome, &context->error));
    if (outcome.errors)
        return error_set(&context->error, ST_IO, "preparing: %s", outcome.first_error);
    return ST_OK;
}

static enum status run(struct bench_context *context, const struct bench_load *load)
{
    struct bench_report *report = &context->report;
    struct bench_outcome outcome;
    TRY(bench_load_run(load, &outcome, &context->error));
    bench_report_count(report, "connections", load->connections);
    bench_report_count(report, "in_flight", (uint64_t)load->connections * load->pipeline);
    bench_report_count(report, "key_space", load->key_space);
    bench_report_count(report, "value_bytes", load->value_bytes);
    bench_report_outcome(report, &outcome);
    if (outcome.errors)
        return error_set(&context->error, ST_IO, "%s", outcome.first_error);
    return ST_OK;
}

static enum status prepare(struct bench_context *context)
{
    if (!context->options.prepare)
        return ST_OK;
    TRY(bench_context_put_all(context, BENCH_SEQUENTIAL));
    return bench_context_put_all(context, BENCH_SHUFFLED);
}

enum status bench_put_run(struct bench_context *context)
{
    struct bench_load load = bench_context_load(context, BENCH_PUT);
    return run(context, &load);
}

enum status bench_get_run(struct bench_context *context)
{
    TRY(prepare(context));
    struct bench_load load = bench_context_load(context, BENCH_GET);
    return run(context, &load);
}

enum status bench_list_run(struct bench_context *context)
{
    TRY(prepare(context));
    struct bench_load load = bench_context_load(context, BENCH_LIST);
    return run(context, &load);
}

enum status bench_load_all_run(struct bench_context *context)
{
    struct bench_load load = bench_context_load(context, BENCH_PUT);
    load.total = load.key_space;
    return run(context, &load);
}

enum status bench_ready_run(struct bench_context *context)
{
    struct bench_load load = bench_context_load(context, BENCH_GET);
    load.order = BENCH_SEQUENTIAL;
    load.total = load.connections = load.pipeline = load.threads = 1;
    uint64_t give_up_ns = bench_now_ns() + context->options.duration_ns;
    for (;;) {
        struct bench_outcome outcome;
        enum status status = bench_load_run(&load, &outcome, &context->error);
        uint64_t now = bench_now_ns();
        if (status == ST_OK && outcome.errors == 0) {
            bench_report_count(&context->report, "ready_at_monotonic_ns", now);
            return ST_OK;
        }
        if (status == ST_OK)
            error_set(&context->error, ST_IO, "%s", outcome.first_error);
        if (now >= give_up_ns)
            return context->error.status;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

enum status bench_sink_run(struct bench_context *context)
{
    const struct bench_sink_config config = {
        .address = context->target.address.socket,
        .response_bytes = context->options.value_bytes,
        .fault = BENCH_SINK_ERROR_STATUS,
        .fault_every = context->options.fail_every,
    };
    struct bench_sink *sink;
    TRY(bench_sink_new(&config, &sink, &context->error));
    bench_sink_serve(sink);
    bench_sink_free(sink);
    return ST_OK;
}
