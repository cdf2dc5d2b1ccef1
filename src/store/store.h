/*
 * The durable, multi-version store: log, index and checkpoint together.
 *
 * Three kinds of threads use it. The writer applies requests through store_applier() and makes each
 * group of them durable, and then visible, with store_commit. Readers pin the epoch and read the
 * newest view. The keeper (store/upkeep.h) prepares segments, writes checkpoints and cleans.
 *
 * Nothing is visible before it is durable: the view is published after the sync.
 */
#ifndef VIGIL_STORE_STORE_H
#define VIGIL_STORE_STORE_H

#include "base/clock.h"
#include "base/error.h"
#include "base/memory/epoch.h"
#include "store/backend/backend.h"
#include "store/mvcc/applier.h"
#include "store/mvcc/view.h"
#include "store/upkeep/relocation.h"

struct store;

struct store_options {
    struct fs *fs;
    const char *dir;
    size_t segment_bytes_first;
    size_t segment_bytes_max;
    size_t checkpoint_map_bytes; /* upper bound of the checkpoint's size */
    unsigned readers_max;        /* threads that will pin */
    bool is_mirror; /* a mirror of a cluster: its log is unsynced, and it is never opened as a store
                     */
    uint64_t salt;  /* random: stored values cannot be mistaken for records of the log */
    uint64_t cluster_id, member_id; /* stored at the first start; ignored at later starts */
    row_fn
        row_seen; /* called for all rows while the store opens (store/record/row.h); may be NULL */
    void *row_ctx;
    struct clock *clock;     /* for store_commit_times; NULL: the system's clock */
    struct backend *backend; /* instead of the one in dir, for the simulator; owned from then on */
};

/* Opens or creates it: loads the checkpoint and replays the log after it. */
MUST_CHECK
enum status store_open(const struct store_options *options, struct store **ret_store,
                       struct error *ret_error);
void store_close(struct store *store); /* accepts NULL; no reader may be left */
DEFINE_CLEANUP(struct store *, store_close)

/* -- Readers -- */

struct epoch *store_epoch(struct store *store);
/* The newest published state. To be read only while the calling thread pins the epoch. */
const struct store_view *store_view(const struct store *store);
const struct log *store_log(const struct store *store);

uint64_t store_cluster_id(const struct store *store);
uint64_t store_member_id(const struct store *store);
uint64_t store_term(const struct store *store); /* incremented by every start */

/* -- The writer -- */

struct applier *store_applier(struct store *store);

/* Bytes applied since the last commit. */
size_t store_pending_bytes(const struct store *store);

/*
 * Makes everything applied so far durable and then visible. A failure is final: no request may be
 * answered any more, and the process should stop.
 */
MUST_CHECK
enum status store_commit(struct store *store);
/* The same in two steps: answers need not wait until what was replaced is freed. */
MUST_CHECK
enum status store_sync(struct store *store);
void store_reclaim(struct store *store);

/*
 * Hidden changes are written by store_commit and not shown: a state of which half was applied must
 * not be read. No other call of the writer may follow until the first store_commit that is not
 * hidden any more.
 */
void store_hide(struct store *store, bool hidden);
bool store_is_hidden(const struct store *store);
/* The revision was raised without a record: store_commit shows it. */
void store_note_reached(struct store *store);

/*
 * An object of the writer to be published with every state from the next commit on, as
 * view->attachment, to be read while pinned. Owned from then on; freed when no reader can see it
 * any more.
 */
void store_set_attachment(struct store *store, void *object,
                          void (*free_fn)(void *ctx, void *object));

/* The size and duration of the last commit that wrote something. */
struct store_commit_times {
    size_t bytes;
    int64_t write_ns, sync_ns;
};
struct store_commit_times store_commit_times(const struct store *store);

/* A compaction has left versions in the index that no reader can request. */
bool store_is_trimming(const struct store *store);
/*
 * Trims some of them, and frees some of the memory that readers have released. Takes some
 * microseconds. Only when everything applied is committed.
 */
MUST_CHECK
enum status store_trim_step(struct store *store);
/*
 * Trimming has left as much memory as it may, and waits until readers have released older states:
 * store_trim_step frees what it can, and then continues.
 */
bool store_trim_waits(const struct store *store);
/* Bytes of the index that were replaced and wait for readers. */
size_t store_bytes_retired(const struct store *store);
/* Memory waits for readers: store_trim_step should be called from time to time. */
bool store_has_retired(const struct store *store);
/* The index is trimmed up to the compact revision, and that is visible. */
bool store_compaction_done(const struct store *store);

/*
 * Points the index to where the cleaner has moved versions; at most max of them. *ret_done: all are
 * moved, and that is visible.
 */
MUST_CHECK
enum status store_relocate(struct store *store, struct relocation *relocation, size_t max,
                           bool *ret_done);
/* The store was defragmented: its size becomes what is in use. store_commit must follow. */
void store_shrink(struct store *store);
/* Drops a segment that was replaced, once no reader can see it. store_commit must follow. */
void store_forget_segment(struct store *store, uint64_t segment_id);

/* Calls fn, as applier.lease_moved, for every key that has a lease. On the writer's thread. */
void store_leased_keys(const struct store *store,
                       void (*fn)(void *ctx, struct slice key, int64_t from, int64_t to),
                       void *ctx);

/* -- For the keeper -- */

struct log *store_log_of_keeper(struct store *store);
struct backend *store_backend(struct store *store);

/* For tests, on the writer's thread: asserts that log, index and the published view agree. */
void store_check_writer(const struct store *store);

#endif
