#include "kube/jobs/manager_lease.h"

#include "codec/kube_time.h"
#include "kube/types/object/object.h"

static bool is_long_past(const struct kube_object *object, int64_t duration_s, int64_t real_ns)
{
    struct slice text;
    int64_t renewed_s;
    int32_t nanos;
    return kube_object_field(object, SLICE_LITERAL("spec.renewTime"), &text) &&
           kube_time_read(text, &renewed_s, &nanos) &&
           renewed_s + duration_s + KUBE_MANAGER_LEASE_CLOCKS_S < real_ns / NS_PER_S;
}

static int64_t duration_of(const struct kube_object *object)
{
    struct slice text;
    uint64_t seconds;
    if (!kube_object_field(object, SLICE_LITERAL("spec.leaseDurationSeconds"), &text) ||
        !slice_decimal(text, &seconds))
        return KUBE_MANAGER_LEASE_S;
    return seconds < KUBE_MANAGER_LEASE_MAX_S ? (int64_t)seconds : KUBE_MANAGER_LEASE_MAX_S;
}

void kube_manager_lease_note(struct kube_manager_lease *lease, int64_t revision, struct slice value,
                             int64_t now_ns, int64_t real_ns)
{
    bool first = !lease->revision, held = value.len;
    int64_t duration_s = KUBE_MANAGER_LEASE_S;
    struct kube_object object;
    struct slice holder = SLICE_EMPTY;
    if (lease->revision == revision)
        return;
    if (value.len && kube_object_parse(value, &object) == ST_OK) {
        duration_s = duration_of(&object);
        held = kube_object_field(&object, SLICE_LITERAL("spec.holderIdentity"), &holder) &&
               holder.len && !(first && is_long_past(&object, duration_s, real_ns));
    }
    lease->revision = revision;
    lease->until_ns = held ? clock_add(now_ns, duration_s * NS_PER_S) : 0;
}
