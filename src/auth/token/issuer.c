#include "auth/token/issuer.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <stdlib.h>

#define REMEMBER_NS (NS_PER_S / 2)

struct auth_issuer {
    struct auth_jwt *jwt; /* owned; NULL: tokens are simple */
    struct lock lock;     /* protects tokens */
    struct auth_tokens *tokens;
    int64_t remember_ns;
    _Atomic uint64_t endings;
};

enum status auth_issuer_new(const struct auth_issuer_settings *settings,
                            struct auth_issuer **ret_issuer, struct error *error)
{
    AUTO(auth_issuer_freep) struct auth_issuer *issuer = xcalloc(1, sizeof(*issuer));
    lock_init(&issuer->lock);
    issuer->tokens = auth_tokens_new(settings->simple_ttl_ns, random_seed_system());
    issuer->remember_ns = REMEMBER_NS;
    if (settings->jwt)
        TRY(auth_jwt_new(settings->jwt, &issuer->jwt, error));
    else if (settings->simple_ttl_ns / 4 <
             REMEMBER_NS) /* a token in use must not expire while it is cached */
        issuer->remember_ns = settings->simple_ttl_ns / 4;
    *ret_issuer = TAKE(issuer);
    return ST_OK;
}

void auth_issuer_free(struct auth_issuer *issuer)
{
    if (!issuer)
        return;
    auth_jwt_free(issuer->jwt);
    auth_tokens_free(issuer->tokens);
    lock_fini(&issuer->lock);
    free(issuer);
}

static MUST_CHECK
enum status check_revision(const struct auth_login *login)
{
    /* Comparing a password takes long and needs no lock. If users or roles have changed meanwhile,
     * it may have been the old password, and the login is repeated. */
    bool moved = login->revision(login->ctx) != login->principal.revision;
    return moved ? ST_AUTH_OLD_REVISION : ST_OK;
}

enum status auth_issuer_give(struct auth_issuer *issuer, const struct auth_login *login,
                             struct buf *out)
{
    uint8_t random[AUTH_TOKEN_RANDOM_BYTES];
    random_secret(random, sizeof(random));
    if (issuer->jwt) { /* contains the revision */
        TRY(check_revision(login));
        return auth_jwt_sign(issuer->jwt, &login->principal, login->now.real_s, out);
    }
    /* A change of the password ends the user's tokens under the same lock. A token is therefore
     * either given before that and ended, or refused by its revision. */
    LOCK_SCOPE(&issuer->lock);
    TRY(check_revision(login));
    return buf_append(out, auth_tokens_assign(issuer->tokens, login->principal.user, random,
                                              login->index, login->now.mono_ns));
}

enum status auth_issuer_find(struct auth_issuer *issuer, struct slice token, uint64_t revision,
                             struct auth_moment now, struct arena *arena,
                             struct auth_principal *ret_principal)
{
    struct auth_principal principal = {.revision = revision};
    struct slice user;
    if (issuer->jwt)
        return auth_jwt_check(issuer->jwt, token, now.real_s, arena, ret_principal);
    LOCK_SCOPE(&issuer->lock);
    TRY(auth_tokens_use(issuer->tokens, token, now.mono_ns, &user));
    TRY(arena_dup(arena, user, &principal.user));
    *ret_principal = principal;
    return ST_OK;
}

void auth_issuer_end_user(struct auth_issuer *issuer, struct slice user)
{
    LOCK_SCOPE(&issuer->lock);
    auth_tokens_end_user(issuer->tokens, user);
    atomic_fetch_add_explicit(&issuer->endings, 1, memory_order_release);
}

void auth_issuer_end_all(struct auth_issuer *issuer)
{
    LOCK_SCOPE(&issuer->lock);
    auth_tokens_end_all(issuer->tokens);
    atomic_fetch_add_explicit(&issuer->endings, 1, memory_order_release);
}

uint64_t auth_issuer_endings(const struct auth_issuer *issuer)
{
    return atomic_load_explicit(&issuer->endings, memory_order_acquire);
}

int64_t auth_issuer_remember_ns(const struct auth_issuer *issuer)
{
    return issuer->remember_ns;
}
