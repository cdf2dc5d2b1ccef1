/*
 * Decides when to compact automatically, as etcd's --auto-compaction-mode does.
 *
 * The mode "periodic" keeps the history of a period. Every tenth of the period, and at least every
 * six minutes, the newest revision is noted. The first compaction comes after a whole period, the
 * following ones each time that another period, or an hour if that is shorter, has passed. Each
 * compacts to the revision that was noted one period ago.
 *
 * The mode "revision" keeps a number of revisions, and checks every five minutes.
 *
 * Periodic history can have a size limit, too. When the store grows past it, history is compacted
 * early, to the third newest of the noted revisions.
 *
 * This module only computes: it gets times and revisions, and returns a revision to compact to. The
 * times are of the monotonic clock, so setting the wall clock has no effect.
 */
#ifndef VIGIL_ETCD_AUTO_COMPACTION_H
#define VIGIL_ETCD_AUTO_COMPACTION_H

#include "base/clock.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum auto_compaction_mode { AUTO_COMPACTION_PERIODIC, AUTO_COMPACTION_REVISION };

struct auto_compaction {
    enum auto_compaction_mode mode;
    int64_t retention; /* nanoseconds, or revisions */
    int64_t interval_ns;
    int64_t next_ns; /* the time of the next step */
    int64_t last;    /* the revision of the last compaction; 0: there was none */
    /* Periodic: */
    int64_t last_ns;    /* the time of the last compaction, or of the start */
    int64_t between_ns; /* the least time from one compaction to the next */
    int64_t *noted;     /* owned; a ring of revisions, the oldest at noted_first */
    size_t noted_first, noted_count, noted_capacity;
    int64_t bytes_max; /* limit of the growth; 0: none */
    int64_t bytes,
        bytes_least; /* size of the store now, and its least size since the last compaction */
};

/*
 * Parses the flag as etcd does: a number of hours or of revisions, or a duration with units.
 * ST_INVALID: it is not one of those, or negative. 0 means that automatic compaction is off.
 */
MUST_CHECK
enum status auto_compaction_parse(enum auto_compaction_mode mode, const char *text,
                                  int64_t *ret_retention);

/* retention is not 0. */
void auto_compaction_init(struct auto_compaction *compaction, enum auto_compaction_mode mode,
                          int64_t retention, int64_t now_ns, int64_t revision);
void auto_compaction_fini(struct auto_compaction *compaction);
/* Periodic mode only. Sets how many bytes the store may grow before history is compacted early;
 * and, before each step, how many bytes are in use. */
void auto_compaction_limit(struct auto_compaction *compaction, int64_t bytes_max);
void auto_compaction_measure(struct auto_compaction *compaction, int64_t bytes);

/*
 * Called at next_ns or later, with the newest revision. Returns the revision to compact to, or 0.
 * After a revision, auto_compaction_done must be called before the next step.
 */
int64_t auto_compaction_step(struct auto_compaction *compaction, int64_t now_ns, int64_t revision);
/* Reports the result of a compaction. A failed one is retried after interval_ns, with the revision
 * that is due then. */
void auto_compaction_done(struct auto_compaction *compaction, int64_t now_ns, int64_t compacted,
                          bool succeeded, int64_t revision);

#endif
