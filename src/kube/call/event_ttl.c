#include "kube/call/event_ttl.h"

#include "base/clock.h"
#include "kube/resource/kind.h"

bool kube_kind_expires(const struct kube_kind *kind)
{
    return strcmp(kind->storage_prefix, "/registry/events/") == 0;
}

bool kube_event_lease_take(struct kube_event_lease *current, int64_t now_ns, int64_t *ret_lease)
{
    if (!current->lease || current->puts >= KUBE_LEASE_PUTS_MAX || now_ns >= current->until_ns)
        return false;
    current->puts++;
    *ret_lease = current->lease;
    return true;
}

void kube_event_lease_set(struct kube_event_lease *current, int64_t lease, int64_t now_ns)
{
    *current = (struct kube_event_lease){
        .lease = lease, .until_ns = clock_add(now_ns, KUBE_LEASE_REUSE_S * NS_PER_S)};
}
