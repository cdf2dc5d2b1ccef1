/* check perf and check datascale: a load like etcdctl's, and whether the server stands it. */
#include "base/clock.h"
#include "base/progress.h"
#include "cmd/ctl/admin/tools/check_load.h"
#include "cmd/ctl/live/fetch.h"

#include <inttypes.h>

/* etcdctl's numbers. */
struct workload {
    const char *name, *long_name;
    size_t perf_clients;
    uint64_t perf_per_second;
    size_t scale_clients;
    uint64_t scale_keys;
};

enum {
    PERF_SECONDS = 60,
    PERF_KEY_BYTES = 256,
    PERF_VALUE_BYTES = 1024,
    SCALE_KEY_BYTES = 512,
    SCALE_VALUE_BYTES = 512,
    CLEANUP_MS = 30000,
};

static const struct workload workloads[] = {
    {"s", "small", 50, 150, 50, 10000},
    {"m", "medium", 200, 1000, 200, 100000},
    {"l", "large", 500, 8000, 500, 1000000},
    {"xl", "xLarge", 1000, 15000, 1000, 3000000},
};

static const struct workload *find_workload(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(workloads); i++) {
        if (strcmp(name, workloads[i].name) == 0 || strcmp(name, workloads[i].long_name) == 0)
            return &workloads[i];
    }
    return NULL;
}

/* -- Before -- */

/* The keys are deleted afterwards, so a prefix that others use is refused. */
static int refuse_keys(struct ctl *ctl, const char *prefix)
{
    int code;
    vigil_client *client = ctl_client(ctl, &code);
    if (!client)
        return code;
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = *prefix ? vigil_text(prefix) : vigil_bytes_of("", 1);
    void *end = arena_alloc(ctl->arena, strlen(prefix) + 1);
    request.range_end = end ? vigil_prefix_end(vigil_text(prefix), end) : request.key;
    request.limit = 1;
    vigil_call *call = vigil_range(client, &request);
    if (vigil_call_run(call) != VIGIL_OK) {
        code = ctl_fail_with(ctl, vigil_call_error(call));
    } else if (vigil_range_result(call)->kv_count) {
        const char *quote =
            ctl->command->run == admin_check_perf && ctl->style != CTL_ETCDCTL_3_4 ? "'" : "";
        code = ctl_fail(ctl, CTL_INVALID_INPUT,
                        "prefix \"%s\" has keys. Delete with %setcdctl del --prefix %s%s first",
                        prefix, quote, prefix, quote);
    }
    vigil_call_free(call);
    return code;
}

/* -- After -- */

static int compact(struct ctl *ctl, int64_t revision)
{
    fprintf(ctl->out, "Compacting with revision %" PRId64 "\n", revision);
    vigil_call *call = vigil_compact(ctl->client, revision, 1);
    vigil_call_set_timeout(call, CLEANUP_MS);
    int code = CTL_OK;
    if (vigil_call_run(call) != VIGIL_OK)
        code = ctl_fail_with(ctl, vigil_call_error(call));
    else
        fprintf(ctl->out, "Compacted with revision %" PRId64 "\n", revision);
    vigil_call_free(call);
    return code;
}

static int defragment(struct ctl *ctl, const char *endpoint)
{
    int code;
    vigil_client *client = ctl_client_of(ctl, endpoint, &code);
    if (!client)
        return code;
    fprintf(ctl->out, "Defragmenting \"%s\"\n", endpoint);
    vigil_call *call = vigil_defragment(client);
    vigil_call_set_timeout(call, CLEANUP_MS);
    if (vigil_call_run(call) != VIGIL_OK)
        code = ctl_fail_with(ctl, vigil_call_error(call));
    else
        fprintf(ctl->out, "Defragmented \"%s\"\n", endpoint);
    vigil_call_free(call);
    vigil_client_free(client);
    return code;
}

static int defragment_all(struct ctl *ctl)
{
    struct ctl_endpoints endpoints = ctl_endpoints(ctl);
    int code = CTL_OK;
    for (size_t i = 0; i < endpoints.count && code == CTL_OK; i++)
        code = defragment(ctl, endpoints.texts[i]);
    return code;
}

/* Deletes the keys, and does what the flags want. */
static int clean_up(struct ctl *ctl)
{
    const struct check_flags *flags = ctl->flags;
    vigil_call *call = vigil_delete_prefix(ctl->client, vigil_text(flags->prefix));
    vigil_call_set_timeout(call, CLEANUP_MS);
    int code = CTL_OK;
    int64_t revision = 0;
    if (vigil_call_run(call) == VIGIL_OK)
        revision = vigil_call_header(call)->revision;
    else if (ctl->command->run == admin_check_perf && ctl->style != CTL_ETCDCTL_3_4)
        fprintf(ctl->out, "FAIL: Cleanup failed during key deletion: ERROR(%s)\n",
                admin_error_text(ctl, vigil_call_error(call)));
    else
        code = ctl_fail_with(ctl, vigil_call_error(call));
    vigil_call_free(call);
    if (code == CTL_OK && revision && flags->auto_compact)
        code = compact(ctl, revision);
    if (code == CTL_OK && flags->auto_defrag)
        code = defragment_all(ctl);
    return code;
}

static bool report_errors(struct ctl *ctl, const struct check_result *result)
{
    if (!result->error_count)
        return true;
    fputs("FAIL: too many errors\n", ctl->out);
    for (size_t i = 0; i < result->error_count; i++)
        fprintf(ctl->out, "FAIL: ERROR(%s) -> %" PRIu64 "\n", result->errors[i].text,
                result->errors[i].count);
    return false;
}

/* -- perf -- */

static void tell_perf(void *ctx, uint64_t completed, int64_t passed_ns)
{
    (void)completed;
    progress_show(ctx, (uint64_t)(passed_ns / NS_PER_S), PERF_SECONDS);
}

static int report_perf(struct ctl *ctl, const struct check_result *result, uint64_t wanted)
{
    bool ok = report_errors(ctl, result);
    bool fast = result->per_second / (double)wanted > 0.9;
    fprintf(ctl->out,
            fast ? "PASS: Throughput is %" PRIu64 " writes/s\n"
                 : "FAIL: Throughput too low: %" PRIu64 " writes/s\n",
            (uint64_t)result->per_second + 1);
    bool quick = result->slowest_s <= 0.5;
    fprintf(ctl->out,
            quick ? "PASS: Slowest request took %fs\n" : "Slowest request took too long: %fs\n",
            result->slowest_s);
    bool even = result->stddev_s <= 0.1;
    fprintf(ctl->out, even ? "PASS: Stddev is %fs\n" : "Stddev too high: %fs\n", result->stddev_s);
    ok = ok && fast && quick && even;
    fputs(ok ? "PASS\n" : "FAIL\n", ctl->out);
    return ok ? CTL_OK : CTL_ERROR;
}

int admin_check_perf(struct ctl *ctl)
{
    const struct check_flags *flags = ctl->flags;
    const struct workload *workload = find_workload(flags->load);
    if (!workload)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unknown load option %s", flags->load);
    int code = refuse_keys(ctl, flags->prefix);
    if (code != CTL_OK)
        return code;
    struct progress progress;
    progress_init(&progress, stderr, "check perf", "");
    struct check_plan plan = {
        .clients = workload->perf_clients,
        .prefix = flags->prefix,
        .key_bytes = PERF_KEY_BYTES,
        .value_bytes = PERF_VALUE_BYTES,
        .per_second = workload->perf_per_second,
        .duration_ns = PERF_SECONDS * NS_PER_S,
        .tell = tell_perf,
        .ctx = &progress,
    };
    struct check_result result;
    ctl_catch_signals();
    code = check_load_run(ctl, &plan, &result);
    progress_end(&progress);
    if (code == CTL_OK)
        code = clean_up(ctl);
    return code == CTL_OK ? report_perf(ctl, &result, workload->perf_per_second) : code;
}

/* -- datascale -- */

#define RESIDENT_MEMORY "process_resident_memory_bytes"

/* The resident memory of the server; 0: it cannot be read, and the reason was printed. */
static double memory_of(struct ctl *ctl, const char *endpoint)
{
    AUTO(metrics_fini) struct metrics metrics = {0};
    vigil_error error;
    double bytes = 0;
    struct fetch *fetch = fetch_new(ctl, endpoint, &error);
    if (!fetch || !fetch_run(fetch, &metrics, &error))
        fprintf(ctl->out, "fetch error: %s\n", error.text);
    else if (!metrics_has(&metrics, RESIDENT_MEMORY))
        fputs("could not find: " RESIDENT_MEMORY "\n", ctl->out);
    else
        bytes = metrics_sum(&metrics, RESIDENT_MEMORY, NULL);
    fetch_free(fetch);
    return bytes;
}

static int fail_memory(struct ctl *ctl, const char *when)
{
    fprintf(ctl->out, "FAIL: Could not read process_resident_memory_bytes %s the put operations.\n",
            when);
    return CTL_ERROR;
}

struct scale_bar {
    struct progress progress;
    uint64_t keys;
};

static void tell_scale(void *ctx, uint64_t completed, int64_t passed_ns)
{
    struct scale_bar *bar = ctx;
    (void)passed_ns;
    progress_show(&bar->progress, completed, bar->keys);
}

static int load_scale(struct ctl *ctl, const struct workload *workload,
                      struct check_result *ret_result)
{
    const struct check_flags *flags = ctl->flags;
    struct scale_bar bar = {.keys = workload->scale_keys};
    progress_init(&bar.progress, stderr, "check datascale", "keys");
    struct check_plan plan = {
        .clients = workload->scale_clients,
        .prefix = flags->prefix,
        .key_bytes = SCALE_KEY_BYTES,
        .value_bytes = SCALE_VALUE_BYTES,
        .requests = workload->scale_keys,
        .tell = tell_scale,
        .ctx = &bar,
    };
    fprintf(ctl->out,
            "Start data scale check for work load [%" PRIu64 " key-value pairs, %d bytes per "
            "key-value, %zu concurrent clients].\n",
            workload->scale_keys, SCALE_KEY_BYTES + SCALE_VALUE_BYTES, workload->scale_clients);
    fflush(ctl->out);
    int code = check_load_run(ctl, &plan, ret_result);
    progress_end(&bar.progress);
    return code;
}

int admin_check_datascale(struct ctl *ctl)
{
    const struct check_flags *flags = ctl->flags;
    const struct workload *workload = find_workload(flags->load);
    if (!workload)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unknown load option %s", flags->load);
    int code = refuse_keys(ctl, flags->prefix);
    if (code != CTL_OK)
        return code;
    const char *endpoint = ctl_endpoints(ctl).texts[0];
    double before = memory_of(ctl, endpoint);
    if (before == 0)
        return fail_memory(ctl, "before");
    struct check_result result;
    ctl_catch_signals();
    code = load_scale(ctl, workload, &result);
    double after = code == CTL_OK ? memory_of(ctl, endpoint) : 0;
    if (code == CTL_OK && after == 0)
        return fail_memory(ctl, "after");
    if (code == CTL_OK)
        code = clean_up(ctl);
    if (code != CTL_OK)
        return code;
    if (!report_errors(ctl, &result))
        return CTL_ERROR;
    fprintf(ctl->out, "PASS: Approximate system memory used : %.2f MB.\n",
            (after - before) / (1024 * 1024));
    return CTL_OK;
}
