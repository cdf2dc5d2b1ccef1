/*
 * Trimming the index after a compaction: the compact revision C moves at once, the work is done
 * afterwards in small steps between the writer's groups.
 *
 *              all below C             all at C
 *   trimming ──────────────► counting ──────────► done
 *      ▲                         │                 │
 *      └─────────────────────────┴─────────────────┘
 *                   a newer compaction
 *
 * Trimming walks the records from the previous C up to, but without, the new one. For each change
 * it drops all versions of the key that are not visible at C or later: those before the newest one
 * below C, and that one too if it is a tombstone. So a key is trimmed when it is first met, and its
 * later changes have nothing left to drop. The changes at C itself keep their previous versions
 * until the next compaction, because a watch that starts at C needs them. No other reader does.
 * Counting sums up their bytes, which are not included in the size that operators see, as in etcd.
 *
 * On a full disk they are released while they are counted: if every key was deleted at C, no
 * further delete could create a revision for the next compaction, and no write would ever fit
 * again.
 *
 * Runs on the writer's thread. After a stop, the next start continues from the checkpoint.
 */
#ifndef VIGIL_STORE_UPKEEP_COMPACTION_H
#define VIGIL_STORE_UPKEEP_COMPACTION_H

#include "store/log/reader.h"
#include "store/mvcc/applier.h"

struct compaction {
    struct applier *applier;
    int64_t trimmed; /* everything below is done */
    /*
     * The revision of the current pass: keys processed so far have lost all versions that are
     * visible only below it. A compaction that arrives meanwhile waits for the next pass.
     */
    int64_t target;
    bool resumes; /* the last step trimmed the change at `offset` only partly */
    /*
     * Where the last step stopped. Without `reading` it is looked up by revision, and in its record
     * by `next_sub`: a copy made by the cleaner may have fewer changes.
     */
    bool reading;
    struct log_reader reader;
    struct log_record record; /* record of revision `trimmed` while it has changes left */
    size_t offset;            /* in its body, of the next change … */
    uint32_t left;            /* … and how many are left */
    /* Revision of the change at `offset`; 0: continue with the next record. */
    int64_t next_revision;
    uint32_t next_sub;
    /*
     * Bytes that the changes at `counting`, the compact revision, hold so far. When all are
     * counted, the sum is in applier.db_bytes_held, and `counted` is that revision.
     */
    int64_t counting, counted;
    int64_t held_bytes;
    /*
     * Requested, and in progress: the changes at `counting` lose what they replaced while they are
     * counted. `released` is the revision for which this is complete.
     */
    bool wants_release, releasing;
    int64_t released;
};

void compaction_init(struct compaction *compaction, struct applier *applier, int64_t trimmed);

/* Nothing is left to trim, to count or to release. */
static inline bool compaction_done(const struct compaction *compaction)
{
    int64_t target = compaction->applier->compact_revision;
    return compaction->trimmed >= target &&
           (target <= 0 || (compaction->counted == target && !compaction->wants_release));
}

/*
 * Processes records up to last_index, which must be written. Each change examined and each version
 * dropped is one unit of work, and one more per 4 KiB read.
 */
MUST_CHECK
enum status compaction_step(struct compaction *compaction, uint64_t last_index, unsigned work_max);

/* The disk is full: release what the changes at the compact revision hold. */
void compaction_want_release(struct compaction *compaction);

/* A segment of the log will be removed: drops the position, which refers to it. */
void compaction_release_log(struct compaction *compaction);

#endif
