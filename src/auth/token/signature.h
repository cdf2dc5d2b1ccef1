/*
 * Signatures by the names that JSON Web Tokens have for them (RFC 7518): RS, PS, ES and HS with
 * 256, 384 and 512, and EdDSA. A key is made for one method and knows no other.
 *
 * Immutable: any thread. Aborts without memory.
 */
#ifndef VIGIL_AUTH_TOKEN_SIGNATURE_H
#define VIGIL_AUTH_TOKEN_SIGNATURE_H

#include "base/error.h"
#include "base/slice.h"

struct signature_key;

/* Of RSA with 16384 bits, the longest that is taken. */
enum { SIGNATURE_BYTES_MAX = 2048 };

/* See auth_jwt_new. Encrypted keys are refused: nobody is there to ask. */
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
