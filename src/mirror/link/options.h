/* Options of the cluster engine, from flags. Everything is borrowed until the engine is closed. */
#ifndef VIGIL_MIRROR_LINK_OPTIONS_H
#define VIGIL_MIRROR_LINK_OPTIONS_H

#include "engine/local/state/options.h"

/* A member that is silent for this long must give a sign of life, and its connection is lost if
 * there is none: so a call to a member that has stalled ends after eight seconds at most. Members
 * refuse questions that come more often than every five seconds. */
#define UPSTREAM_KEEPALIVE_NS (INT64_C(5500) * 1000 * 1000)
#define UPSTREAM_KEEPALIVE_TIMEOUT_NS (INT64_C(2500) * 1000 * 1000)

/* How the cluster is reached. */
struct upstream_options {
    const char *endpoints; /* separated by commas: "https://a:2379,https://b:2379" */
    const char *ca_file, *cert_file, *key_file, *server_name; /* "" or NULL: none */
    bool insecure_skip_verify;
    const char *user, *password; /* Vigil's own user; NULL: none */
    const char *via; /* name of this server (link/loop_guard.h); NULL: it is not recognised */
    int64_t connect_timeout_ns, keepalive_ns, keepalive_timeout_ns; /* 0: the defaults */
};

enum mirror_reads {
    MIRROR_READS_MIRROR,  /* from the mirror if it is new enough */
    MIRROR_READS_FORWARD, /* linearizable reads of etcd's API are forwarded */
};

/* Who is followed. Borrowed for the call. */
struct mirror_followed {
    int64_t revision; /* the mirror's */
    uint64_t cluster_id, member_id, raft_term;
    const char *endpoint; /* endpoint of the member; "" if the connection is gone already */
    const char *version;  /* version of the member; "" if it does not say */
};

/* How far the state of the cluster was read. Borrowed for the call. */
struct mirror_loaded {
    const char *why; /* the state must be read */
    uint64_t keys, different;
    bool is_complete;
};

struct mirror_options {
    struct upstream_options upstream;
    const struct slice *prefixes; /* that are mirrored; none: the whole key space */
    size_t prefix_count;
    enum mirror_reads reads;
    int64_t lag_max_revisions; /* a mirror further behind is not ready; 0: 10,000 */
    int64_t read_wait_ns; /* how long a read waits for the mirror before it is forwarded; 0: 1 ms */
    int64_t grant_ns;     /* how long an answer about a caller's rights is used; 0: 1 s */
    /* The mirror: data_dir, shards_max, limits of watches, callbacks. */
    struct engine_local_options mirror;
    /* On any thread: the mirror does not belong to this cluster's past, or its stored bytes are
     * damaged. The owner stops the engine, calls engine_cluster_discard and opens it again. May be
     * NULL, like the next three. */
    void (*on_reset)(void *ctx, const char *reason);
    /* On any thread, for the log: the cluster cannot be followed, and why. At the first failure,
     * and then every few seconds. */
    void (*on_waiting)(void *ctx, const char *reason);
    /* The whole state is being read: at the beginning, every few seconds, and at the end. keys: so
     * far; different: those of them that were not in the mirror. */
    void (*on_loading)(void *ctx, const struct mirror_loaded *loaded);
    /* The mirror follows the cluster again, or for the first time. */
    void (*on_following)(void *ctx, const struct mirror_followed *followed);
    void *ctx;
};

/* The mirror has all keys of this range. */
bool mirror_covers(const struct mirror_options *options, struct slice key, struct slice range_end);

#endif
