/*
 * What the threads of the cluster engine know of the cluster and its mirror. Written by the thread
 * that is named, read by any.
 */
#ifndef VIGIL_MIRROR_LINK_STATE_H
#define VIGIL_MIRROR_LINK_STATE_H

#include "base/clock.h"
#include "mirror/answer/possible.h"
#include "mirror/link/follow_failure.h"
#include "mirror/link/member_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mirror_state {
    /* The follower. */
    _Atomic bool reached;   /* a member has answered since the start */
    _Atomic bool synced;    /* the mirror has been complete once since the start */
    _Atomic bool connected; /* the upstream watch is live: the mirror's past is the cluster's */
    _Atomic uint64_t times_connected;
    _Atomic int64_t answered_ns; /* when a member last answered or sent something; 0: never */
    _Atomic int64_t mirrored; /* the mirror contains everything up to this revision, and shows it */
    _Atomic int64_t oldest;   /* the first revision whose events the mirror has; older ones are
                                 fetched from the cluster */
    _Atomic int64_t compacted;  /* the cluster's compact revision, as far as it is known; 0: none */
    _Atomic int64_t void_until; /* revisions after `mirrored` up to this one belong to a discarded
                                   past: watches that ask for them end as compacted; 0: none */
    /* Progress responses of the cluster can be trusted: not those of etcd before 3.4.31, and of
     * 3.5.0 to 3.5.12. */
    _Atomic bool progress_reliable;
    _Atomic uint64_t cluster_id, member_id, raft_term;
    _Atomic unsigned
        alarms; /* alarms of the cluster's members: 1 << ENGINE_ALARM_…; the last that were known */
    struct follow_failure follow_failure; /* why the cluster cannot be followed */
    struct member_table member_table;     /* the members at the endpoints */
    _Atomic uint64_t upstream_watches, upstream_events, resumes, loads;

    /* Called after `mirrored` was raised, so that reads continue which wait for it; set before the
     * follower starts, may be NULL. */
    void (*on_mirrored)(void *ctx);
    void *ctx;

    /* Any thread, with mirror_state_heard and mirror_state_wrote. */
    _Atomic int64_t heard;   /* the newest revision that any answer of the cluster has had */
    _Atomic int64_t written; /* the same of forwarded writes: reads must not be older */
    /* Changes of users and roles that were answered through this server: what was known of rights
     * before is not used any more. */
    _Atomic uint64_t rights_changes;
    _Atomic uint64_t forwarded, probes, grants_asked, reads_mirrored, reads_forwarded;
    /* History older than the mirror's, on all shards. */
    _Atomic int64_t backfill_bytes, backfill_fetches;
    _Atomic uint64_t backfill_fetches_started;
    _Atomic int64_t coalesced; /* events that clients got beyond those that the cluster has sent */
};

/* A revision that no cluster can have is ignored. */
static inline void mirror_state_raise(_Atomic int64_t *to, int64_t revision)
{
    int64_t now = atomic_load(to);
    while (now < revision && revision <= POSSIBLE_REVISION_MAX &&
           !atomic_compare_exchange_weak(to, &now, revision))
        ;
}

/* A linearizable answer had this revision, and was requested when `before` was known. If that is
 * newer, it was never true: some answer was damaged. */
static inline void mirror_state_correct(_Atomic int64_t *known, int64_t before, int64_t revision)
{
    if (before > revision && revision > 0)
        atomic_compare_exchange_strong(known, &before, revision);
}

static inline void mirror_state_heard(struct mirror_state *state, int64_t revision)
{
    mirror_state_raise(&state->heard, revision);
}

/* A write was answered with this revision: reads that start from now on see it. */
static inline void mirror_state_wrote(struct mirror_state *state, int64_t revision)
{
    mirror_state_raise(&state->heard, revision);
    mirror_state_raise(&state->written, revision);
}

/* Whether a watch that begins at this revision has it from a past that was discarded. The present
 * may have reached the revision after the newest that is known. For watch_history_ops.is_void. */
static inline bool mirror_state_is_void(struct mirror_state *state, int64_t revision)
{
    int64_t heard = atomic_load(&state->heard), mirrored = atomic_load(&state->mirrored);
    return revision > (heard > mirrored ? heard : mirrored) + 1 &&
           revision <= atomic_load(&state->void_until);
}

/* The follower's thread, or the mirror's writer: the mirror shows this revision. */
static inline void mirror_state_mirrored(struct mirror_state *state, int64_t revision)
{
    mirror_state_raise(&state->mirrored, revision);
    mirror_state_raise(&state->heard, revision);
    if (state->on_mirrored)
        state->on_mirrored(state->ctx);
}

/* The follower's thread: the member has answered. now_ns: of the system's monotonic clock. */
static inline void mirror_state_answered(struct mirror_state *state, int64_t now_ns)
{
    atomic_store(&state->answered_ns, now_ns);
}

/* For how long no member has said anything; 0: not known. */
static inline int64_t mirror_state_silence(struct mirror_state *state)
{
    int64_t at = atomic_load(&state->answered_ns), now = clock_mono_ns(clock_system());
    return at && now > at ? now - at : 0;
}

static inline int64_t mirror_state_lag(struct mirror_state *state)
{
    int64_t lag = atomic_load(&state->heard) - atomic_load(&state->mirrored);
    return lag > 0 ? lag : 0;
}

#endif
