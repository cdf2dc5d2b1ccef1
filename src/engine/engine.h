/*
 * The seam between the faces (etcd/, kube/) and what keeps the data. The local engine is a store
 * in this process; the fake (engine/fake.h) delays and reorders, for the tests of the faces; a
 * cluster engine will forward to a real etcd cluster.
 *
 * Every call is an operation: it is started, it completes exactly once, and that may be before the
 * starting call returns. The operation's memory belongs to the caller and must live until done.
 * There is no way to take a started write back: a caller that lost interest waits for done and
 * drops the answer.
 *
 * Threads: each I/O thread has one engine_shard; operations are started and completed on it.
 * Requests are the decoded messages of codec/ and are borrowed until done. Texts of errors are
 * those of the status table unless `text` is set (an upstream's own words).
 */
#ifndef VIGIL_ENGINE_ENGINE_H
#define VIGIL_ENGINE_ENGINE_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "codec/answer.h"
#include "io/loop.h"
#include "io/mailbox.h"

struct engine;
struct engine_shard;

struct pb_range_request;
struct pb_put_request;
struct pb_delete_range_request;
struct pb_txn_request;
struct pb_compaction_request;

/* On whose behalf. Without authentication: all zero. */
struct engine_principal {
    struct slice user;
    struct slice token;
};

/* What stands in every response header besides the revision. Fixed while the engine runs. */
struct engine_identity {
    uint64_t cluster_id;
    uint64_t member_id;
    uint64_t raft_term;
};

struct engine_op {
    /* Set by the caller before starting. */
    void (*done)(struct engine_op *op);
    struct arena *arena; /* answers are built here; the engine's until done */
    struct engine_principal principal;

    /* Set by the engine before done. */
    enum status status;
    struct slice text; /* an upstream's own error text, or empty */
    int64_t revision;  /* for the response header */

    /* The engine's own. */
    struct engine_shard *shard;
    struct mailbox_node in_mailbox;
    uint64_t pinned;
    const void *request;
    uint8_t kind;
};

/* -- Reading -- */

/*
 * A range under way: count and sizes at once, key-values as they are pulled, from one state of the
 * store that stays pinned until engine_range_close. Fields are `12 len KeyValue`: they stand as
 * they are in a RangeResponse.
 */
struct engine_range {
    struct engine_op op; /* first */
    int64_t count;       /* of all keys in the range, without limit and filters */
    bool more;           /* the limit cut some off */
    int64_t kvs;         /* how many key-values will come in all */
    uint64_t kvs_bytes;  /* and how long their fields are together */
    void *state;         /* the engine's, as is the rest */
    struct slice field;  /* the only one, of a range of one key that is held nowhere else */
};

/*
 * Starts it; on success the caller must close it. A request without keys_only, filters and sort is
 * answered from the index without being held anywhere.
 */
void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request);

/*
 * Sets how far fill goes next: at most keys_max further key-values. Says how many those are and
 * their bytes. Without this call fill goes to the end.
 */
void engine_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);

/* Copies the next bytes of the window's fields; less than room only at the end of the window. */
size_t engine_range_fill(struct engine_range *range, uint8_t *dst, size_t room);

/* Unpins. Does nothing for a range that failed or was closed. */
void engine_range_close(struct engine_range *range);

/* -- Writing -- */

/*
 * One write under way. Its answer refers to the store's own bytes: after done the caller encodes
 * it, and then calls engine_write_close; also when it failed.
 */
struct engine_write {
    struct engine_op op; /* first */
    struct kv_answer answer;
};

void engine_put(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request);
void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request);
/* Reads only or writes: the engine finds out. The request was checked by the face. */
void engine_txn(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request);
void engine_write_close(struct engine_write *write);

void engine_compact(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request);

/* -- Maintenance -- */

struct engine_hash {
    struct engine_op op; /* first */
    int64_t at_revision; /* in: 0 for the newest */
    uint32_t hash;
    int64_t compact_revision;
    int64_t hash_revision;
};
void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash);

struct engine_status {
    int64_t revision;
    int64_t compact_revision;
    uint64_t raft_index;
    uint64_t applied_index;
    int64_t db_size_bytes;
    int64_t db_size_in_use_bytes;
    int64_t quota_bytes;
};
/* From the shard's own knowledge: needs no round trip. */
void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status);

struct engine_identity engine_identity_get(const struct engine *engine);

/* -- Shards -- */

/* On the thread that owns the loop. Completions of that shard's operations come in its turns. */
MUST_CHECK
enum status engine_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
void engine_shard_free(struct engine_shard *shard);

/*
 * Called by the loop's owner once per turn after the ready sockets were read, and at its end. The
 * first loads the newest published state, which all reads of the turn use; the second lets go of
 * it and hands the turn's writes over in one piece.
 */
void engine_shard_turn_begin(struct engine_shard *shard);
void engine_shard_turn_end(struct engine_shard *shard);

/* Every engine is one of these. */
struct engine_ops {
    struct engine_identity (*identity)(const struct engine *engine);
    enum status (*shard_new)(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
    void (*shard_free)(struct engine_shard *shard);
    void (*turn_begin)(struct engine_shard *shard);
    void (*turn_end)(struct engine_shard *shard);
    void (*range_start)(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request);
    void (*range_window)(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);
    size_t (*range_fill)(struct engine_range *range, uint8_t *dst, size_t room);
    void (*range_close)(struct engine_range *range);
    void (*put)(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request);
    void (*delete_range)(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request);
    void (*txn)(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request);
    void (*write_close)(struct engine_write *write);
    void (*compact)(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request);
    void (*hash_kv)(struct engine_shard *shard, struct engine_hash *hash);
    void (*status_get)(struct engine_shard *shard, struct engine_status *ret_status);
};

struct engine {
    const struct engine_ops *ops;
};

struct engine_shard {
    struct engine *engine;
};

#endif
