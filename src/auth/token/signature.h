/*
 * Signatures with the methods of JSON Web Tokens (RFC 7518): RS, PS, ES and HS with 256, 384 and
 * 512, and EdDSA. A key is created for one method and cannot be used with another.
 *
 * Immutable: any thread. Aborts without memory.
 */
#ifndef VIGIL_AUTH_TOKEN_SIGNATURE_H
#define VIGIL_AUTH_TOKEN_SIGNATURE_H

#include "base/error.h"
#include "base/slice.h"

struct signature_key;

/* RSA with 16384 bits, the longest key that is accepted. */
enum { SIGNATURE_BYTES_MAX = 2048 };

/* See auth_jwt_new. Encrypted keys are refused, because there is no way to ask for the password. */
MUST_CHECK
enum status signature_key_new(struct slice method, struct slice public_key,
                              struct slice private_key, struct signature_key **ret_key,
                              struct error *error);
void signature_key_free(struct signature_key *key); /* accepts NULL */
DEFINE_CLEANUP(struct signature_key *, signature_key_free)

/* ST_UNIMPLEMENTED without a private key. */
MUST_CHECK
enum status signature_make(const struct signature_key *key, struct slice text,
                           uint8_t ret_signature[SIGNATURE_BYTES_MAX], size_t *ret_len);
bool signature_holds(const struct signature_key *key, struct slice text, struct slice signature);

#endif
