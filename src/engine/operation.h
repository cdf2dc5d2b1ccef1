/*
 * The operations of an engine: what a caller fills in, and what it gets back. The caller owns the
 * memory and usually embeds the operation in its call. The functions that start operations, and
 * the life of an operation, are in engine/engine.h.
 *
 * Every operation begins with a struct engine_op. Requests and other input are borrowed until done.
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
struct pb_permission;

/*
 * The principal of operations that the server starts on its own behalf, without permission checks:
 * auto compaction, health checks, and the Kubernetes API, which has its own clients. Never used for
 * a call of etcd's API.
 */
#define ENGINE_SERVER ((struct auth_principal){.is_server = true})

struct engine_op {
    /* Set by the caller before starting. */
    void (*done)(struct engine_op *op);
    struct arena *arena; /* answers are allocated here; used by the engine until done */
    /* The user on whose behalf it runs; the name is borrowed until done. All zero: no user; refused
     * while authentication is enabled. */
    struct auth_principal principal;

    /* Set by the engine before done. */
    enum status status;
    struct slice text; /* the error text, of an upstream server or with details; empty: that of the
                          status table */
    int64_t revision;  /* for the response header */

    /* Private to the engine. */
    struct engine_shard *shard;
    union {
        struct mailbox_node in_mailbox;
        struct mailbox_link in_chain;
    };
    uint64_t pinned;
    const void *request;
    uint8_t kind;
    uint8_t need; /* enum auth_need: the permission it needs; see engine/permission.h */
};

/* -- Keys -- */

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
    bool given_up;         /* the caller no longer needs the result */
    struct list in_shard;  /* links ranges that are not done, or are moving to a newer state */
};

/*
 * A write. Its answer refers to bytes of the store: after done, also after a failure, the caller
 * encodes the answer and then calls engine_write_close.
 */
struct engine_write {
    struct engine_op op; /* first */
    struct kv_answer answer;
    bool given_up; /* private: a transaction that only reads may stop */
};

/* -- Leases -- */

struct engine_lease {
    struct engine_op op; /* first */
    int64_t id;          /* grant: 0 lets the engine choose; after done, the id */
    int64_t ttl_s; /* grant: requested, after done granted; time-to-live, after done: remaining,
                      -1 if the lease does not exist */
    int64_t granted_ttl_s;
    int64_t until_ns; /* grant: the lease ends at this time of the real clock, also after a restart,
                         or with its last key. 0: an ordinary lease of etcd */
    bool want_keys;   /* time-to-live */

    /* Answers, in the operation's arena. */
    struct slice *keys; /* sorted */
    size_t key_count;
    int64_t *ids; /* the first to expire comes first */
    size_t id_count;
    void *unsorted; /* private to the engine: ids or keys */
};

struct engine_renewal {
    int64_t id;
    int64_t ttl_s; /* after done: the whole time to live; 0: the lease does not exist */
};

/* Renewals that arrived together. */
struct engine_renewals {
    struct engine_op op;          /* first; at its revision the renewed leases existed */
    struct engine_renewal *items; /* borrowed until done */
    size_t count;
    size_t answered;  /* after done: the first items that were renewed. Fewer than count if the next
                         one failed; op.status is its error */
    int64_t asked_ns; /* private to the engine */
};

/* -- Users, roles and permissions -- */

enum engine_auth_call {
    /* Changes; durable when done. All need the role root. */
    ENGINE_AUTH_ENABLE,
    ENGINE_AUTH_DISABLE,
    ENGINE_AUTH_USER_ADD,             /* user, and hash or no_password */
    ENGINE_AUTH_USER_DELETE,          /* user */
    ENGINE_AUTH_USER_CHANGE_PASSWORD, /* user, hash */
    ENGINE_AUTH_USER_GRANT_ROLE,      /* user, role */
    ENGINE_AUTH_USER_REVOKE_ROLE,     /* user, role */
    ENGINE_AUTH_ROLE_ADD,             /* role */
    ENGINE_AUTH_ROLE_DELETE,          /* role */
    ENGINE_AUTH_ROLE_GRANT,           /* role, permission */
    ENGINE_AUTH_ROLE_REVOKE,          /* role, key, range_end */

    /* Questions; answered after every change that was started before them. */
    ENGINE_AUTH_USER_GET,  /* user: the names of its roles. The user itself, or root */
    ENGINE_AUTH_USER_LIST, /* names. Root */
    ENGINE_AUTH_ROLE_GET,  /* role: its permissions. A user that has the role, or root */
    ENGINE_AUTH_ROLE_LIST, /* names. Root */
    /*
     * user: the hash with which its password is compared (auth/password.h, engine/hasher.h). Needs
     * no permission. ST_AUTH_NOT_ENABLED, ST_AUTH_FAILED. See engine_auth_revision for the login.
     */
    ENGINE_AUTH_PASSWORD,
};

struct engine_auth {
    struct engine_op op; /* first */
    enum engine_auth_call call;

    /* Input, as listed above; borrowed until done. */
    struct slice user, role;
    struct slice hash; /* from auth_password_hash */
    bool no_password;
    const struct pb_permission *permission; /* NULL: the request has none */
    struct slice key, range_end;

    /* Answers, in the operation's arena. */
    struct slice *names; /* sorted */
    size_t name_count;
    struct pb_permission *permissions;
    size_t permission_count;
    struct slice password_hash;
    uint64_t auth_revision; /* after this call, its own change included */
    /* Tokens are not stored by the engine: done must end these before it answers. */
    struct slice ends_tokens_of; /* a user; empty: none */
    bool ends_all_tokens;
};

/*
 * Called when permissions have changed: at the beginning of a turn, or from engine_auth_rights, and
 * before watches get events that are newer than the change. engine_auth_rights returns the new
 * permissions by then. It may end watches and calls, and starts no operation. Only a shard that has
 * watches is woken for it. Embedded in its owner, one for each API of a shard.
 */
struct engine_auth_listener {
    void (*changed)(void *ctx);
    void *ctx;
    struct engine_auth_listener *next; /* private to the engine */
};

/* The question whether a new watch may read its range, as the client has sent it. */
struct engine_admission {
    struct engine_op op; /* first; its status is the answer */
    struct slice key, range_end;
    /* 0: the watch is to see what is written from now on, so it must not begin before what was
     * written through this server. One that names its revision has no such need. */
    int64_t start_revision;
    /* After done, only of an engine in front of a cluster: the range is not mirrored, and the watch
     * must be made at the cluster (engine/forward.h), which decides about it. */
    bool is_foreign;
};

/* -- Members -- */

enum {
    ENGINE_MEMBERS_MAX = 32,
    ENGINE_PEER_URLS_MAX = 32,             /* limit on the URLs of one member */
    ENGINE_PEER_URL_BYTES_MAX = 16 * 1024, /* limit on the length of all its URLs together */
};

struct engine_member {
    uint64_t id;
    bool learner;
    const struct slice *peer_urls;
    size_t peer_url_count;
};

enum engine_member_call {
    ENGINE_MEMBER_LIST,
    ENGINE_MEMBER_ADD,
    ENGINE_MEMBER_REMOVE,
    ENGINE_MEMBER_UPDATE,
    ENGINE_MEMBER_PROMOTE,
};

struct engine_members {
    struct engine_op op; /* first */
    enum engine_member_call call;
    struct engine_member member; /* in: a new member, or the id of a member and its new URLs */
    struct engine_member *list;  /* out: all members, by id; in the operation's arena */
    size_t count;
};

/* -- Maintenance -- */

/* In every response header besides the revision. Constant while the engine runs, except in front of
 * a cluster, which may be known later, and whose term changes. */
struct engine_identity {
    uint64_t cluster_id;
    uint64_t member_id;
    uint64_t raft_term;
};

/* As a member of the cluster names them: "3.7.3", "3.7.0". */
enum { ENGINE_VERSION_BYTES = 32 };
struct engine_versions {
    char server[ENGINE_VERSION_BYTES];
    char cluster[ENGINE_VERSION_BYTES];
    char storage[ENGINE_VERSION_BYTES]; /* "": the member does not know it (before etcd 3.6) */
};

/* What the members of a cluster say of themselves to the engine in front of it. */
struct engine_membership {
    bool has_leader;            /* a member that answers knows of one */
    bool is_leader, is_learner; /* the member that is followed; false while it does not answer */
    uint64_t leader_changes;    /* that were seen, the first leader included */
    uint64_t raft_index,
        applied_index; /* indexes of the member that is followed, the last that are known */
};

struct engine_hash {
    struct engine_op op; /* first */
    int64_t at_revision; /* in: 0 for the newest */
    uint32_t hash;
    int64_t compact_revision;
    int64_t hash_revision;
    _Atomic bool given_up; /* private to the engine */
};

/* As etcd numbers them. While NOSPACE is raised, puts are refused; while CORRUPT is, all changes.
 */
enum { ENGINE_ALARM_NONE = 0, ENGINE_ALARM_NOSPACE = 1, ENGINE_ALARM_CORRUPT = 2 };
enum { ENGINE_ALARMS_MAX = 64 };

struct engine_alarm_row {
    uint64_t member_id;
    int32_t type; /* one of the above, or any other number that a client has sent */
};

struct engine_alarm {
    struct engine_op op;           /* first */
    struct engine_alarm_row *rows; /* raised or changed alarms; in the operation's arena */
    size_t row_count;
};

struct engine_defragment {
    struct engine_op op;   /* first */
    _Atomic bool given_up; /* private to the engine */
};

enum { ENGINE_VERSION_BYTES_MAX = 32 };

struct engine_status {
    int64_t revision;
    int64_t compact_revision;
    uint64_t keys; /* that exist */
    uint64_t raft_index;
    uint64_t applied_index;
    int64_t db_size_bytes;
    int64_t db_size_in_use_bytes;
    int64_t quota_bytes;
    unsigned alarms; /* bit 1 << type is set for each raised alarm, of any member */
    char downgrade_target[ENGINE_VERSION_BYTES_MAX]; /* "": no downgrade is in progress */
};

enum {
    ENGINE_SNAPSHOTS_MAX = 8, /* at once */
    ENGINE_SNAPSHOT_PIECE_BYTES = 128 << 10,
    ENGINE_SNAPSHOT_DIGEST_BYTES = 32, /* SHA-256 */
};

/* Parts of the file that only the caller knows. Texts are borrowed until it is closed. */
struct engine_snapshot_about {
    const char *storage_version; /* "3.6.0"; "": an etcd version that did not store one */
    const char *cluster_version;
    struct slice member; /* JSON, as etcd stores the attributes of a member */
};

struct engine_snapshot {
    struct engine_op op;                /* first; used by the start and by each read */
    struct engine_snapshot_about about; /* in */
    uint64_t bytes;                     /* after the start: the length of the file */
    struct slice piece;                 /* after a read: valid until the next read or close */
    uint8_t digest[ENGINE_SNAPSHOT_DIGEST_BYTES]; /* after the last piece: of the whole file */

    /* Private to the engine. */
    void *state;
    _Atomic bool given_up;
};

#endif
