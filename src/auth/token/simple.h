/*
 * Simple tokens, as etcd gives them out: sixteen letters, a dot and the log's index. They live in
 * memory only, for a time that begins again with each use; a restart ends them, and clients log in
 * again.
 *
 * Knows no clock and draws no random numbers. One owner at a time: threads share one under a lock,
 * and remember what they were told for less than a second (a token that has ended is good for that
 * long). Aborts without memory.
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
    /* Past it the one that was not used for the longest goes. */
    AUTH_TOKENS_MAX = 100000,
};

/* The seed is for hashing: not to be known. */
struct auth_tokens *auth_tokens_new(int64_t ttl_ns, uint64_t seed);
void auth_tokens_free(struct auth_tokens *tokens); /* accepts NULL */
DEFINE_CLEANUP(struct auth_tokens *, auth_tokens_free)

size_t auth_tokens_count(const struct auth_tokens *tokens);

/* The random bytes are from a secure source. Returns the token, valid until it ends. Some of those
 * whose time has passed are freed; they were not found any more before that, too. */
struct slice auth_tokens_assign(struct auth_tokens *tokens, struct slice user,
                                const uint8_t random[AUTH_TOKEN_RANDOM_BYTES], uint64_t index,
                                int64_t now_ns);

/* Whose it is, valid until it ends; its time begins again. ST_INVALID_AUTH_TOKEN. */
MUST_CHECK
enum status auth_tokens_use(struct auth_tokens *tokens, struct slice token, int64_t now_ns,
                            struct slice *ret_user);

/* Those of a user (another password, or gone), or all (access is not controlled any more). */
void auth_tokens_end_user(struct auth_tokens *tokens, struct slice user);
void auth_tokens_end_all(struct auth_tokens *tokens);

/* For tests: each is found, and they are in the order in which they end. */
void auth_tokens_check(const struct auth_tokens *tokens);

#endif
