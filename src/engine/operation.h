/*
 * Operations of an engine, as their callers hold them: what is asked, and what comes back. The
 * caller owns the memory and embeds it where it likes; see engine/engine.h for their lives.
 */
#ifndef VIGIL_ENGINE_OPERATION_H
#define VIGIL_ENGINE_OPERATION_H

#include "auth/rights.h"
#include "base/container/list.h"
#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "codec/answer.h"
#include "io/mailbox.h"

#include <stdatomic.h>

struct engine;
struct engine_shard;

/*
 * What the server does on its own behalf, without asking anybody: auto compaction, health checks,
 * and the Kubernetes face for clients that it knows by name. Never for a call of etcd's API.
 */
#define ENGINE_SERVER ((struct auth_principal){.is_server = true})

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
    /* On whose behalf. All zero: nobody's, and refused while access is controlled. */
    struct auth_principal principal; /* the name is lent until done */

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
    uint8_t need; /* enum auth_need: what its principal must be able to; see engine/permission.h */
};

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
    int64_t started_ns, pinned_ns;
    uint64_t pinned_newer; /* the state it is going over to; 0: it is not */
    bool given_up;         /* nobody waits for it */
    struct list in_shard;  /* of those that are not done yet, or go over to a newer state */
};

/*
 * One write under way. Its answer refers to the store's own bytes: after done the caller encodes
 * it, and then calls engine_write_close; also when it failed.
 */
struct engine_write {
    struct engine_op op; /* first */
    struct kv_answer answer;
    bool given_up; /* nobody waits for it: a transaction that only reads need not go on */
};

struct engine_hash {
    struct engine_op op; /* first */
    int64_t at_revision; /* in: 0 for the newest */
    uint32_t hash;
    int64_t compact_revision;
    int64_t hash_revision;
    _Atomic bool given_up; /* the engine's: nobody waits for it */
};

/* As etcd numbers them. While NOSPACE is raised nothing is put, while CORRUPT is, nothing changes.
 */
enum { ENGINE_ALARM_NONE = 0, ENGINE_ALARM_NOSPACE = 1, ENGINE_ALARM_CORRUPT = 2 };
enum { ENGINE_ALARMS_MAX = 64 };

struct engine_alarm_row {
    uint64_t member_id;
    int32_t type; /* as above, or any other number a client has given */
};

struct engine_alarm {
    struct engine_op op;           /* first */
    struct engine_alarm_row *rows; /* what is raised, or what was changed; in the op's arena */
    size_t row_count;
};

struct engine_defragment {
    struct engine_op op;   /* first */
    _Atomic bool given_up; /* the engine's: nobody waits for it */
};

enum { ENGINE_VERSION_BYTES_MAX = 32 };

struct engine_status {
    int64_t revision;
    int64_t compact_revision;
    uint64_t raft_index;
    uint64_t applied_index;
    int64_t db_size_bytes;
    int64_t db_size_in_use_bytes;
    int64_t quota_bytes;
    unsigned alarms; /* the bit 1 << type of each that is raised, for whatever member */
    char downgrade_target[ENGINE_VERSION_BYTES_MAX]; /* "": none is under way */
};

#endif
