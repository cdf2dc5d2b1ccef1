#include "load/context.h"
#include "load/lease_client.h"

#define WAIT_NS UINT64_C(20000000)
#define QUIET_NS UINT64_C(30000000000) /* without an answer: what is missing does not come */

struct leasing {
    struct bench_context *context;
    struct bench_lease_client *client;
    const struct bench_lease_counts *counts;
    bool has_usage;
    struct bench_usage before, granted, after;
};

static enum status read_usage(const struct leasing *leasing, struct bench_usage *usage)
{
    return bench_usage_read(&leasing->context->target.processes, usage);
}

static enum status turn(struct leasing *leasing)
{
    TRY(bench_lease_client_turn(leasing->client, WAIT_NS, &leasing->context->error));
    if (leasing->counts->trouble.errors)
        return error_set(&leasing->context->error, ST_IO, "%s",
                         leasing->counts->trouble.first_error);
    return ST_OK;
}

static enum status grant_all(struct leasing *leasing)
{
    uint64_t leases = leasing->context->options.total, seen = 0;
    uint64_t start_ns = bench_now_ns(), last_ns = start_ns;
    while (leasing->counts->granted < leases) {
        TRY(turn(leasing));
        if (leasing->counts->granted != seen)
            last_ns = bench_now_ns();
        seen = leasing->counts->granted;
        if (bench_now_ns() - last_ns > QUIET_NS)
            return error_set(&leasing->context->error, ST_IO, "only %llu of %llu were granted",
                             (unsigned long long)seen, (unsigned long long)leases);
    }
    double seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    struct bench_report *report = &leasing->context->report;
    bench_report_count(report, "leases", leases);
    bench_report_number(report, "grant_seconds", seconds);
    bench_report_number(report, "grants_per_second", (double)leases / seconds);
    bench_report_latency(report, "grant_latency", &leasing->counts->grant_latency);
    return ST_OK;
}

static enum status renew(struct leasing *leasing)
{
    const struct bench_options *options = &leasing->context->options;
    uint64_t start_ns = bench_now_ns();
    bench_lease_client_renew(leasing->client);
    while (bench_now_ns() - start_ns < options->duration_ns)
        TRY(turn(leasing));
    bench_lease_client_stop(leasing->client);
    while (!bench_lease_client_idle(leasing->client)) {
        TRY(turn(leasing));
        if (bench_now_ns() - start_ns > options->duration_ns + QUIET_NS)
            return error_set(&leasing->context->error, ST_IO, "renewals are not answered");
    }
    double seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    double rate = (double)leasing->counts->renewed / seconds;
    struct bench_report *report = &leasing->context->report;
    leasing->has_usage = leasing->has_usage && read_usage(leasing, &leasing->after) == ST_OK;
    bench_report_count(report, "operations", leasing->counts->renewed);
    bench_report_number(report, "operations_per_second", rate);
    bench_report_latency(report, "latency", &leasing->counts->renew_latency);
    if (leasing->has_usage)
        bench_report_usage(report, &leasing->granted, &leasing->after, rate);
    return ST_OK;
}

static enum status measure(struct leasing *leasing)
{
    struct bench_context *context = leasing->context;
    const struct bench_options *options = &context->options;
    leasing->has_usage =
        context->target.processes.server && read_usage(leasing, &leasing->before) == ST_OK;
    TRY(bench_lease_client_new(
        &(struct bench_lease_config){
            .target = &context->target,
            .connections = (uint32_t)options->connections,
            .pipeline = (uint32_t)options->pipeline,
            .leases = options->total,
        },
        &leasing->client, &context->error));
    leasing->counts = bench_lease_client_counts(leasing->client);
    TRY(grant_all(leasing));
    leasing->has_usage = leasing->has_usage && read_usage(leasing, &leasing->granted) == ST_OK;
    TRY(renew(leasing));
    if (leasing->has_usage) {
        double kb = (double)leasing->after.anonymous_kb - (double)leasing->before.anonymous_kb;
        bench_report_number(&context->report, "server_bytes_per_lease",
                            kb * 1024 / (double)options->total);
    }
    return ST_OK;
}

enum status bench_lease_run(struct bench_context *context)
{
    if (context->options.total == 0)
        return error_set(&context->error, ST_INVALID, "--total: how many leases");
    struct leasing leasing = {.context = context};
    enum status status = measure(&leasing);
    bench_lease_client_free(leasing.client);
    return status;
}
