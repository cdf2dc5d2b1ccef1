/* Options of the local engine. */
#ifndef VIGIL_ENGINE_LOCAL_STATE_OPTIONS_H
#define VIGIL_ENGINE_LOCAL_STATE_OPTIONS_H

#include "base/slice.h"
#include "io/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An unfinished write at the end of the log, which a start has removed. */
struct engine_local_cut {
    uint64_t index; /* log index of the first record that was removed */
    uint64_t bytes;
    uint64_t segment_id, offset;
    const char *reason;
};

struct turns;

/* Whether a start defragments: it does if defragment_from_bytes or more could be freed. */
struct engine_local_defragment {
    int64_t db_bytes, db_bytes_in_use;
    bool begun; /* it continues while the engine serves requests */
};

struct engine_local_options {
    const char *data_dir;
    struct fs *fs;              /* NULL: the real file system */
    size_t segment_bytes_first; /* 0: 1 MiB */
    size_t segment_bytes_max;   /* 0: 64 MiB */
    size_t checkpoint_bytes;    /* size of the log between two checkpoints; 0: 64 MiB */
    int64_t quota_bytes;        /* 0 or less: no quota */
    uint64_t cluster_id, member_id;
    /* Peer URLs of this member, unless they were changed; used only by open. */
    const struct slice *peer_urls;
    size_t peer_url_count;
    bool members_lax;      /* members may be added and removed without regard to the quorum */
    unsigned learners_max; /* among the members */
    unsigned shards_max;
    size_t watch_fragment_bytes;        /* 0: 2 MiB */
    unsigned watchers_per_stream_max;   /* 0: 1,000,000 */
    uint64_t watchers_max;              /* in total; 0: 10,000,000 */
    int64_t watch_progress_interval_ns; /* 0: 10 minutes */
    int64_t compaction_wait_ns;         /* for shards that are behind; 0: a second */
    int64_t
        check_interval_ns; /* from the start of one check of the store to the next; 0: an hour */
    bool check_first;      /* check the whole store while opening; damage is an error */
    int64_t
        defragment_from_bytes; /* defragment at the start if this much could be freed; 0: never */
    int64_t lease_ttl_min_s;   /* 0: 2, as in etcd with its default election timeout */
    void (*on_fatal)(void *ctx, const char *text);
    /* A problem that is not part of any answer. May be NULL. */
    void (*on_warning)(void *ctx, const char *text);
    /* Called while the engine opens; each may be NULL. */
    void (*on_cut)(void *ctx, const struct engine_local_cut *cut);
    void (*on_defragment)(void *ctx, const struct engine_local_defragment *defragment);
    void *ctx;
    bool checks_at_close; /* for tests: close asserts that everything is consistent */
    struct turns *turns;  /* measures the turns of the threads; NULL: not measured */
    bool is_mirror;       /* a mirror of another server: see engine/local/mirror/mirror_store.h */
    bool leaves_signals;  /* they are the program's: page faults are not reported */
    bool has_readers;     /* for engine/local/shard/direct.h */
    /*
     * Called instead of on_fatal when the log or the checkpoint cannot be written, on the thread
     * that met it. When it returns, the engine has stopped: every operation that needs another
     * thread fails, and nothing is written any more, also not by close. May be NULL.
     */
    void (*on_failure)(void *ctx, const char *text);
};

/* Replaces zeros by the defaults above. */
void engine_local_options_set_defaults(struct engine_local_options *options);

#endif
