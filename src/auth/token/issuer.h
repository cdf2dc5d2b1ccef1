/*
 * Issues tokens and finds the user of a token. Tokens are simple (auth/token/simple.h), stored
 * under a lock, or JSON Web Tokens (auth/token/jwt.h), which are not stored.
 *
 * One for each server; any thread. A frequent caller caches results for less than
 * auth_issuer_remember_ns and as long as auth_issuer_endings stays the same: it need not take the
 * lock for each call, and still refuses a revoked token at once.
 */
#ifndef VIGIL_AUTH_TOKEN_ISSUER_H
#define VIGIL_AUTH_TOKEN_ISSUER_H

#include "auth/token/jwt.h"
#include "auth/token/simple.h"

struct auth_issuer;

struct auth_issuer_settings {
    int64_t simple_ttl_ns;               /* time to live of simple tokens */
    const struct auth_jwt_settings *jwt; /* NULL: tokens are simple */
};

/* ST_INVALID with an error text: see auth_jwt_new. Copies what it needs of the settings. */
MUST_CHECK
enum status auth_issuer_new(const struct auth_issuer_settings *settings,
                            struct auth_issuer **ret_issuer, struct error *error);
void auth_issuer_free(struct auth_issuer *issuer); /* accepts NULL */
DEFINE_CLEANUP(struct auth_issuer *, auth_issuer_free)

/* Simple tokens expire by the monotonic clock, JSON Web Tokens by the real one. */
struct auth_moment {
    int64_t mono_ns;
    int64_t real_s; /* since 1970 */
};

/* A user whose password was found correct. */
struct auth_login {
    struct auth_principal principal; /* with the revision at which the hash was read */
    uint64_t index;                  /* log index: a part of simple tokens */
    struct auth_moment now;
    uint64_t (*revision)(void *ctx); /* the newest; called while no token can be revoked */
    void *ctx;
};

/*
 * Appends a token. ST_AUTH_OLD_REVISION: users or roles have changed since the hash was read; the
 * login must be repeated. ST_UNIMPLEMENTED: without a private key tokens can only be checked.
 */
MUST_CHECK
enum status auth_issuer_give(struct auth_issuer *issuer, const struct auth_login *login,
                             struct buf *out);

/*
 * Finds the user of a token; the name is in the arena. `revision` is that of the current rights,
 * which a simple token gets; JSON Web Tokens contain their own. ST_INVALID_AUTH_TOKEN.
 */
MUST_CHECK
enum status auth_issuer_find(struct auth_issuer *issuer, struct slice token, uint64_t revision,
                             struct auth_moment now, struct arena *arena,
                             struct auth_principal *ret_principal);

/* Revokes the simple tokens of a user, or all. JSON Web Tokens only expire. */
void auth_issuer_end_user(struct auth_issuer *issuer, struct slice user);
void auth_issuer_end_all(struct auth_issuer *issuer);
/* The number of times that tokens were revoked. */
uint64_t auth_issuer_endings(const struct auth_issuer *issuer);
int64_t auth_issuer_remember_ns(const struct auth_issuer *issuer);

#endif
