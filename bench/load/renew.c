/* Renewals of Leases, and of the status of pods, on the Kubernetes API. */
#include "load/context.h"
#include "load/pod.h"
#include "load/renew_client.h"

#define WAIT_NS UINT64_C(20000000)
#define QUIET_NS UINT64_C(30000000000) /* without an answer: what is missing does not come */

/* As a kubelet makes it, but without its owner, which would have to exist: the node. */
#define LEASE                                                                               \
    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":" \
    "\"" BENCH_NODE_NAME BENCH_ZEROS "\",\"namespace\":\"default\"},\"spec\":{"             \
    "\"holderIdentity\":\"" BENCH_NODE_NAME "\",\"leaseDurationSeconds\":40,\"renewTime\":" \
    "\"2026-11-19T20:00:00.000000Z\"}}"

struct renewing {
    struct bench_context *context;
    struct bench_renew_client *client; /* owned */
    const struct bench_renew_counts *counts;
    uint64_t nodes; /* on all connections */
};

static enum status turn(struct renewing *renewing)
{
    TRY(bench_renew_client_turn(renewing->client, WAIT_NS, &renewing->context->error));
    if (renewing->counts->trouble.errors)
        return error_set(&renewing->context->error, ST_IO, "%s",
                         renewing->counts->trouble.first_error);
    return ST_OK;
}

static enum status await_idle(struct renewing *renewing)
{
    uint64_t give_up_ns = bench_now_ns() + QUIET_NS;
    while (!bench_renew_client_idle(renewing->client)) {
        TRY(turn(renewing));
        if (bench_now_ns() > give_up_ns)
            return error_set(&renewing->context->error, ST_IO,
                             "%llu objects were read and %llu renewed; the rest is not answered",
                             (unsigned long long)renewing->counts->read,
                             (unsigned long long)renewing->counts->renewed);
    }
    return ST_OK;
}

static enum status renew_until(struct renewing *renewing, uint64_t until_ns)
{
    while (bench_now_ns() < until_ns)
        TRY(turn(renewing));
    return ST_OK;
}

static enum status measure(struct renewing *renewing)
{
    struct bench_context *context = renewing->context;
    const struct bench_options *options = &context->options;
    struct bench_report *report = &context->report;
    struct bench_usage before, after;
    TRY(await_idle(renewing));
    TRY(bench_renew_client_renew(renewing->client, &context->error));
    TRY(renew_until(renewing, bench_now_ns() + options->warmup_ns));
    bench_renew_client_record(renewing->client);
    uint64_t start_ns = bench_now_ns(), from = renewing->counts->renewed;
    uint64_t missed = renewing->counts->missed, own_ns = bench_usage_own_cpu_ns();
    bool has_usage = context->target.processes.server &&
                     bench_usage_read(&context->target.processes, &before) == ST_OK;
    TRY(renew_until(renewing, start_ns + options->duration_ns));
    has_usage = has_usage && bench_usage_read(&context->target.processes, &after) == ST_OK;
    double seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    uint64_t renewed = renewing->counts->renewed - from;
    bench_report_count(report, "nodes", renewing->nodes);
    bench_report_count(report, "operations", renewed);
    bench_report_count(report, "missed", renewing->counts->missed - missed);
    bench_report_number(report, "operations_per_second", (double)renewed / seconds);
    bench_report_latency(report, "latency", &renewing->counts->latency);
    bench_report_number(report, "generator_cpu_us_per_operation",
                        (double)(bench_usage_own_cpu_ns() - own_ns) / 1e3 / (double)renewed);
    if (has_usage)
        bench_report_usage(report, &before, &after, (double)renewed / seconds);
    bench_renew_client_stop(renewing->client);
    return await_idle(renewing);
}

enum status bench_kube_renew_run(struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    const struct bench_renew_config config = {
        .target = &context->target,
        .connections = (uint32_t)options->connections,
        .nodes = (uint32_t)options->pipeline,
        .rate = options->rate,
        .pods = options->pods,
    };
    struct renewing renewing = {.context = context,
                                .nodes = options->connections * options->pipeline};
    context->options.key_space = renewing.nodes;
    if (!config.pods)
        context->options.path = BENCH_LEASES_PATH;
    TRY(bench_kube_prepare(context, config.pods ? SLICE_EMPTY : SLICE_LITERAL(LEASE)));
    enum status status = bench_renew_client_new(&config, &renewing.client, &context->error);
    renewing.counts = renewing.client ? bench_renew_client_counts(renewing.client) : NULL;
    if (status == ST_OK)
        status = measure(&renewing);
    bench_renew_client_free(renewing.client);
    return status;
}
