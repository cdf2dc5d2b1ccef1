/*
 * When to compact without being asked, as etcd's --auto-compaction-mode does it:
 *
 *   periodic   keeps the history of the last so long. The revision is noted every tenth of that
 * time, at least every six minutes. First after the whole time, then whenever it has passed again,
 * or an hour if that is less, history goes up to what was noted so long ago. revision   keeps the
 * last so many revisions. Looked at every five minutes.
 *
 * Periodic history may have a size as well: what grows past it keeps the last three notes only,
 * before its time.
 *
 * Time and revisions come in, a revision to compact to comes out; nothing here reads a clock. The
 * times are the monotonic clock's: setting the wall clock changes nothing.
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
    int64_t next_ns; /* when to step again */
    int64_t last;    /* the last revision that was compacted to; 0: none */
    /* Periodic: */
    int64_t last_ns;    /* when that was, or the start */
    int64_t between_ns; /* at least this long after it */
    int64_t *noted;     /* owned; a ring, the oldest at first */
    size_t noted_first, noted_count, noted_capacity;
    int64_t bytes_max;          /* 0: of any size */
    int64_t bytes, bytes_least; /* of the store now, and the least since it was last compacted */
};

/*
 * As etcd reads it: a number of hours or of revisions, or a duration with units. ST_INVALID also
 * for what is negative. 0 is off.
 */
MUST_CHECK
enum status auto_compaction_parse(enum auto_compaction_mode mode, const char *text,
                                  int64_t *ret_retention);

/* retention is not 0. */
void auto_compaction_init(struct auto_compaction *compaction, enum auto_compaction_mode mode,
                          int64_t retention, int64_t now_ns, int64_t revision);
void auto_compaction_fini(struct auto_compaction *compaction);
/* Periodic: how many bytes may be added before history goes, and before each step what is in use.
 */
void auto_compaction_limit(struct auto_compaction *compaction, int64_t bytes_max);
void auto_compaction_measure(struct auto_compaction *compaction, int64_t bytes);

/*
 * At next_ns or later, with the newest revision: the one to compact to, or 0. After one that is not
 * 0 auto_compaction_done must follow before the next step.
 */
int64_t auto_compaction_step(struct auto_compaction *compaction, int64_t now_ns, int64_t revision);
/* It came to this. What failed is tried again after interval_ns, with what is due then. */
void auto_compaction_done(struct auto_compaction *compaction, int64_t now_ns, int64_t compacted,
                          bool succeeded, int64_t revision);

#endif
