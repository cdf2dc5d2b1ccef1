/*
 * Tokens that carry their user: JSON Web Tokens, signed and checked as etcd does it with
 * --auth-token=jwt,… Nothing is kept of them; they end when their time does, and for keys with the
 * next change to users and roles, since they say at which revision they were made.
 *
 * The method comes from the settings and never from the token. Keys are handed in as the contents
 * of their files. Immutable once made: any thread. The time is the wall clock's, in seconds.
 */
#ifndef VIGIL_AUTH_TOKEN_JWT_H
#define VIGIL_AUTH_TOKEN_JWT_H

#include "auth/rights.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/memory/arena.h"

struct auth_jwt;

enum { AUTH_JWT_BYTES_MAX = 8192 };

struct auth_jwt_settings {
    struct slice method;     /* RS256, ES384, PS512, HS256, EdDSA … */
    struct slice public_key; /* PEM: a key or a certificate; may be empty when there is a private */
    struct slice private_key; /* PEM; the secret itself for HS…; empty: tokens are only checked */
    int64_t ttl_s;
};

/* ST_INVALID with a sentence: no such method, no key, one of another kind, two that do not match.
 */
MUST_CHECK
enum status auth_jwt_new(const struct auth_jwt_settings *settings, struct auth_jwt **ret_jwt,
                         struct error *error);
void auth_jwt_free(struct auth_jwt *jwt); /* accepts NULL */
DEFINE_CLEANUP(struct auth_jwt *, auth_jwt_free)

/* Appends the token. ST_UNIMPLEMENTED without a private key. */
MUST_CHECK
enum status auth_jwt_sign(const struct auth_jwt *jwt, const struct auth_principal *principal,
                          int64_t now_s, struct buf *out);

/*
 * Who it says, in the arena. ST_INVALID_AUTH_TOKEN: not signed by this key with this method, past
 * its time, before it, or without a user and a revision.
 */
MUST_CHECK
enum status auth_jwt_check(const struct auth_jwt *jwt, struct slice token, int64_t now_s,
                           struct arena *arena, struct auth_principal *ret_principal);

#endif
