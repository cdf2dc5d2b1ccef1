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

#include "base/arena.h"
#include "base/buf.h"
#include "base/step_sort.h"
#include "codec/answer.h"
#include "store/index/index.h"
#include "store/log/log.h"

struct pb_range_request;

/* What is read: the writer's unpublished state or a reader's pinned one. */
struct range_state {
    struct index_root root;
    const struct log *log;
    int64_t revision;
    int64_t compact_revision;
};

/* [from, to), or all from `from` on, or the one key `from`. */
struct range_bounds {
    struct slice from;
    struct slice to;
    bool single;
    bool to_end;
};

/* As every request spells it: range_end empty is one key, "\0" is to the end. */
struct range_bounds range_bounds_of(struct slice key, struct slice range_end);

/* One version of one key, chosen. */
struct range_kv {
    const struct index_item *item;
    uint64_t loc;
    int64_t mod_revision;
    int64_t create_revision;
    int64_t version;
    uint32_t field_bytes;
};

enum { RANGE_AHEAD = 16 };

/* Walks the keys of bounds that exist at a revision (0: the newest), in key order. */
struct range_walk {
    const struct log *log;
    struct range_bounds bounds;
    int64_t at_revision;
    struct index_cursor cursor;
    bool ended;
    bool fetches; /* off at first: the bytes of what comes will be read, so they are sent for */
    uint8_t ahead_next, ahead_count;
    struct range_kv ahead[RANGE_AHEAD];
};
void range_walk_init(struct range_walk *walk, const struct range_state *state,
                     struct range_bounds bounds, int64_t at_revision);
/* NULL at the end. Valid until the next call. */
const struct range_kv *range_walk_next(struct range_walk *walk);

/* The version of an item at a revision (0: the newest). False if the key does not exist then. */
bool range_item_at(const struct log *log, const struct index_item *item, int64_t at_revision,
                   struct range_kv *ret_kv);

/* How many keys of bounds exist at a revision. */
int64_t range_count(const struct range_state *state, struct range_bounds bounds,
                    int64_t at_revision);

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
    struct range_state state;               /* the same */
    struct range_pick *picks;               /* owned; NULL when walking */
    struct range_picking picking;
    struct step_sort sort; /* its items are the order of the picks, if they were sorted */
    int64_t next_pick;
    int64_t left;               /* key-values not begun yet */
    int64_t in_window;          /* of those, how many fill may begin */
    uint8_t head[16], tail[16]; /* of the field under way, around body */
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
/* Looks at about so many keys. ST_AGAIN: there are more. ST_NOMEM. */
MUST_CHECK
enum status range_step(struct range *range, size_t keys);
/* Both, without a pause. When it fails nothing is to be finished. */
MUST_CHECK
enum status range_init(struct range *range, const struct range_state *state,
                       const struct pb_range_request *request);
void range_fini(struct range *range);

/* Lets fill go on by at most keys_max key-values; says how many that is and their bytes. */
void range_window(struct range *range, int64_t keys_max, int64_t *ret_keys, uint64_t *ret_bytes);
/* Copies the next bytes of the window; less than room only at its end. */
size_t range_fill(struct range *range, uint8_t *dst, size_t room);

/*
 * The next key-value of the window as it lies in the log: `12 len KeyValue`. False at its end.
 * Instead of fill, and not for keys_only. Valid while the state is.
 */
MUST_CHECK
bool range_take(struct range *range, struct slice *ret_field);

/*
 * Goes over to a newer state, which shows the same at the range's revision, so that a slow reader
 * need not keep the old one: both must be readable during the call, afterwards only the new one.
 * False, and nothing is changed, when the revision is compacted there or memory is lacking.
 */
MUST_CHECK
bool range_rebase(struct range *range, const struct range_state *state);

/*
 * The whole answer at once, for a range inside a transaction. Fields point to where the log's bytes
 * will be readable once they are written.
 */
MUST_CHECK
enum status range_answer(const struct range_state *state, const struct pb_range_request *request,
                         struct arena *arena, struct kv_range_answer *ret_answer);

#endif
