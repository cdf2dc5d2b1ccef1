/*
 * Trimming the index after a compaction: the revision up to which history is gone moves at once,
 * the work is done afterwards in small steps between the writer's groups.
 *
 * Compaction to C walks the records from the last C on, up to but without C. For each change it
 * drops all versions of the key that no revision from C on can show: those before the newest one
 * below C, and that one too if it is a tombstone. So a key is trimmed when it is first met, and its
 * later changes find nothing left to do. The changes at exactly C keep their previous versions
 * until the next compaction: a watch that starts at C still needs them. No other reader does.
 *
 * What is kept so is counted when the trimming is through, and again after a start: for the size
 * that operators see it is gone, as it is in etcd, so that nobody compacts in vain.
 *
 * On a full disk it is let go of at once: when every key was deleted at C, nobody could delete
 * anything to make a revision for that next compaction, and nothing would ever fit again.
 *
 * The writer's. Steps may be cut off by a stop: the next start goes on from what the checkpoint
 * has.
 */
#ifndef VIGIL_STORE_UPKEEP_COMPACTION_H
#define VIGIL_STORE_UPKEEP_COMPACTION_H

#include "store/applier.h"
#include "store/log/reader.h"

struct compaction {
    struct applier *applier;
    int64_t trimmed; /* everything below is done */
    /* What the pass under way trims to: keys met so far have lost all that only revisions below
     * show. A compaction that comes meanwhile waits for the next pass. */
    int64_t target;
    bool resumes; /* the last step left the change at `offset` before all of it was trimmed */
    /* Where the last step stopped; without `reading` that is looked up by revision, and in its
     * record by `next_sub`: a copy that the cleaner made may have fewer changes. */
    bool reading;
    struct log_reader reader;
    struct log_record record; /* of revision `trimmed` as long as changes are left in it */
    size_t offset;            /* in its body, of the next change … */
    uint32_t left;            /* … and how many are left */
    int64_t next_revision;    /* of the change at `offset`; 0: the next record is begun anew */
    uint32_t next_sub;
    /* What the changes at `counting`, the compact revision, hold; so far. Once they all were
     * counted it is in apply.db_bytes_held, and counted says of which revision. */
    int64_t counting, counted;
    int64_t held_bytes;
    /* Wanted, and under way: the changes at `counting` lose what they replaced as they are
     * counted. `released` says at which revision they have. */
    bool wants_release, releasing;
    int64_t released;
};

void compaction_init(struct compaction *compaction, struct applier *applier, int64_t trimmed);

/* Nothing is left to trim, to count or to release. */
bool compaction_done(const struct compaction *compaction);

/*
 * Goes on over records up to last_index, which must be written. Each change that is looked at and
 * each version that is dropped counts as one unit of work, and as one more for each 4 KiB read.
 */
MUST_CHECK
enum status compaction_step(struct compaction *compaction, uint64_t last_index, unsigned work_max);

/* The disk is full: what the changes at the compact revision hold is to go now. */
void compaction_want_release(struct compaction *compaction);

/* A segment of the log goes: steps hold on to none of it. */
void compaction_let_go(struct compaction *compaction);

#endif
