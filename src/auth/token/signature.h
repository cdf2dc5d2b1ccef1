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
/* The same for the method that a key determines: RS256 for RSA, ES256, ES384 or ES512 for the curve
 * of an ECDSA key. The public key may also be given as a private one. */
MUST_CHECK
enum status signature_key_detect(struct slice public_key, struct slice private_key,
                                 struct signature_key **ret_key, struct error *error);
const char *signature_key_method(const struct signature_key *key);
/* SHA-256 of the public key in DER, by which verifiers find it. */
enum { SIGNATURE_KEY_ID_BYTES = 32 };
MUST_CHECK
enum status signature_key_id(const struct signature_key *key,
                             uint8_t ret_id[SIGNATURE_KEY_ID_BYTES]);
void signature_key_free(struct signature_key *key); /* accepts NULL */
DEFINE_CLEANUP(struct signature_key *, signature_key_free)

/* ST_UNIMPLEMENTED without a private key. */
MUST_CHECK
enum status signature_make(const struct signature_key *key, struct slice text,
                           uint8_t ret_signature[SIGNATURE_BYTES_MAX], size_t *ret_len);
bool signature_holds(const struct signature_key *key, struct slice text, struct slice signature);

#endif
