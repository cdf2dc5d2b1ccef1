#include "kube/call/deadline.h"

#define LAG_NS (20 * NS_PER_MS)

int64_t kube_call_time_left_ns(const struct kube_call *call)
{
    int64_t asked = call->query.request_timeout_ns;
    int64_t spent = clock_mono_ns(call->api->clock) - call->started_ns;
    int64_t left = (asked > 0 && asked < KUBE_CALL_TIME_NS ? asked : KUBE_CALL_TIME_NS) - spent;
    if (call->verb == KUBE_VERB_WATCH)
        return CLOCK_NEVER;
    return left > 0 ? left : 0;
}

int64_t kube_call_patience_ns(const struct kube_call *call)
{
    int64_t left = kube_call_time_left_ns(call);
    return left ? clock_add(left, LAG_NS) : 0;
}

bool kube_call_fail_late(const struct kube_call *call, struct kube_status *status)
{
    bool reads = call->verb == KUBE_VERB_GET || call->verb == KUBE_VERB_LIST;
    return kube_fail(status, KUBE_TIMEOUT,
                     reads ? "Timeout: request did not complete within the allotted timeout"
                           : "Timeout: request did not complete within requested timeout - context "
                             "deadline exceeded");
}
