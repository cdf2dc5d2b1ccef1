/* Operations on keys (engine/engine.h): ranges, puts, deletes, transactions, compactions. */
#ifndef VIGIL_ENGINE_KEYS_H
#define VIGIL_ENGINE_KEYS_H

#include "base/container/list.h"
#include "codec/answer.h"
#include "engine/engine_ops.h"

struct pb_compaction_request;
struct pb_delete_range_request;
struct pb_put_request;
struct pb_range_request;
struct pb_txn_request;

/* -- Reading -- */

/*
 * A range that is being read: count and sizes are known when it is done, key-values are pulled
 * afterwards. All of them come from one state of the store, which stays pinned until
 * engine_range_close. Fields are `12 len KeyValue`, as in an encoded RangeResponse.
 */
struct engine_range {
    struct engine_op op; /* first */
    struct slice sent;   /* by the caller: the request's bytes, borrowed like it; empty: unknown */
    int64_t count;       /* all keys in the range, without limit and filters */
    bool more;           /* the limit left some out */
    int64_t kvs;         /* number of key-values that can be pulled */
    uint64_t kvs_bytes;  /* total length of their fields */

    /* Private to the engine. */
    void *state;
    struct slice field; /* the result of a plain get, instead of `state` */
    int64_t started_ns, pinned_ns;
    uint64_t pinned_newer; /* the newer state to which it is moving; 0: none */
    struct list in_shard;  /* links ranges that are not done, or are moving to a newer state */
};

/*
 * After success the caller must call engine_range_close. A request without keys_only, filters and
 * sort is answered from the index; its result is not collected in memory.
 */
static inline void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                                      const struct pb_range_request *request)
{
    engine_start(shard, &range->op, ENGINE_RANGE, request);
}

/*
 * Limits what fill and next return to the following keys_max key-values, and returns how many there
 * are and the length of their fields. Without this call there is no limit.
 */
static inline void engine_range_window(struct engine_range *range, int64_t keys_max,
                                       int64_t *ret_keys, uint64_t *ret_bytes)
{
    range->op.shard->engine->ops->range_window(range, keys_max, ret_keys, ret_bytes);
}

/*
 * Copies the next bytes of the window's fields. Returns less than room only at the end of the
 * window or when the range cannot continue; op.status is the reason then, for example that the
 * reader was so slow that its revision was compacted.
 */
static inline size_t engine_range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    return range->op.shard->engine->ops->range_fill(range, dst, room);
}

/*
 * Returns the next field of the window, `12 len KeyValue`, without copying it; valid until the next
 * call, and, if the range has a sort, only until the caller returns to its loop. Not for keys_only,
 * and not mixed with fill. False at the end of the window or when the range cannot continue, as
 * above.
 */
MUST_CHECK
static inline bool engine_range_next(struct engine_range *range, struct slice *ret_field)
{
    return range->op.shard->engine->ops->range_next(range, ret_field);
}

/* Unpins the state. Does nothing for a range that was not started, failed or was closed. */
static inline void engine_range_close(struct engine_range *range)
{
    if (range->op.shard)
        range->op.shard->engine->ops->range_close(range);
}

/* -- Writing -- */

/*
 * A write. Its answer refers to bytes of the store: after done, also after a failure, the caller
 * encodes the answer and then calls engine_write_close.
 */
struct engine_write {
    struct engine_op op; /* first */
    struct kv_answer answer;
};

static inline void engine_put(struct engine_shard *shard, struct engine_write *write,
                              const struct pb_put_request *request)
{
    engine_start(shard, &write->op, ENGINE_PUT, request);
}

static inline void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                                       const struct pb_delete_range_request *request)
{
    engine_start(shard, &write->op, ENGINE_DELETE_RANGE, request);
}

/* The caller has validated the request. It may also contain only reads. */
static inline void engine_txn(struct engine_shard *shard, struct engine_write *write,
                              const struct pb_txn_request *request)
{
    engine_start(shard, &write->op, ENGINE_TXN, request);
}

static inline void engine_write_close(struct engine_write *write)
{
    if (write->op.shard)
        write->op.shard->engine->ops->write_close(write);
}

static inline void engine_compact(struct engine_shard *shard, struct engine_op *op,
                                  const struct pb_compaction_request *request)
{
    engine_start(shard, op, ENGINE_COMPACT, request);
}

#endif
