/*
 * A range request answered from one state of the store: first its numbers (count, key-values,
 * bytes), then the key-values themselves, pulled piece by piece.
 *
 * In key order and without filters no list is held: the index has counts and bytes, and a cursor
 * walks it. Only other orders and filters need a list of the selected keys.
 *
 * It mirrors etcd's executeRange, including its odd cases: a limit is applied before sorting when
 * there is no order and the target is not the key.
 *
 * The state must stay readable (pinned) as long as the range is used. One thread.
 */
#ifndef VIGIL_STORE_MVCC_RANGE_H
#define VIGIL_STORE_MVCC_RANGE_H

#include "base/buf.h"
#include "base/container/resumable_sort.h"
#include "base/memory/arena.h"
#include "codec/answer.h"
#include "store/mvcc/range_walk.h"

struct pb_range_request;

struct range_pick;

/* The selection of the first key-values that pass the filters. */
struct range_picking {
    bool sorts;
    int64_t keep;     /* this many are enough; 0: all */
    int64_t passed;   /* how many passed the filters */
    int64_t count;    /* number of picks: passed, or keep */
    int64_t capacity; /* room for picks */
};

/*
 * How a request becomes READY to be sent:
 *
 *   COUNTING ──► MEASURING ────────────────────────► CHECKING ──► READY
 *     │   │                                             ▲           ▲
 *     │   └────► PICKING ──► SORTING ──► SUMMING ───────┘           │
 *     │             └───────────────────────▲                       │
 *     └─────────────────────────────────────────────────────────────┘ count_only
 */
enum range_phase {
    RANGE_COUNTING,
    RANGE_MEASURING,
    RANGE_PICKING,
    RANGE_SORTING,
    RANGE_SUMMING,
    RANGE_CHECKING,
    RANGE_READY
};

struct range {
    int64_t count; /* number of all keys in the range, without limit and filters */
    bool more;
    int64_t kvs;        /* how many will be sent */
    uint64_t kvs_bytes; /* the length of their fields */

    /* Private. */
    const struct log *log;
    int64_t revision; /* at which the keys are read */
    bool keys_only;
    bool keep_lease; /* keys_only with the lease (sorted by value) */
    enum range_phase phase;
    const struct pb_range_request *request; /* until it is READY */
    struct range_state state;               /* the same; later the newer state it switches to */
    struct range_pick *picks;               /* owned; NULL when walking */
    struct range_picking picking;
    struct resumable_sort sort; /* if sorted, its items are the order of the picks */
    int64_t next_pick;
    int64_t rebased;            /* picks before this are those of the newer state */
    int64_t left;               /* key-values not begun yet */
    int64_t in_window;          /* how many of those fill may begin */
    enum status broken;         /* ST_DAMAGED: there is no more */
    uint8_t head[16], tail[48]; /* bytes of the current field around body */
    uint8_t head_bytes, tail_bytes;
    struct slice body;
    size_t field_done;             /* bytes of the current field that were copied */
    const struct index_item *item; /* item of the current field */
    struct buf from;               /* the key from which the walk continues after a rebase */
    struct range_walk walk;
};

/*
 * Begins; range_fini must follow. The numbers above are valid when range_step has returned ST_OK,
 * until which the request is borrowed. ST_COMPACTED, ST_FUTURE_REV: then no range_fini.
 */
MUST_CHECK
enum status range_begin(struct range *range, const struct range_state *state,
                        const struct pb_range_request *request);
/* Examines about *keys keys, which is reduced. ST_AGAIN: there are more. ST_NOMEM, ST_DAMAGED. */
MUST_CHECK
enum status range_step(struct range *range, size_t *keys);
/* Both, without a pause. After a failure range_fini must not be called. */
MUST_CHECK
enum status range_init(struct range *range, const struct range_state *state,
                       const struct pb_range_request *request);
void range_fini(struct range *range);

/* Allows fill to send at most keys_max more key-values; returns how many, and their bytes. */
void range_window(struct range *range, int64_t keys_max, int64_t *ret_keys, uint64_t *ret_bytes);
/*
 * Copies the next bytes of the window; less than room only at its end, or if something cannot be
 * read: range_status.
 */
size_t range_fill(struct range *range, uint8_t *dst, size_t room);

/*
 * The next key-value of the window as it is stored in the log: `12 len KeyValue`. False at the end.
 * Instead of fill, and not for keys_only. Valid while the state is.
 */
MUST_CHECK
bool range_take(struct range *range, struct slice *ret_field);

/* ST_DAMAGED: a stored version is damaged, and the range ends before it. */
enum status range_status(const struct range *range);

/*
 * Begins to switch to a newer state, which is the same at the range's revision, so that a slow
 * reader does not keep the old one. Both must be readable until that is done; meanwhile the range
 * can be read. False, and nothing is changed, when the revision is compacted there or memory is
 * exhausted.
 */
MUST_CHECK
bool range_rebase_begin(struct range *range, const struct range_state *state);
/* Looks up at most *keys keys, which is reduced. True: done, and the old state may be freed. */
MUST_CHECK
bool range_rebase_step(struct range *range, size_t *keys);

/*
 * The whole answer, for a range in a transaction. Fields point to where the log's bytes will be
 * readable once they are written. Called for a range that is ready, with a zeroed answer at first;
 * examines about this many keys at a time and subtracts them from *keys. ST_AGAIN: there are more.
 */
MUST_CHECK
enum status range_answer_step(struct range *range, struct arena *arena,
                              struct kv_range_answer *answer, size_t *keys);
/* All phases and the whole answer in one call. */
MUST_CHECK
enum status range_answer(const struct range_state *state, const struct pb_range_request *request,
                         struct arena *arena, struct kv_range_answer *ret_answer);

#endif
