/*
 * The compact form of JSON Web Signatures (RFC 7515): three texts in base64url with dots between
 * them, the first two of which are JSON objects. Nothing of a token is parsed before a signature
 * was found to be right, and its head never chooses the method or the key.
 *
 *     BASE64URL(head) . BASE64URL(claims) . BASE64URL(signature)
 *     └────── signed_part ──────────────┘
 */
#ifndef VIGIL_AUTH_TOKEN_JWS_H
#define VIGIL_AUTH_TOKEN_JWS_H

#include "auth/token/signature.h"
#include "base/buf.h"
#include "base/memory/arena.h"
#include "codec/json/tree.h"

/* Borrowed from the token; all but signed_part in base64url. */
struct jws {
    struct slice head, claims, signature, signed_part;
};

/* False: it has not three parts. */
MUST_CHECK
bool jws_split(struct slice token, struct jws *ret_jws);

/* ST_INVALID_AUTH_TOKEN: the signature is not this key's. ST_NOMEM. */
MUST_CHECK
enum status jws_verify(const struct jws *jws, const struct signature_key *key, struct arena *arena);

/* Parses head or claims. ST_INVALID_AUTH_TOKEN: it is not a JSON object, or nested too deeply.
 * ST_NOMEM. */
MUST_CHECK
enum status jws_read(struct slice part, struct arena *arena, struct json_node **ret_object);

/* A point in time in seconds, perhaps with a fraction. False: it is not a number. */
MUST_CHECK
bool jws_number(const struct json_node *node, double *ret_number);

/* Appends bytes in base64url, without padding. ST_NOMEM. */
MUST_CHECK
enum status jws_append(struct buf *out, struct slice bytes);

/* Appends the token of a head and claims, which are JSON. ST_UNIMPLEMENTED: the key cannot sign. */
MUST_CHECK
enum status jws_sign(const struct signature_key *key, struct slice head, struct slice claims,
                     struct buf *out);

#endif
