#include "base/clock.h"
#include "base/metric/counter.h"
#include "base/metric/page.h"
#include "kubeclient/call/kube.h"
#include "tier/mirror/mirror_private.h"

#include <stdio.h>

enum { LABEL_BYTES = 2 * TIER_NAME_PART_BYTES_MAX + 1, LABELS_BYTES = 4 * LABEL_BYTES };

static const char *const phase_names[] = {
    [TIER_STARTING] = "starting",
    [TIER_LOADING] = "loading",
    [TIER_SERVING] = "serving",
    [TIER_REFUSED] = "refused",
};

static const char *const encoding_names[TIER_ENCODINGS] = {
    [TIER_JSON] = "json",
    [TIER_PROTOBUF] = "protobuf",
    [TIER_METADATA_JSON] = "metadata-json",
    [TIER_METADATA_PROTOBUF] = "metadata-protobuf",
};

/* One value of each collection. */
struct family {
    const char *name;
    enum metric_kind kind;
    const char *help;
    double (*value)(const struct tier_collection_counters *counters, int64_t now_ns);
};

#define COUNTER_VALUE(name, field)                                                          \
    static double value_of_##name(const struct tier_collection_counters *c, int64_t now_ns) \
    {                                                                                       \
        (void)now_ns;                                                                       \
        return (double)counter_get(&c->field);                                              \
    }

COUNTER_VALUE(objects, objects)
COUNTER_VALUE(bytes, bytes)
COUNTER_VALUE(generations, generations)
COUNTER_VALUE(restarts, restarts)
COUNTER_VALUE(events, events)
COUNTER_VALUE(fences, fences)
COUNTER_VALUE(fences_failed, fences_failed)
COUNTER_VALUE(waits, waits)
COUNTER_VALUE(waits_failed, waits_failed)

static double value_of_fence_seconds(const struct tier_collection_counters *c, int64_t now_ns)
{
    (void)now_ns;
    return (double)counter_get(&c->fence_ns) / (double)NS_PER_S;
}

static double seconds_since(const _Atomic int64_t *at_ns, int64_t now_ns)
{
    int64_t at = atomic_load_explicit(at_ns, memory_order_relaxed);
    return at && now_ns > at ? (double)(now_ns - at) / (double)NS_PER_S : 0;
}

static double value_of_lag(const struct tier_collection_counters *c, int64_t now_ns)
{
    return seconds_since(&c->heard_ns, now_ns);
}

static double value_of_age(const struct tier_collection_counters *c, int64_t now_ns)
{
    return seconds_since(&c->began_ns, now_ns);
}

static const struct family families[] = {
    {"vigil_tier_objects", METRIC_GAUGE, "Objects of a mirrored collection.", value_of_objects},
    {"vigil_tier_bytes", METRIC_GAUGE, "Bytes of the objects of a mirrored collection.",
     value_of_bytes},
    {"vigil_tier_lag_seconds", METRIC_GAUGE,
     "Time since the server has last shown that the collection is complete.", value_of_lag},
    {"vigil_tier_age_seconds", METRIC_GAUGE, "Time since the state of the collection was read.",
     value_of_age},
    {"vigil_tier_states_total", METRIC_COUNTER,
     "How often the whole state of the collection was read.", value_of_generations},
    {"vigil_tier_watches_total", METRIC_COUNTER,
     "Watches of the collection that were requested from the server.", value_of_restarts},
    {"vigil_tier_events_total", METRIC_COUNTER, "Changes that the server has sent.",
     value_of_events},
    {"vigil_tier_fences_total", METRIC_COUNTER,
     "Lists of metadata that were begun to prove that the collection is current.", value_of_fences},
    {"vigil_tier_fences_failed_total", METRIC_COUNTER, "Such lists that proved nothing.",
     value_of_fences_failed},
    {"vigil_tier_fences_seconds_total", METRIC_COUNTER, "Time that all of them have taken.",
     value_of_fence_seconds},
    {"vigil_tier_waits_total", METRIC_COUNTER, "Reads that waited for the collection.",
     value_of_waits},
    {"vigil_tier_waits_failed_total", METRIC_COUNTER, "Reads that waited in vain.",
     value_of_waits_failed},
};

static const char *write_labels(const struct tier_follow *follow, char to[LABELS_BYTES])
{
    const struct tier_name *name = &follow->collection.name;
    char group[LABEL_BYTES], version[LABEL_BYTES], resource[LABEL_BYTES];
    snprintf(to, LABELS_BYTES, "group=\"%s\",version=\"%s\",resource=\"%s\",encoding=\"%s\"",
             metric_page_escape((const char *)name->group.ptr, group, sizeof(group)),
             metric_page_escape((const char *)name->version.ptr, version, sizeof(version)),
             metric_page_escape((const char *)name->resource.ptr, resource, sizeof(resource)),
             encoding_names[name->encoding]);
    return to;
}

static void write_phases(struct tier_mirror *m, struct metric_page *page)
{
    uint64_t counts[COUNT_OF(phase_names)] = {0};
    struct tier_follow *follow;
    struct tier_view view;
    LIST_FOREACH (follow, &m->all, in_mirror) {
        tier_collection_look(&follow->collection, &view);
        counts[view.phase]++;
    }
    metric_page_head(page, "vigil_tier_collections", METRIC_GAUGE, "Collections by phase.");
    for (size_t i = 0; i < COUNT_OF(phase_names); i++) {
        char labels[32];
        snprintf(labels, sizeof(labels), "phase=\"%s\"", phase_names[i]);
        metric_page_row(page, "vigil_tier_collections", labels, counts[i]);
    }
}

void tier_mirror_write_metrics(struct tier_mirror *m, struct metric_page *page)
{
    int64_t now_ns = clock_mono_ns(loop_clock(m->kube->driver.loop));
    struct tier_follow *follow;
    char labels[LABELS_BYTES];
    LOCK_SCOPE(&m->lock);
    write_phases(m, page);
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        const struct family *family = &families[i];
        metric_page_head(page, family->name, family->kind, family->help);
        LIST_FOREACH (follow, &m->all, in_mirror)
            metric_page_row_real(page, family->name, write_labels(follow, labels),
                                 family->value(&follow->collection.counters, now_ns));
    }
}
