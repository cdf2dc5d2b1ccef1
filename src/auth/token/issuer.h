/*
 * Gives out tokens and says whose one is: simple ones (auth/token/simple.h), which it keeps under a
 * lock, or JSON Web Tokens (auth/token/jwt.h), of which nothing is kept.
 *
 * One to a server; any thread. Who asks often remembers what it was told, for less than
 * auth_issuer_remember_ns and as long as auth_issuer_endings stays the same: then the lock is not
 * taken for each call, and a token that was ended is still refused at once.
 */
#ifndef VIGIL_AUTH_TOKEN_ISSUER_H
#define VIGIL_AUTH_TOKEN_ISSUER_H

#include "auth/token/jwt.h"
#include "auth/token/simple.h"

struct auth_issuer;

struct auth_issuer_settings {
    int64_t simple_ttl_ns;               /* of simple tokens */
    const struct auth_jwt_settings *jwt; /* NULL: tokens are simple */
};

/* ST_INVALID with a sentence: see auth_jwt_new. Nothing is borrowed afterwards. */
MUST_CHECK
enum status auth_issuer_new(const struct auth_issuer_settings *settings,
                            struct auth_issuer **ret_issuer, struct error *error);
void auth_issuer_free(struct auth_issuer *issuer); /* accepts NULL */
DEFINE_CLEANUP(struct auth_issuer *, auth_issuer_free)

/* Both clocks: simple tokens live by the first, the others by the second. */
struct auth_moment {
    int64_t mono_ns;
    int64_t real_s; /* since 1970 */
};

/* Somebody whose password was found right. */
struct auth_login {
    struct auth_principal principal; /* with the revision at which it was looked up */
    uint64_t index;                  /* of the log: a part of simple tokens */
    struct auth_moment now;
    uint64_t (*revision)(void *ctx); /* the newest; asked while no token can be ended */
    void *ctx;
};

/*
 * Appends a token. ST_AUTH_OLD_REVISION: something has changed since the password was looked up,
 * which is to be done again. ST_UNIMPLEMENTED: without a private key tokens are only checked.
 */
MUST_CHECK
enum status auth_issuer_give(struct auth_issuer *issuer, const struct auth_login *login,
                             struct buf *out);

/*
 * Whose it is: the name lies in the arena. revision is that of the rights now, and a simple token's
 * own; the others carry theirs. ST_INVALID_AUTH_TOKEN.
 */
MUST_CHECK
enum status auth_issuer_find(struct auth_issuer *issuer, struct slice token, uint64_t revision,
                             struct auth_moment now, struct arena *arena,
                             struct auth_principal *ret_principal);

/* Ends the simple tokens of a user, or all. Others end with their time. */
void auth_issuer_end_user(struct auth_issuer *issuer, struct slice user);
void auth_issuer_end_all(struct auth_issuer *issuer);
/* How often tokens were ended so far. */
uint64_t auth_issuer_endings(const struct auth_issuer *issuer);
int64_t auth_issuer_remember_ns(const struct auth_issuer *issuer);

#endif
