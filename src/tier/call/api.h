/*
 * What the requests of one I/O thread share: the state of the watch tier's API
 * (tier/face/face.h creates it).
 */
#ifndef VIGIL_TIER_CALL_API_H
#define VIGIL_TIER_CALL_API_H

#include "base/random.h"
#include "engine/engine.h"
#include "kube/handlers/read/search_budget.h"
#include "kube/request/selection.h"
#include "tier/forward/forward.h"
#include "tier/link/link.h"
#include "tier/mirror/mirror.h"
#include "tier/rights/rights.h"

struct tier_event_cache;
struct tier_tags;

/* --upstream-reads: what answers reads that must be current. */
enum tier_reads {
    TIER_READS_FENCE,   /* the mirror, after a fence; gets are passed on */
    TIER_READS_FORWARD, /* the kube-apiserver */
    TIER_READS_CACHED,  /* the mirror as it is: they may be stale */
};

/* What all threads share. Constant, except for what it points to. */
struct tier_settings {
    struct tier_mirror *mirror;
    enum tier_reads reads;
    unsigned forwards_max; /* requests that are passed on at a time, on a thread */
};

/* Counted by one thread, read by all. */
enum tier_total {
    TIER_TOTAL_GETS,
    TIER_TOTAL_LISTS,
    TIER_TOTAL_WATCHES,
    TIER_TOTAL_WATCHES_ENDED,
    TIER_TOTAL_EVENTS,
    TIER_TOTAL_PASSED_ON,  /* that are not reads of the mirror */
    TIER_TOTAL_UNMIRRORED, /* reads that the mirror could not answer */
    TIER_TOTAL_DENIED,
    TIER_TOTAL_IMPERSONATIONS_REFUSED,
    TIER_TOTALS,
};

struct tier_api {
    const struct tier_settings *settings;
    struct engine_shard *shard;
    struct loop *loop;
    struct tier_reader *reader;      /* owned */
    struct tier_link *link;          /* owned */
    struct tier_rights *rights;      /* owned */
    struct tier_event_cache *events; /* owned */
    struct tier_tags *tags;          /* those of the face */
    struct kube_search_budget search_budget;
    struct kube_selections selections;
    struct random random;
    size_t under_way; /* requests that an operation of the engine keeps */
    unsigned packers; /* lists that are being compressed */
    struct tier_forwards forwards;
    int64_t renewed_ns;              /* when the tier's credentials were renewed; 0: never */
    int64_t impersonation_logged_ns; /* when a refusal was logged; 0: never */
    _Atomic uint64_t totals[TIER_TOTALS];
};

static inline void tier_count(struct tier_api *api, enum tier_total total)
{
    uint64_t now = atomic_load_explicit(&api->totals[total], memory_order_relaxed);
    atomic_store_explicit(&api->totals[total], now + 1, memory_order_relaxed);
}

#endif
