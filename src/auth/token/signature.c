#include "auth/token/signature.h"

#include "base/xalloc.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdlib.h>

enum kind { KIND_RSA, KIND_RSA_PSS, KIND_EC, KIND_ED, KIND_HMAC };

struct method {
    const char *name;
    enum kind kind;
    const char *digest; /* NULL: part of the method */
    int curve_bits;     /* KIND_EC */
};

static const struct method methods[] = {
    {"RS256", KIND_RSA, "SHA256", 0},     {"RS384", KIND_RSA, "SHA384", 0},
    {"RS512", KIND_RSA, "SHA512", 0},     {"PS256", KIND_RSA_PSS, "SHA256", 0},
    {"PS384", KIND_RSA_PSS, "SHA384", 0}, {"PS512", KIND_RSA_PSS, "SHA512", 0},
    {"ES256", KIND_EC, "SHA256", 256},    {"ES384", KIND_EC, "SHA384", 384},
    {"ES512", KIND_EC, "SHA512", 521},    {"HS256", KIND_HMAC, "SHA256", 0},
    {"HS384", KIND_HMAC, "SHA384", 0},    {"HS512", KIND_HMAC, "SHA512", 0},
    {"EdDSA", KIND_ED, NULL, 0},
};

struct signature_key {
    const struct method *method;
    EVP_PKEY *pkey;
    bool can_sign;
};

DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(EVP_MD_CTX *, EVP_MD_CTX_free)
DEFINE_CLEANUP(ECDSA_SIG *, ECDSA_SIG_free)
DEFINE_CLEANUP(BIO *, BIO_vfree)

void signature_key_free(struct signature_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

/* -- Keys -- */

static const struct method *method_find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (slice_equal(slice_from_text(methods[i].name), name))
            return &methods[i];
    }
    return NULL;
}

/* Without a callback OpenSSL would ask at the terminal. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is OpenSSL's. */
static int no_passphrase(char *to, int size, int writing, void *ctx)
{
    (void)to, (void)size, (void)writing, (void)ctx;
    return -1;
}

static BIO *reader_of(struct slice pem)
{
    /* A longer file is not a key, and is refused as empty PEM. */
    int len = pem.len < 1 << 20 ? (int)pem.len : 0;
    return xalloc_check(BIO_new_mem_buf(pem.ptr, len), 1);
}

static EVP_PKEY *read_private(struct slice pem)
{
    AUTO(BIO_vfreep) BIO *bio = reader_of(pem);
    return PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
}

/*
 * A public key, or that of a certificate. The certificate is tried first, because OpenSSL takes
 * nine million instructions to find out that a file has no public key.
 */
static EVP_PKEY *read_public(struct slice pem)
{
    AUTO(BIO_vfreep) BIO *bio = reader_of(pem);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    EVP_PKEY *key = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    if (key)
        return key;
    AUTO(BIO_vfreep) BIO *again = reader_of(pem);
    return PEM_read_bio_PUBKEY(again, NULL, no_passphrase, NULL);
}

static bool key_fits(const struct method *method, EVP_PKEY *key)
{
    switch (method->kind) {
    case KIND_RSA:
    case KIND_RSA_PSS:
        /* The signature has the size of the key, and its buffer is on the stack. */
        return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
               EVP_PKEY_get_size(key) <= SIGNATURE_BYTES_MAX;
    case KIND_EC:
        return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
               EVP_PKEY_get_bits(key) == method->curve_bits;
    case KIND_ED:
        return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
    case KIND_HMAC:
        return true;
    }
    return false;
}

/* The private key if both are given. */
static MUST_CHECK
enum status read_keys(const struct method *method, struct slice public_key,
                      struct slice private_key, EVP_PKEY **ret_key, struct error *error)
{
    AUTO(EVP_PKEY_freep) EVP_PKEY *private = private_key.len ? read_private(private_key) : NULL;
    AUTO(EVP_PKEY_freep) EVP_PKEY *public = public_key.len ? read_public(public_key) : NULL;
    /* OpenSSL keeps errors per thread. One that is left would appear as that of the next TLS
     * call. */
    ERR_clear_error();
    if ((private_key.len && !private) || (public_key.len && !public))
        return error_set(error, ST_INVALID, "the %s key for tokens is not readable PEM",
                         private_key.len && !private ? "private" : "public");
    if (!private && !public)
        return error_set(error, ST_INVALID, "tokens signed with %s need a key", method->name);
    if ((private && !key_fits(method, private)) || (public && !key_fits(method, public)))
        return error_set(error, ST_INVALID, "a key for tokens is not one for %s", method->name);
    if (private && public && EVP_PKEY_eq(private, public) != 1)
        return error_set(error, ST_INVALID, "the public and private keys for tokens do not match");
    *ret_key = private ? TAKE(private) : TAKE(public);
    return ST_OK;
}

static MUST_CHECK
enum status read_secret(struct slice secret, EVP_PKEY **ret_key, struct error *error)
{
    if (secret.len == 0)
        return error_set(error, ST_INVALID, "tokens signed with a secret need it as private key");
    *ret_key = xalloc_check(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, secret.ptr, secret.len), secret.len);
    return ST_OK;
}

enum status signature_key_new(struct slice method_name, struct slice public_key,
                              struct slice private_key, struct signature_key **ret_key,
                              struct error *error)
{
    EVP_PKEY *pkey = NULL;
    const struct method *method = method_find(method_name);
    if (!method)
        return error_set(error, ST_INVALID, "there is no signing method '%.*s'",
                         (int)size_min(method_name.len, 32), (const char *)method_name.ptr);
    if (method->kind == KIND_HMAC)
        TRY(read_secret(private_key, &pkey, error));
    else
        TRY(read_keys(method, public_key, private_key, &pkey, error));
    struct signature_key *key = xcalloc(1, sizeof(*key));
    *key = (struct signature_key){.method = method, .pkey = pkey, .can_sign = private_key.len > 0};
    *ret_key = key;
    return ST_OK;
}

enum status signature_key_detect(struct slice public_key, struct slice private_key,
                                 struct signature_key **ret_key, struct error *error)
{
    static const char *const names[] = {"RS256", "ES256", "ES384", "ES512"};
    bool given_as_private =
        public_key.len && memmem(public_key.ptr, public_key.len, "PRIVATE KEY-----", 16);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct slice method = slice_from_text(names[i]);
        enum status status =
            given_as_private ? signature_key_new(method, SLICE_EMPTY, public_key, ret_key, error)
                             : signature_key_new(method, public_key, private_key, ret_key, error);
        /* The key was given to verify tokens, as kube-apiserver allows it with a private key,
         * too. */
        if (status == ST_OK && given_as_private)
            (*ret_key)->can_sign = false;
        if (status == ST_OK)
            return ST_OK;
    }
    return error_set(error, ST_INVALID,
                     "not a key for tokens: PEM of RSA or of an ECDSA curve P-256, P-384 or P-521 "
                     "is needed, without a password");
}

const char *signature_key_method(const struct signature_key *key)
{
    return key->method->name;
}

enum status signature_key_id(const struct signature_key *key,
                             uint8_t ret_id[SIGNATURE_KEY_ID_BYTES])
{
    uint8_t *der = NULL;
    int len = i2d_PUBKEY(key->pkey, &der);
    bool done = len > 0 && EVP_Digest(der, (size_t)len, ret_id, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_free(der);
    ERR_clear_error();
    return done ? ST_OK : ST_INTERNAL;
}

/* -- Signatures of ES: two numbers of fixed length; OpenSSL uses DER -- */

static size_t coordinate_bytes(const struct method *method)
{
    return ((size_t)method->curve_bits + 7) / 8;
}

static bool der_to_pair(const struct method *method, struct slice der, uint8_t *to, size_t *ret_len)
{
    int each = (int)coordinate_bytes(method);
    const uint8_t *at = der.ptr;
    AUTO(ECDSA_SIG_freep) ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)der.len);
    if (!pair || BN_bn2binpad(ECDSA_SIG_get0_r(pair), to, each) != each ||
        BN_bn2binpad(ECDSA_SIG_get0_s(pair), to + each, each) != each)
        return false;
    *ret_len = 2 * (size_t)each;
    return true;
}

static bool pair_to_der(const struct method *method, struct slice bytes, uint8_t *to,
                        size_t *ret_len)
{
    size_t each = coordinate_bytes(method);
    /* RFC 7518, section 3.4, fixes the length by the curve. */
    if (bytes.len != 2 * each)
        return false;
    AUTO(ECDSA_SIG_freep) ECDSA_SIG *pair = xalloc_check(ECDSA_SIG_new(), 1);
    BIGNUM *r = BN_bin2bn(bytes.ptr, (int)each, NULL);
    BIGNUM *s = BN_bin2bn(bytes.ptr + each, (int)each, NULL);
    int set = ECDSA_SIG_set0(pair, xalloc_check(r, each), xalloc_check(s, each));
    assert(set == 1);
    int len = i2d_ECDSA_SIG(pair, &to);
    *ret_len = len > 0 ? (size_t)len : 0;
    return len > 0;
}

/* -- Making and checking -- */

static const EVP_MD *digest_of(const struct method *method)
{
    return method->digest ? EVP_get_digestbyname(method->digest) : NULL;
}

/* The salt is as long as the digest (RFC 7518); other lengths are accepted too, as in Go. */
static bool set_padding(const struct method *method, EVP_PKEY_CTX *ctx, int salt_len)
{
    if (method->kind != KIND_RSA_PSS)
        return true;
    return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, salt_len) == 1;
}

enum status signature_make(const struct signature_key *key, struct slice text,
                           uint8_t ret_signature[SIGNATURE_BYTES_MAX], size_t *ret_len)
{
    if (!key->can_sign)
        return ST_UNIMPLEMENTED;
    const struct method *method = key->method;
    AUTO(EVP_MD_CTX_freep) EVP_MD_CTX *ctx = xalloc_check(EVP_MD_CTX_new(), 1);
    EVP_PKEY_CTX *pctx;
    uint8_t made[SIGNATURE_BYTES_MAX];
    size_t len = sizeof(made);
    bool done = EVP_DigestSignInit(ctx, &pctx, digest_of(method), NULL, key->pkey) == 1 &&
                set_padding(method, pctx, RSA_PSS_SALTLEN_DIGEST) &&
                EVP_DigestSign(ctx, made, &len, text.ptr, text.len) == 1;
    if (done && method->kind == KIND_EC)
        done = der_to_pair(method, slice_of(made, len), ret_signature, ret_len);
    else if (done) {
        memcpy(ret_signature, made, len);
        *ret_len = len;
    }
    ERR_clear_error();
    return done ? ST_OK : ST_INTERNAL;
}

static bool hmac_holds(const struct signature_key *key, struct slice text, struct slice signature)
{
    uint8_t made[SIGNATURE_BYTES_MAX];
    size_t len;
    /* The comparison takes the same time wherever the bytes differ, so that a forged signature
     * cannot be found byte by byte. */
    return signature_make(key, text, made, &len) == ST_OK && len == signature.len &&
           CRYPTO_memcmp(made, signature.ptr, len) == 0;
}

bool signature_holds(const struct signature_key *key, struct slice text, struct slice signature)
{
    const struct method *method = key->method;
    uint8_t der[SIGNATURE_BYTES_MAX];
    size_t der_len;
    if (signature.len == 0)
        return false;
    if (method->kind == KIND_HMAC)
        return hmac_holds(key, text, signature);
    if (method->kind == KIND_EC) {
        if (!pair_to_der(method, signature, der, &der_len))
            return false;
        signature = slice_of(der, der_len);
    }
    AUTO(EVP_MD_CTX_freep) EVP_MD_CTX *ctx = xalloc_check(EVP_MD_CTX_new(), 1);
    EVP_PKEY_CTX *pctx;
    bool holds = EVP_DigestVerifyInit(ctx, &pctx, digest_of(method), NULL, key->pkey) == 1 &&
                 set_padding(method, pctx, RSA_PSS_SALTLEN_AUTO) &&
                 EVP_DigestVerify(ctx, signature.ptr, signature.len, text.ptr, text.len) == 1;
    ERR_clear_error();
    return holds;
}
