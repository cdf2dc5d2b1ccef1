/*
 * The embedded engine: a store in this process.
 *
 *   shards ── requests ──► writer: applies a group, syncs it once, publishes ── answers ──► shards
 *      └── reads: on the shard's own thread, from the newest published view
 *   keeper: segments ahead, checkpoints, cleaning, hashes
 *
 * The writer and the keeper have a thread each (engine/local/writer.c, keeper.c). A failed
 * write or sync of the log is the end: on_fatal is called and must not return.
 */
#ifndef VIGIL_ENGINE_LOCAL_LOCAL_H
#define VIGIL_ENGINE_LOCAL_LOCAL_H

#include "base/error.h"
#include "engine/engine.h"
#include "io/file.h"

/* What a start has cut off the end of the log: a write that was not finished. */
struct engine_local_cut {
    uint64_t index; /* of the log: the first that is not there */
    uint64_t bytes;
    uint64_t segment_id, offset;
    const char *reason;
};

struct turns;

/* Whether a start defragments: what could be freed, held against defragment_from_bytes. */
struct engine_local_defragment {
    int64_t db_bytes, db_bytes_in_use;
    bool begun; /* it goes on while the engine serves */
};

struct engine_local_options {
    const char *data_dir;
    struct fs *fs;              /* NULL: the machine's */
    size_t segment_bytes_first; /* 0: 1 MiB */
    size_t segment_bytes_max;   /* 0: 64 MiB */
    size_t checkpoint_bytes;    /* of log between two checkpoints; 0: 64 MiB */
    int64_t quota_bytes;        /* shown in the status */
    uint64_t cluster_id, member_id;
    const struct slice *peer_urls; /* this member's, unless it was given others; lent to open */
    size_t peer_url_count;
    bool members_lax;      /* members may be added and removed whatever comes of the majority */
    unsigned learners_max; /* among the members */
    unsigned shards_max;
    size_t watch_fragment_bytes;        /* 0: 2 MiB */
    unsigned watchers_per_stream_max;   /* 0: 1,000,000 */
    uint64_t watchers_max;              /* in all; 0: 10,000,000 */
    int64_t watch_progress_interval_ns; /* 0: 10 minutes */
    int64_t compaction_wait_ns;         /* for shards that are behind; 0: a second */
    int64_t check_interval_ns; /* between the beginnings of two checks of the store; 0: an hour */
    bool check_first; /* all that is stored is read before anything else; damage: no start */
    int64_t defragment_from_bytes; /* defragment at the start if so much is free; 0: do not */
    int64_t lease_ttl_min_s;       /* 0: 2, as etcd's with its usual election timeout */
    void (*on_fatal)(void *ctx, const char *text);
    /* Something an operator should know and nobody is waiting for. May be NULL. */
    void (*on_warning)(void *ctx, const char *text);
    /* While it opens; each may be NULL. */
    void (*on_cut)(void *ctx, const struct engine_local_cut *cut);
    void (*on_defragment)(void *ctx, const struct engine_local_defragment *defragment);
    void *ctx;
    struct turns *turns; /* where turns of its threads are measured; NULL: nowhere */
};

/* Opens the store and starts the threads. */
MUST_CHECK
enum status engine_local_open(const struct engine_local_options *options,
                              struct engine **ret_engine, struct error *ret_error);

/*
 * Finishes what was started, writes a last checkpoint, ends the threads and closes the store. The
 * shards must have been freed.
 */
void engine_local_close(struct engine *engine); /* accepts NULL */

/* How large a checkpoint may become, in the address space that this process has. */
size_t engine_local_map_bytes(void);

#endif
