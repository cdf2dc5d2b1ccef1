/*
 * Notices that the member which is followed can be reached but is far behind the others: for some
 * seconds it neither has what another member has answered nor delivers anything, or it does not
 * answer a linearizable question, for which it would have to have everything. Such a member is left
 * for another one, but not more often than every half minute, because all may be equally slow.
 *
 * A member that has everything may deliver it slowly: etcd does so to a watch that has fallen
 * behind. It is not left, because others would not be faster.
 *
 * Part of the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_LAG_MONITOR_H
#define VIGIL_MIRROR_FOLLOW_LAG_MONITOR_H

#include "base/clock.h"
#include "base/slice.h"
#include "io/timer.h"

#include <vigil/client.h>

struct mirror_state;
struct lag_monitor;

#define LAG_MONITOR_LATE_NS (5 * NS_PER_S)   /* a member that is later is left */
#define LAG_MONITOR_AGAIN_NS (30 * NS_PER_S) /* and no other one before */

/* What is known of the member. Zeroed at first. */
struct lag {
    int64_t awaited;  /* a revision that it has not delivered; 0: none */
    int64_t since_ns; /* that revision exists */
    int64_t left_ns;  /* when the last member was left; 0: none was */
    int64_t has;      /* the revision that it had when it last delivered something … */
    int64_t has_ns;   /* … and when that was */
};

/* To be called every second or so. received: the newest revision that the member has delivered;
 * heard: the newest one of any member. True: the member is to be left. */
bool lag_is_too_long(struct lag *lag, int64_t now_ns, int64_t received, int64_t heard);
/* The member has delivered something, and this is its own revision. */
void lag_note_delivery(struct lag *lag, int64_t now_ns, int64_t revision);
/* The member has not answered in time. True: it is to be left. */
bool lag_unanswered(struct lag *lag, int64_t now_ns);

struct lag_monitor_options {
    vigil_client *client;
    struct slice key; /* one that may be read; borrowed */
    struct mirror_state *state;
    /* The newest revision that the member has delivered. INT64_MAX: more of it waits here, so that
     * it is not the member that is slow. */
    int64_t (*received)(void *ctx);
    void (*leave)(void *ctx, const char *reason); /* another connection is needed */
    void *ctx;
};

struct lag_monitor *lag_monitor_new(
    const struct lag_monitor_options *options);     /* aborts without memory */
void lag_monitor_free(struct lag_monitor *monitor); /* accepts NULL */
/* While the cluster is followed. */
void lag_monitor_start(struct lag_monitor *monitor);
void lag_monitor_stop(struct lag_monitor *monitor); /* no effect if it was not started */
/* Events of the member have come, with its own revision. */
void lag_monitor_note_delivery(struct lag_monitor *monitor, int64_t revision);

#endif
