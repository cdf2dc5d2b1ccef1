#include "kube/policy/security/metrics.h"

#include "base/xalloc.h"

#include <stdio.h>

enum {
    LEVELS = POD_LEVEL_RESTRICTED + 1,
    /* 1.0 to that of the server, "latest" and "future" */
    LATEST = POD_SECURITY_SERVER_MINOR + 1,
    FUTURE,
    VERSIONS,
    REQUESTS = 2 * 2 * POD_PARTS,
    LABEL_BYTES = 256,
};

struct pod_security_metrics {
    _Atomic uint64_t evaluations[2 * POD_MODES * LEVELS * VERSIONS * REQUESTS];
    _Atomic uint64_t exemptions[REQUESTS], errors[REQUESTS];
};

struct pod_security_metrics *pod_security_metrics_new(void)
{
    return xcalloc(1, sizeof(struct pod_security_metrics));
}

void pod_security_metrics_free(struct pod_security_metrics *metrics)
{
    free(metrics);
}

/* -- Counting -- */

static void increment(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static unsigned number_of(const struct pod_request *request)
{
    return (request->updates * 2u + request->is_controller) * POD_PARTS + request->part;
}

/* All versions of the level "privileged" are the same. */
static unsigned version_of(const struct pod_standard *standard)
{
    if (standard->level == POD_LEVEL_PRIVILEGED || standard->minor == POD_VERSION_LATEST)
        return LATEST;
    return standard->minor <= POD_SECURITY_SERVER_MINOR ? (unsigned)standard->minor : FUTURE;
}

static unsigned place_of(const struct pod_request *request, enum pod_mode mode,
                         const struct pod_standard *standard, bool allowed)
{
    unsigned at = (allowed * (unsigned)POD_MODES + mode) * LEVELS + standard->level;
    return (at * VERSIONS + version_of(standard)) * REQUESTS + number_of(request);
}

void pod_security_count(struct pod_security_metrics *metrics, const struct pod_request *request,
                        enum pod_mode mode, const struct pod_standard *standard, bool allowed)
{
    if (metrics)
        increment(&metrics->evaluations[place_of(request, mode, standard, allowed)]);
}

void pod_security_count_exempt(struct pod_security_metrics *metrics,
                               const struct pod_request *request)
{
    if (metrics)
        increment(&metrics->exemptions[number_of(request)]);
}

void pod_security_count_error(struct pod_security_metrics *metrics,
                              const struct pod_request *request)
{
    if (metrics)
        increment(&metrics->errors[number_of(request)]);
}

/* -- The page -- */

static void write_request(unsigned number, char to[LABEL_BYTES])
{
    static const char *const parts[] = {
        [POD_PART_WHOLE] = "",
        [POD_PART_EPHEMERAL_CONTAINERS] = "ephemeralcontainers",
        [POD_PART_RESIZE] = "resize",
    };
    unsigned kind = number / POD_PARTS;
    snprintf(to, LABEL_BYTES, "request_operation=\"%s\",resource=\"%s\",subresource=\"%s\"",
             kind / 2 ? "update" : "create", kind % 2 ? "controller" : "pod",
             parts[number % POD_PARTS]);
}

static void write_version(unsigned version, char to[16])
{
    if (version <= POD_SECURITY_SERVER_MINOR)
        snprintf(to, 16, "v1.%u", version);
    else
        snprintf(to, 16, "%s", version == LATEST ? "latest" : "future");
}

static void write_evaluation(unsigned at, uint64_t value, struct metric_page *page)
{
    static const char *const modes[] = {
        [POD_MODE_ENFORCE] = "enforce", [POD_MODE_AUDIT] = "audit", [POD_MODE_WARN] = "warn"};
    char request[LABEL_BYTES], version[16], labels[2 * LABEL_BYTES];
    unsigned rest = at / REQUESTS;
    write_request(at % REQUESTS, request);
    write_version(rest % VERSIONS, version);
    rest /= VERSIONS;
    snprintf(labels, sizeof(labels),
             "decision=\"%s\",mode=\"%s\",policy_level=\"%s\",policy_version=\"%s\",%s",
             rest / LEVELS / POD_MODES ? "allow" : "deny", modes[rest / LEVELS % POD_MODES],
             pod_level_name(rest % LEVELS), version, request);
    metric_page_row(page, "pod_security_evaluations_total", labels, value);
}

/* Kubernetes has some rows from the start. */
static bool is_usual(unsigned at)
{
    static const struct pod_standard privileged = {POD_LEVEL_PRIVILEGED, POD_VERSION_LATEST};
    for (unsigned updates = 0; updates < 2; updates++)
        if (at == place_of(&(struct pod_request){.updates = updates}, POD_MODE_ENFORCE, &privileged,
                           true))
            return true;
    return false;
}

static void write_requests(const char *name, const char *before, bool has_usual,
                           const _Atomic uint64_t counters[REQUESTS], struct metric_page *page)
{
    char request[LABEL_BYTES], labels[2 * LABEL_BYTES];
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t value = atomic_load_explicit(&counters[i], memory_order_relaxed);
        if (!value && !(has_usual && i % POD_PARTS == POD_PART_WHOLE))
            continue;
        write_request(i, request);
        snprintf(labels, sizeof(labels), "%s%s", before, request);
        metric_page_row(page, name, labels, value);
    }
}

void pod_security_metrics_write(const struct pod_security_metrics *metrics,
                                struct metric_page *page)
{
    metric_page_head(
        page, "pod_security_evaluations_total", METRIC_COUNTER,
        "Decisions of PodSecurity by one of the Pod Security Standards, without exempt "
        "requests.");
    for (unsigned i = 0; i < COUNT_OF(metrics->evaluations); i++) {
        uint64_t value = atomic_load_explicit(&metrics->evaluations[i], memory_order_relaxed);
        if (value || is_usual(i))
            write_evaluation(i, value, page);
    }
    metric_page_head(page, "pod_security_exemptions_total", METRIC_COUNTER,
                     "Requests that were exempt from PodSecurity.");
    write_requests("pod_security_exemptions_total", "", true, metrics->exemptions, page);
    metric_page_head(page, "pod_security_errors_total", METRIC_COUNTER,
                     "Requests for which PodSecurity could not read the labels of the namespace.");
    write_requests("pod_security_errors_total", "fatal=\"false\",", false, metrics->errors, page);
}
