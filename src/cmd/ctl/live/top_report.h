/*
 * What `vigil top` shows of one moment: figures of a server, computed from two pages of its metrics
 * and from its status. Figures that a server does not offer are -1.
 */
#ifndef VIGIL_CMD_CTL_LIVE_TOP_REPORT_H
#define VIGIL_CMD_CTL_LIVE_TOP_REPORT_H

#include "cmd/ctl/live/front.h"
#include "cmd/ctl/live/tier.h"

#include <vigil/vigil.h>

enum { TOP_SERVERS_MAX = 32, TOP_CALLS_MAX = 64, TOP_WATCHERS_MAX = 16, TOP_NAME_BYTES = 64 };

struct top_call {
    char name[TOP_NAME_BYTES]; /* "KV/Range" */
    double rate, errors_rate, total;
};

struct top_watcher {
    char peer[TOP_NAME_BYTES];
    double behind, held_bytes;
};

/* The parts of a vigil_status_response that outlive it. */
struct top_status {
    bool known;
    char version[TOP_NAME_BYTES];
    int64_t revision, db_bytes, db_used_bytes, quota_bytes;
    uint64_t term;
    bool is_leader, has_leader, is_learner;
    char error[VIGIL_ERROR_TEXT_BYTES]; /* why it is not known; or an alarm */
};

struct top_report {
    struct top_status status;
    bool has_metrics, is_vigil, is_first; /* is_first: there are no rates yet */
    double seconds;                       /* between the two pages */
    double keys, compact_revision, revisions_rate;
    double cpu, memory_bytes, files, files_max, connections, uptime_s;
    double sync_rate, sync_p50_s, sync_p99_s, commit_p99_s;
    double watchers, streams, slow_watchers, events_rate, behind_max;
    double received_rate, sent_rate;      /* bytes of clients */
    struct top_call calls[TOP_CALLS_MAX]; /* the busiest first */
    size_t call_count;
    struct top_watcher watchers_behind[TOP_WATCHERS_MAX];
    size_t watcher_count;
    struct front front;
    struct tier_report tier; /* borrows from the newer page */
};

void top_status_read(struct top_status *status, const vigil_status_response *response);
/* The status could not be read. */
void top_status_fail(struct top_status *status, const char *error);
/* now and older may be empty (time_ns is 0). wall_s: the time, for the uptime. */
void top_report_make(struct top_report *report, const struct top_status *status,
                     const struct metrics *older, const struct metrics *now, double wall_s);

#endif
