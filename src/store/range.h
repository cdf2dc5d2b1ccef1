/*
 * A range request answered from one state of the store: first what it comes to (count, how many
 * key-values, how many bytes), then the key-values themselves, pulled piece by piece.
 *
 * In key order and without filters nothing is held: the index knows counts and bytes, and a cursor
 * walks it. Only other orders and filters hold a list of what was chosen.
 *
 * It mirrors etcd's executeRange, its odd corners included: a limit is applied before sorting when
 * the order is NONE and the target is not the key.
 *
 * The state must stay readable (pinned) as long as the range is. One thread.
 */
#ifndef VIGIL_STORE_RANGE_H
#define VIGIL_STORE_RANGE_H

#include "base/buf.h"
#include "base/container/resumable_sort.h"
#include "base/memory/arena.h"
#include "codec/answer.h"
#include "store/range_walk.h"

struct pb_range_request;

struct range_pick;

/* Which come first of those that pass the filters. */
struct range_picking {
    bool sorts;
    int64_t keep;     /* so many are enough; 0: all */
    int64_t passed;   /* that passed the filters */
    int64_t count;    /* of picks: passed, or keep */
    int64_t capacity; /* of picks */
};

/* What is found out, one after the other; not all for every request. */
enum range_phase {
    RANGE_COUNTS,
    RANGE_MEASURES,
    RANGE_PICKS,
    RANGE_SORTS,
    RANGE_SUMS,
    RANGE_CHECKS,
    RANGE_READY
};

struct range {
    int64_t count; /* of all keys in the range, without limit and filters */
    bool more;
    int64_t kvs;        /* that will come in all */
    uint64_t kvs_bytes; /* of their fields together */

    /* Private. */
    const struct log *log;
    int64_t revision; /* whose keys are shown */
    bool keys_only;
    bool keep_lease; /* keys_only that leaves the lease in (sorted by value) */
    enum range_phase phase;
    const struct pb_range_request *request; /* until it is READY */
    struct range_state state;               /* the same; and the newer one it goes over to */
    struct range_pick *picks;               /* owned; NULL when walking */
    struct range_picking picking;
    struct step_sort sort; /* its items are the order of the picks, if they were sorted */
    int64_t next_pick;
    int64_t rebased;            /* picks before this are those of the newer state */
    int64_t left;               /* key-values not begun yet */
    int64_t in_window;          /* of those, how many fill may begin */
    enum status broken;         /* ST_DAMAGED: it gives no more */
    uint8_t head[16], tail[48]; /* of the field under way, around body */
    uint8_t head_bytes, tail_bytes;
    struct slice body;
    size_t field_done;             /* bytes of the field under way that were copied */
    const struct index_item *item; /* of the field under way */
    struct buf from;               /* the key the walk goes on from, after a rebase */
    struct range_walk walk;
};

/*
 * Begins; range_step goes on until it says ST_OK, and only then the numbers above hold. The request
 * is borrowed until then. ST_COMPACTED, ST_FUTURE_REV. On success range_fini must follow.
 */
MUST_CHECK
enum status range_begin(struct range *range, const struct range_state *state,
                        const struct pb_range_request *request);
/* Looks at about so many keys; *keys is reduced by those. ST_AGAIN: there are more. ST_NOMEM,
 * ST_DAMAGED. */
MUST_CHECK
enum status range_step(struct range *range, size_t *keys);
/* Both, without a pause. When it fails nothing is to be finished. */
MUST_CHECK
enum status range_init(struct range *range, const struct range_state *state,
                       const struct pb_range_request *request);
void range_fini(struct range *range);

/* Lets fill go on by at most keys_max key-values; says how many that is and their bytes. */
void range_window(struct range *range, int64_t keys_max, int64_t *ret_keys, uint64_t *ret_bytes);
/* Copies the next bytes of the window; less than room only at its end, or if something cannot be
 * read: range_status. */
size_t range_fill(struct range *range, uint8_t *dst, size_t room);

/*
 * The next key-value of the window as it lies in the log: `12 len KeyValue`. False at its end.
 * Instead of fill, and not for keys_only. Valid while the state is.
 */
MUST_CHECK
bool range_take(struct range *range, struct slice *ret_field);

/* ST_DAMAGED: a stored version is not what was written, and the range ends before it. */
enum status range_status(const struct range *range);
/* The key whose turn it was then. */
struct slice range_key_under_way(const struct range *range);

/*
 * Goes over to a newer state, which shows the same at the range's revision, so that a slow reader
 * need not keep the old one. Both must be readable until that is done; meanwhile it can be read.
 * False, and nothing is changed, when the revision is compacted there or memory is lacking.
 */
MUST_CHECK
bool range_rebase_begin(struct range *range, const struct range_state *state);
/* Looks up so many keys at most; *keys is reduced. True: it is done, the old state may go. */
MUST_CHECK
bool range_rebase_step(struct range *range, size_t *keys);

/*
 * The whole answer, for a range inside a transaction. Fields point to where the log's bytes will be
 * readable once they are written. Of a range that is ready: about so many keys at a time, *keys is
 * reduced; a zeroed answer begins. ST_AGAIN: there are more.
 */
MUST_CHECK
enum status range_answer_step(struct range *range, struct arena *arena,
                              struct kv_range_answer *answer, size_t *keys);
/* From the beginning and at once. */
MUST_CHECK
enum status range_answer(const struct range_state *state, const struct pb_range_request *request,
                         struct arena *arena, struct kv_range_answer *ret_answer);

#endif
