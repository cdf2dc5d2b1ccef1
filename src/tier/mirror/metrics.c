#include "base/clock.h"
#include "base/metric/counter.h"
#include "base/metric/page.h"
#include "kubeclient/call/kube.h"
#include "tier/mirror/mirror_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LABEL_BYTES = 2 * TIER_NAME_PART_BYTES_MAX + 1,
    LABELS_BYTES = 4 * LABEL_BYTES,
    FAMILIES_MAX = 16,
};

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

/* A collection as it is at one moment, so that the page is written without the mirror's lock. */
struct seen {
    char labels[LABELS_BYTES], reason[2 * TIER_REASON_BYTES];
    enum tier_phase phase;
    bool connected;
    double values[FAMILIES_MAX];
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
COUNTER_VALUE(held_bytes, held_bytes)
COUNTER_VALUE(generations, generations)
COUNTER_VALUE(restarts, restarts)
COUNTER_VALUE(events, events)
COUNTER_VALUE(throttled, throttled)
COUNTER_VALUE(fences, fences)
COUNTER_VALUE(fences_failed, fences_failed)
COUNTER_VALUE(waits, waits)
COUNTER_VALUE(waits_failed, waits_failed)

static double value_of_fence_seconds(const struct tier_collection_counters *c, int64_t now_ns)
{
    (void)now_ns;
    return (double)counter_get(&c->fence_ns) / (double)NS_PER_S;
}

/* NaN: it has not happened yet. */
static double seconds_since(const _Atomic int64_t *at_ns, int64_t now_ns)
{
    int64_t at = atomic_load_explicit(at_ns, memory_order_relaxed);
    if (!at)
        return NAN;
    return now_ns > at ? (double)(now_ns - at) / (double)NS_PER_S : 0;
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
    {"vigil_tier_objects", METRIC_GAUGE,
     "Objects of a mirrored collection, or of the state that is being read.", value_of_objects},
    {"vigil_tier_bytes", METRIC_GAUGE, "Bytes of these objects in the encoding of the collection.",
     value_of_bytes},
    {"vigil_tier_held_bytes", METRIC_GAUGE,
     "Memory and disk that the objects take, with their keys, also while the state is read again "
     "(--upstream-resource-bytes and --upstream-mirror-bytes limit it).",
     value_of_held_bytes},
    {"vigil_tier_lag_seconds", METRIC_GAUGE,
     "Time since the kube-apiserver has last shown that the mirror has everything: by an event, a "
     "bookmark (about one a minute) or a fence. NaN: not yet.",
     value_of_lag},
    {"vigil_tier_age_seconds", METRIC_GAUGE,
     "Time since the whole state of the collection was read. NaN: not yet.", value_of_age},
    {"vigil_tier_states_total", METRIC_COUNTER,
     "How often the whole state of the collection was read.", value_of_generations},
    {"vigil_tier_upstream_watches_total", METRIC_COUNTER,
     "Watches of the collection that were requested from the kube-apiserver.", value_of_restarts},
    {"vigil_tier_upstream_events_total", METRIC_COUNTER,
     "Changes of the collection that the kube-apiserver has sent.", value_of_events},
    {"vigil_tier_upstream_throttled_total", METRIC_COUNTER,
     "Lists and watches of the collection that the kube-apiserver has refused with 429.",
     value_of_throttled},
    {"vigil_tier_fences_total", METRIC_COUNTER,
     "Lists of metadata that were begun to prove that the collection is current.", value_of_fences},
    {"vigil_tier_fences_failed_total", METRIC_COUNTER,
     "Those of these lists that failed or were not matched in time: the reads were passed on.",
     value_of_fences_failed},
    {"vigil_tier_fences_seconds_total", METRIC_COUNTER, "Seconds that all of them have taken.",
     value_of_fence_seconds},
    {"vigil_tier_waits_total", METRIC_COUNTER,
     "Reads that waited for a state, a version or a fence of the collection.", value_of_waits},
    {"vigil_tier_waits_failed_total", METRIC_COUNTER,
     "Those of these reads that waited in vain, and were passed on or answered with 429.",
     value_of_waits_failed},
};
_Static_assert(COUNT_OF(families) <= FAMILIES_MAX, "all have a place");

static void write_labels(const struct tier_name *name, char to[LABELS_BYTES])
{
    char group[LABEL_BYTES], version[LABEL_BYTES], resource[LABEL_BYTES];
    snprintf(to, LABELS_BYTES, "group=\"%s\",version=\"%s\",resource=\"%s\",encoding=\"%s\"",
             metric_page_escape((const char *)name->group.ptr, group, sizeof(group)),
             metric_page_escape((const char *)name->version.ptr, version, sizeof(version)),
             metric_page_escape((const char *)name->resource.ptr, resource, sizeof(resource)),
             encoding_names[name->encoding]);
}

static void look(struct tier_follow *follow, int64_t now_ns, struct seen *ret_seen)
{
    struct tier_view view;
    tier_collection_look(&follow->collection, &view);
    write_labels(&follow->collection.name, ret_seen->labels);
    (void)metric_page_escape(view.reason, ret_seen->reason, sizeof(ret_seen->reason));
    ret_seen->phase = view.phase;
    ret_seen->connected = view.connected;
    for (size_t i = 0; i < COUNT_OF(families); i++)
        ret_seen->values[i] = families[i].value(&follow->collection.counters, now_ns);
}

/* With the lock held. NULL: there is no memory, or there are none. */
static struct seen *look_at_all(struct tier_mirror *m, size_t *ret_count)
{
    int64_t now_ns = clock_mono_ns(loop_clock(m->kube->driver.loop));
    struct seen *all = calloc(list_length(&m->all) + 1, sizeof(*all));
    struct tier_follow *follow;
    size_t count = 0;
    if (!all)
        return NULL;
    LIST_FOREACH (follow, &m->all, in_mirror)
        look(follow, now_ns, &all[count++]);
    *ret_count = count;
    return all;
}

static void write_phases(const struct seen *all, size_t count, struct metric_page *page)
{
    static const char name[] = "vigil_tier_collections";
    uint64_t counts[COUNT_OF(phase_names)] = {0};
    for (size_t i = 0; i < count; i++)
        counts[all[i].phase]++;
    metric_page_head(page, name, METRIC_GAUGE,
                     "Collections of the mirror by phase: serving ones answer reads, refused ones "
                     "are not mirrored, and their reads are passed on.");
    for (size_t i = 0; i < COUNT_OF(phase_names); i++) {
        char labels[32];
        snprintf(labels, sizeof(labels), "phase=\"%s\"", phase_names[i]);
        metric_page_row(page, name, labels, counts[i]);
    }
}

static void write_info(const struct seen *all, size_t count, struct metric_page *page)
{
    static const char info[] = "vigil_tier_collection_info", connected[] = "vigil_tier_connected";
    char labels[sizeof(all->labels) + sizeof(all->reason) + 64];
    metric_page_head(page, info, METRIC_GAUGE,
                     "1 for each collection, with its phase, and the reason if it is refused or "
                     "its last request has failed.");
    for (size_t i = 0; i < count; i++) {
        snprintf(labels, sizeof(labels), "%s,phase=\"%s\",reason=\"%s\"", all[i].labels,
                 phase_names[all[i].phase], all[i].reason);
        metric_page_row(page, info, labels, 1);
    }
    metric_page_head(page, connected, METRIC_GAUGE,
                     "1 while the kube-apiserver sends the changes of the collection.");
    for (size_t i = 0; i < count; i++)
        metric_page_row(page, connected, all[i].labels, all[i].connected);
}

void tier_mirror_write_metrics(struct tier_mirror *m, struct metric_page *page)
{
    size_t count = 0;
    lock_take(&m->lock);
    struct seen *all = look_at_all(m, &count);
    lock_release(&m->lock);
    if (!all) {
        page->status = ST_NOMEM;
        return;
    }
    write_phases(all, count, page);
    metric_page_gauge(page, "vigil_tier_history_bytes",
                      "Memory and disk of the mirror's history (--kube-history-bytes limits it).",
                      counter_get(&m->history_bytes));
    write_info(all, count, page);
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        metric_page_head(page, families[i].name, families[i].kind, families[i].help);
        for (size_t k = 0; k < count; k++)
            metric_page_row_real(page, families[i].name, all[k].labels, all[k].values[i]);
    }
    free(all);
}
