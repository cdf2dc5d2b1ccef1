/*
 * Users, roles and permissions (engine/engine.h), and the question whether a watch may be created.
 */
#ifndef VIGIL_ENGINE_AUTH_H
#define VIGIL_ENGINE_AUTH_H

#include "engine/engine_ops.h"

struct pb_permission;

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

static inline void engine_auth_start(struct engine_shard *shard, struct engine_auth *auth)
{
    engine_start(shard, &auth->op, ENGINE_AUTH, NULL);
}

/* The newest published permissions; valid until the next call or the shard's next turn. No lock. */
static inline const struct auth_rights *engine_auth_rights(struct engine_shard *shard)
{
    return shard->engine->ops->auth_rights(shard);
}

/* By those permissions: whether authentication is enabled. */
static inline bool engine_auth_enabled(struct engine_shard *shard)
{
    return auth_rights_enabled(engine_auth_rights(shard));
}

/* The user may read and write the whole range, or authentication is disabled. */
bool engine_auth_holds(struct engine_shard *shard, struct slice user, struct slice key,
                       struct slice range_end);

/*
 * The revision of users and roles that is published, or about to be. Any thread, without a lock.
 *
 * A login compares it, after the password was found correct and while it holds the lock of the
 * tokens, with auth_revision of ENGINE_AUTH_PASSWORD; if they differ, it begins again. A change is
 * published before its done ends tokens, so no token can be issued afterwards for an old password.
 */
static inline uint64_t engine_auth_revision(const struct engine *engine)
{
    return engine->ops->auth_revision(engine);
}

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

void engine_auth_listen(struct engine_shard *shard, struct engine_auth_listener *listener);
/* Does nothing for a listener that is not registered. */
void engine_auth_unlisten(struct engine_shard *shard, struct engine_auth_listener *listener);

/* -- Watches -- */

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

/*
 * Whether the caller may watch a range. For a new watch it is an operation, because an engine in
 * front of a cluster asks the cluster, and is done when a watch without a start revision sees
 * everything that was written before. The server itself may watch everything. For a running one the
 * answer is the last known one; when it may have changed, the listeners of engine_auth_listen are
 * called. ST_AGAIN: the permission was not confirmed lately; a watch for which this does not change
 * must be ended.
 */
static inline void engine_watch_admit(struct engine_shard *shard,
                                      struct engine_admission *admission)
{
    engine_start(shard, &admission->op, ENGINE_WATCH_ADMIT, NULL);
}
MUST_CHECK
enum status engine_watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end);

#endif
