/*
 * Users, roles and who may what, through the seam. See engine/engine.h for the lives of operations
 * and auth/rights.h for the picture that checks use.
 *
 * Who checks what, where:
 *
 *   the face     finds out who asks (token, certificate) and fills op.principal of every operation;
 *                asks auth_method_check before it begins, which is all there is for methods without
 *                an operation (status, members, snapshot); asks auth_check_watch for each watch
 * that is created, and again for all there are when it is told that rights have changed. the engine
 * checks every operation by itself, whoever starts it: reads with the rights of the very state they
 * read from; what the writer does with the rights after everything before it, right before it is
 * done. A right that was taken away holds from there on, and a principal older than that is
 * ST_AUTH_OLD_REVISION. Done through auth/check.h: keys, all branches of transactions, previous
 * values, keys of leases; root for compaction, hashes, defragmentation, downgrades, alarms that
 * change and all changes here.
 *
 * An operation whose principal was not set is nobody's, and is refused as soon as access is
 * controlled. What the server does on its own behalf says so: ENGINE_SERVER (engine/operation.h).
 */
#ifndef VIGIL_ENGINE_AUTH_H
#define VIGIL_ENGINE_AUTH_H

#include "auth/rights.h"
#include "engine/operation.h"

struct pb_permission;

enum engine_auth_call {
    /* Changes, durable when done. All need root. */
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

    /* Questions, answered after every change that was started before them. */
    ENGINE_AUTH_USER_GET,  /* user: its roles in names. Oneself, or root */
    ENGINE_AUTH_USER_LIST, /* names. Root */
    ENGINE_AUTH_ROLE_GET,  /* role: its permissions, as a client is shown them. Who has it, or root
                            */
    ENGINE_AUTH_ROLE_LIST, /* names. Root */
    /*
     * user: what its password is to be held against (auth/password.h, engine/hasher.h). Anybody.
     * ST_AUTH_NOT_ENABLED, ST_AUTH_FAILED. See engine_auth_revision for what comes after.
     */
    ENGINE_AUTH_PASSWORD,
};

struct engine_auth {
    struct engine_op op; /* first */
    enum engine_auth_call call;

    /* What the call asks, as said above; borrowed until done. */
    struct slice user, role;
    struct slice hash; /* auth_password_hash's */
    bool no_password;
    const struct pb_permission *permission; /* NULL: the client gave none */
    struct slice key, range_end;

    /* Answers, in the operation's arena. */
    struct slice *names; /* sorted */
    size_t name_count;
    struct pb_permission *permissions;
    size_t permission_count;
    struct slice password_hash;
    uint64_t auth_revision; /* of the store when this was done, the change included */
    /* Tokens are no rows and not the engine's: done is to end these before it answers. */
    struct slice ends_tokens_of; /* a user; empty: nobody's */
    bool ends_all_tokens;
};

void engine_auth_start(struct engine_shard *shard, struct engine_auth *auth);

/*
 * The newest published rights, valid until this is asked again or the shard's next turn begins. No
 * lock.
 */
const struct auth_rights *engine_auth_rights(struct engine_shard *shard);

/* By those: whether access is controlled, and whether it is not or a user may both read and write
 * all of a range. */
bool engine_auth_enabled(struct engine_shard *shard);
bool engine_auth_holds(struct engine_shard *shard, struct slice user, struct slice key,
                       struct slice range_end);

/*
 * The newest published, or about to be. Any thread, no lock.
 *
 * For who gives out tokens: after the password was found right, compare it, under the lock of the
 * tokens, with auth_revision of ENGINE_AUTH_PASSWORD. If it has moved, ask again. A change is
 * published before its done ends tokens, so that none can be given out for the old password after
 * that.
 */
uint64_t engine_auth_revision(const struct engine *engine);

/*
 * Rights have changed: called in the beginning of a turn, or from engine_auth_rights, before
 * watches are told of anything that was written after the change, with the new ones to be asked
 * for. Only a shard where somebody watches is woken for it. It may end watches and calls, and
 * starts no operation. Embedded in its owner, one for each face of a shard.
 */
struct engine_auth_listener {
    void (*changed)(void *ctx);
    void *ctx;
    struct engine_auth_listener *next; /* the engine's */
};
void engine_auth_listen(struct engine_shard *shard, struct engine_auth_listener *listener);
/* Does nothing for one that does not listen. */
void engine_auth_unlisten(struct engine_shard *shard, struct engine_auth_listener *listener);

/* For engines: calls all of them. */
void engine_auth_tell(const struct engine_shard *shard);

#endif
