/*
 * JSON Web Tokens, signed and checked as in etcd with --auth-token=jwt,… They are not stored. They
 * contain the user, the expiry time and the revision of users and roles at which they were issued,
 * so after the next change to users and roles they no longer give access to keys.
 *
 * The method comes from the settings and never from the token. Keys are passed as the contents of
 * their files. Immutable: any thread. Times are of the real clock, in seconds.
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
    struct slice method;      /* RS256, ES384, PS512, HS256, EdDSA … */
    struct slice public_key;  /* PEM: a key or a certificate; may be empty with a private key */
    struct slice private_key; /* PEM; the secret itself for HS…; empty: tokens are only checked */
    int64_t ttl_s;
};

/* ST_INVALID with an error text: an unknown method, no key, a key of the wrong type, or two keys
 * that do not match. */
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
 * Returns its user, in the arena. ST_INVALID_AUTH_TOKEN: not signed by this key with this method,
 * expired, not valid yet, or without a user or a revision.
 */
MUST_CHECK
enum status auth_jwt_check(const struct auth_jwt *jwt, struct slice token, int64_t now_s,
                           struct arena *arena, struct auth_principal *ret_principal);

#endif
