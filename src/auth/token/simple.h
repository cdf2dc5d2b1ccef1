/*
 * Simple tokens, as etcd issues them: sixteen letters, a dot and the log index. They exist only in
 * memory, for a time that begins again with each use; after a restart clients must log in again.
 *
 * It reads no clock and draws no random numbers. One thread at a time: threads share one under a
 * lock (auth/token/issuer.h). Aborts without memory.
 */
#ifndef VIGIL_AUTH_TOKEN_SIMPLE_H
#define VIGIL_AUTH_TOKEN_SIMPLE_H

#include "base/slice.h"
#include "base/status.h"

struct auth_tokens;

enum {
    AUTH_TOKEN_LETTERS = 16,
    AUTH_TOKEN_RANDOM_BYTES = 2 * AUTH_TOKEN_LETTERS,
    AUTH_TOKEN_TEXT_BYTES = AUTH_TOKEN_LETTERS + 1 + 20, /* the longest; without a NUL */
    /* Beyond this limit the least recently used token of the user that logs in is removed; of a
     * user that has none, the least recently used of all. */
    AUTH_TOKENS_MAX = 100000,
};

/* The seed is for hashing and must be secret. */
struct auth_tokens *auth_tokens_new(int64_t ttl_ns, uint64_t seed);
void auth_tokens_free(struct auth_tokens *tokens); /* accepts NULL */
DEFINE_CLEANUP(struct auth_tokens *, auth_tokens_free)

size_t auth_tokens_count(const struct auth_tokens *tokens);

/* The random bytes are from a secure source. Returns the token, valid until it is removed. Also
 * frees some expired tokens, which could not be used any more. */
struct slice auth_tokens_assign(struct auth_tokens *tokens, struct slice user,
                                const uint8_t random[AUTH_TOKEN_RANDOM_BYTES], uint64_t index,
                                int64_t now_ns);

/* Returns its user, valid until the token is removed; its time begins again. ST_INVALID_AUTH_TOKEN.
 */
MUST_CHECK
enum status auth_tokens_use(struct auth_tokens *tokens, struct slice token, int64_t now_ns,
                            struct slice *ret_user);

/* Removes the tokens of a user (password changed, user deleted), or all (authentication disabled).
 */
void auth_tokens_end_user(struct auth_tokens *tokens, struct slice user);
void auth_tokens_end_all(struct auth_tokens *tokens);

/* For tests: each token is found, and they are ordered by expiry. */
void auth_tokens_check(const struct auth_tokens *tokens);

#endif
