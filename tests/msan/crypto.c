/* OpenSSL's libcrypto, as the memory sanitizer has to see it: what it allocates and writes is
 * defined, and what is hashed or signed must be. */
#include "openssl.h"

#include <malloc.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* -- Memory -- */

/* Without malloc and realloc, which a test may let fail for our own code. */
static void *plain_malloc(size_t count, const char *file, int line)
{
    (void)file, (void)line;
    void *bytes;
    return posix_memalign(&bytes, _Alignof(max_align_t), count) == 0 ? bytes : NULL;
}

static void *plain_realloc(void *old, size_t count, const char *file, int line)
{
    void *bytes = plain_malloc(count, file, line);
    size_t had = malloc_usable_size(old);
    if (!bytes)
        return NULL;
    memcpy(bytes, old, had < count ? had : count);
    free(old);
    return bytes;
}

static void plain_free(void *bytes, const char *file, int line)
{
    (void)file, (void)line;
    free(bytes);
}

/* Those of a test, if it sets them. */
static CRYPTO_malloc_fn malloc_fn = plain_malloc;
static CRYPTO_realloc_fn realloc_fn = plain_realloc;
static CRYPTO_free_fn free_fn = plain_free;

NOT_INSTRUMENTED static void *defined_malloc(size_t count, const char *file, int line)
{
    void *bytes = malloc_fn(count, file, line);
    if (bytes)
        __msan_unpoison(bytes, count);
    return bytes;
}

NOT_INSTRUMENTED static void *defined_realloc(void *old, size_t count, const char *file, int line)
{
    void *bytes = realloc_fn(old, count, file, line);
    if (bytes)
        __msan_unpoison(bytes, count);
    return bytes;
}

NOT_INSTRUMENTED static void defined_free(void *bytes, const char *file, int line)
{
    free_fn(bytes, file, line);
}

int REAL(CRYPTO_set_mem_functions)(CRYPTO_malloc_fn, CRYPTO_realloc_fn, CRYPTO_free_fn);
int WRAP(CRYPTO_set_mem_functions)(CRYPTO_malloc_fn, CRYPTO_realloc_fn, CRYPTO_free_fn);

int WRAP(CRYPTO_set_mem_functions)(CRYPTO_malloc_fn m, CRYPTO_realloc_fn r, CRYPTO_free_fn f)
{
    malloc_fn = m;
    realloc_fn = r;
    free_fn = f;
    return 1;
}

/* Before what any program prepares. */
__attribute__((constructor(101))) static void prepare(void)
{
    REAL(CRYPTO_set_mem_functions)(defined_malloc, defined_realloc, defined_free);
    CALL(int, OPENSSL_init_crypto, OPENSSL_INIT_LOAD_CONFIG, NULL);
}

/* -- Digests and signatures -- */

PLAIN(int, EVP_DigestInit_ex, (EVP_MD_CTX * context, const EVP_MD *type, ENGINE *engine), context,
      type, engine)

int REAL(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count);
int WRAP(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count);
int WRAP(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count)
{
    must_be_defined(bytes, count);
    return CALL(int, REAL(EVP_DigestUpdate), context, bytes, count);
}

int REAL(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes);
int WRAP(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes);
int WRAP(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes)
{
    int ok = CALL(int, REAL(EVP_DigestFinal_ex), context, ret_digest, ret_bytes);
    is_defined(ret_digest, (size_t)EVP_MD_CTX_get_size(context));
    is_defined(ret_bytes, sizeof(*ret_bytes));
    return ok;
}

int REAL(EVP_Digest)(const void *bytes, size_t count, unsigned char *ret_digest,
                     unsigned *ret_bytes, const EVP_MD *type, ENGINE *engine);
int WRAP(EVP_Digest)(const void *bytes, size_t count, unsigned char *ret_digest,
                     unsigned *ret_bytes, const EVP_MD *type, ENGINE *engine);
int WRAP(EVP_Digest)(const void *bytes, size_t count, unsigned char *ret_digest,
                     unsigned *ret_bytes, const EVP_MD *type, ENGINE *engine)
{
    must_be_defined(bytes, count);
    int ok = CALL(int, REAL(EVP_Digest), bytes, count, ret_digest, ret_bytes, type, engine);
    is_defined(ret_digest, (size_t)EVP_MD_get_size(type));
    is_defined(ret_bytes, sizeof(*ret_bytes));
    return ok;
}

unsigned char *REAL(HMAC)(const EVP_MD *type, const void *key, int key_bytes,
                          const unsigned char *bytes, size_t count, unsigned char *ret_digest,
                          unsigned *ret_bytes);
unsigned char *WRAP(HMAC)(const EVP_MD *type, const void *key, int key_bytes,
                          const unsigned char *bytes, size_t count, unsigned char *ret_digest,
                          unsigned *ret_bytes);
unsigned char *WRAP(HMAC)(const EVP_MD *type, const void *key, int key_bytes,
                          const unsigned char *bytes, size_t count, unsigned char *ret_digest,
                          unsigned *ret_bytes)
{
    must_be_defined(bytes, count);
    unsigned char *digest = CALL(unsigned char *, REAL(HMAC), type, key, key_bytes, bytes, count,
                                 ret_digest, ret_bytes);
    is_defined(ret_digest, (size_t)EVP_MD_get_size(type));
    is_defined(ret_bytes, sizeof(*ret_bytes));
    return digest;
}

int REAL(EVP_DigestSignInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                             ENGINE *engine, EVP_PKEY *key);
int WRAP(EVP_DigestSignInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                             ENGINE *engine, EVP_PKEY *key);
int WRAP(EVP_DigestSignInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                             ENGINE *engine, EVP_PKEY *key)
{
    int ok = CALL(int, REAL(EVP_DigestSignInit), context, ret_key, type, engine, key);
    is_defined(ret_key, sizeof(*ret_key));
    return ok;
}

int REAL(EVP_DigestVerifyInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                               ENGINE *engine, EVP_PKEY *key);
int WRAP(EVP_DigestVerifyInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                               ENGINE *engine, EVP_PKEY *key);
int WRAP(EVP_DigestVerifyInit)(EVP_MD_CTX *context, EVP_PKEY_CTX **ret_key, const EVP_MD *type,
                               ENGINE *engine, EVP_PKEY *key)
{
    int ok = CALL(int, REAL(EVP_DigestVerifyInit), context, ret_key, type, engine, key);
    is_defined(ret_key, sizeof(*ret_key));
    return ok;
}

int REAL(EVP_DigestSign)(EVP_MD_CTX *context, unsigned char *ret_signature, size_t *ret_count,
                         const unsigned char *bytes, size_t count);
int WRAP(EVP_DigestSign)(EVP_MD_CTX *context, unsigned char *ret_signature, size_t *ret_count,
                         const unsigned char *bytes, size_t count);
int WRAP(EVP_DigestSign)(EVP_MD_CTX *context, unsigned char *ret_signature, size_t *ret_count,
                         const unsigned char *bytes, size_t count)
{
    must_be_defined(bytes, count);
    int ok = CALL(int, REAL(EVP_DigestSign), context, ret_signature, ret_count, bytes, count);
    is_defined(ret_count, sizeof(*ret_count));
    is_defined(ret_signature, *ret_count);
    return ok;
}

int REAL(EVP_DigestVerify)(EVP_MD_CTX *context, const unsigned char *signature,
                           size_t signature_count, const unsigned char *bytes, size_t count);
int WRAP(EVP_DigestVerify)(EVP_MD_CTX *context, const unsigned char *signature,
                           size_t signature_count, const unsigned char *bytes, size_t count);
int WRAP(EVP_DigestVerify)(EVP_MD_CTX *context, const unsigned char *signature,
                           size_t signature_count, const unsigned char *bytes, size_t count)
{
    must_be_defined(signature, signature_count);
    must_be_defined(bytes, count);
    return CALL(int, REAL(EVP_DigestVerify), context, signature, signature_count, bytes, count);
}

int REAL(BN_bn2binpad)(const BIGNUM *number, unsigned char *ret_bytes, int count);
int WRAP(BN_bn2binpad)(const BIGNUM *number, unsigned char *ret_bytes, int count);
int WRAP(BN_bn2binpad)(const BIGNUM *number, unsigned char *ret_bytes, int count)
{
    int made = CALL(int, REAL(BN_bn2binpad), number, ret_bytes, count);
    if (made > 0)
        is_defined(ret_bytes, (size_t)made);
    return made;
}

/* The pointer is to a buffer, which it moves past, or to NULL, for which it allocates one. */
int REAL(i2d_PUBKEY)(const EVP_PKEY *key, unsigned char **ret_bytes);
int WRAP(i2d_PUBKEY)(const EVP_PKEY *key, unsigned char **ret_bytes);
int WRAP(i2d_PUBKEY)(const EVP_PKEY *key, unsigned char **ret_bytes)
{
    unsigned char *to = *ret_bytes;
    int made = CALL(int, REAL(i2d_PUBKEY), key, ret_bytes);
    if (made > 0)
        is_defined(to ? to : *ret_bytes, (size_t)made);
    return made;
}

int REAL(i2d_ECDSA_SIG)(const ECDSA_SIG *pair, unsigned char **ret_bytes);
int WRAP(i2d_ECDSA_SIG)(const ECDSA_SIG *pair, unsigned char **ret_bytes);
int WRAP(i2d_ECDSA_SIG)(const ECDSA_SIG *pair, unsigned char **ret_bytes)
{
    unsigned char *to = *ret_bytes;
    int made = CALL(int, REAL(i2d_ECDSA_SIG), pair, ret_bytes);
    if (made > 0)
        is_defined(to ? to : *ret_bytes, (size_t)made);
    return made;
}

/* -- Keys, random numbers and files -- */

EVP_PKEY *REAL(EVP_PKEY_Q_keygen)(OSSL_LIB_CTX *library, const char *properties, const char *type,
                                  ...);
EVP_PKEY *WRAP(EVP_PKEY_Q_keygen)(OSSL_LIB_CTX *library, const char *properties, const char *type,
                                  ...);

/* For RSA a number of bits follows, for EC the name of a curve. */
EVP_PKEY *WRAP(EVP_PKEY_Q_keygen)(OSSL_LIB_CTX *library, const char *properties, const char *type,
                                  ...)
{
    va_list more;
    va_start(more, type);
    size_t bits = strcmp(type, "RSA") == 0 ? va_arg(more, size_t) : 0;
    const char *curve = strcmp(type, "EC") == 0 ? va_arg(more, const char *) : NULL;
    va_end(more);
    if (bits)
        return CALL(EVP_PKEY *, REAL(EVP_PKEY_Q_keygen), library, properties, type, bits);
    return CALL(EVP_PKEY *, REAL(EVP_PKEY_Q_keygen), library, properties, type, curve);
}

int REAL(RAND_bytes)(unsigned char *ret_bytes, int count);
int WRAP(RAND_bytes)(unsigned char *ret_bytes, int count);
int WRAP(RAND_bytes)(unsigned char *ret_bytes, int count)
{
    int ok = CALL(int, REAL(RAND_bytes), ret_bytes, count);
    is_defined(ret_bytes, (size_t)count);
    return ok;
}

void REAL(OPENSSL_cleanse)(void *bytes, size_t count);
void WRAP(OPENSSL_cleanse)(void *bytes, size_t count);
void WRAP(OPENSSL_cleanse)(void *bytes, size_t count)
{
    REAL(OPENSSL_cleanse)(bytes, count);
    is_defined(bytes, count);
}

int REAL(BIO_read)(BIO *bio, void *ret_bytes, int room);
int WRAP(BIO_read)(BIO *bio, void *ret_bytes, int room);
int WRAP(BIO_read)(BIO *bio, void *ret_bytes, int room)
{
    int made = CALL(int, REAL(BIO_read), bio, ret_bytes, room);
    if (made > 0)
        is_defined(ret_bytes, (size_t)made);
    return made;
}

int REAL(BIO_write)(BIO *bio, const void *bytes, int count);
int WRAP(BIO_write)(BIO *bio, const void *bytes, int count);
int WRAP(BIO_write)(BIO *bio, const void *bytes, int count)
{
    must_be_defined(bytes, (size_t)count);
    return CALL(int, REAL(BIO_write), bio, bytes, count);
}

int REAL(PEM_read_bio)(BIO *bio, char **ret_type, char **ret_headers, unsigned char **ret_bytes,
                       long *ret_count);
int WRAP(PEM_read_bio)(BIO *bio, char **ret_type, char **ret_headers, unsigned char **ret_bytes,
                       long *ret_count);
int WRAP(PEM_read_bio)(BIO *bio, char **ret_type, char **ret_headers, unsigned char **ret_bytes,
                       long *ret_count)
{
    int ok = CALL(int, REAL(PEM_read_bio), bio, ret_type, ret_headers, ret_bytes, ret_count);
    is_defined(ret_type, sizeof(*ret_type));
    is_defined(ret_headers, sizeof(*ret_headers));
    is_defined(ret_bytes, sizeof(*ret_bytes));
    is_defined(ret_count, sizeof(*ret_count));
    if (ok == 1) {
        __msan_unpoison_string(*ret_type);
        is_defined(*ret_bytes, (size_t)*ret_count);
    }
    return ok;
}

PLAIN(EVP_PKEY *, PEM_read_bio_PrivateKey,
      (BIO * bio, EVP_PKEY **place, pem_password_cb *password, void *ctx), bio, place, password,
      ctx)

PLAIN(EVP_PKEY *, PEM_read_bio_PUBKEY,
      (BIO * bio, EVP_PKEY **place, pem_password_cb *password, void *ctx), bio, place, password,
      ctx)

PLAIN(X509 *, PEM_read_bio_X509, (BIO * bio, X509 **place, pem_password_cb *password, void *ctx),
      bio, place, password, ctx)

PLAIN(X509_CRL *, PEM_read_bio_X509_CRL,
      (BIO * bio, X509_CRL **place, pem_password_cb *password, void *ctx), bio, place, password,
      ctx)

/* -- Certificates -- */

/* Reads an object in DER. */
#define DECODER(type, name)                                                   \
    type *REAL(name)(type * *place, const unsigned char **bytes, long count); \
    type *WRAP(name)(type * *place, const unsigned char **bytes, long count); \
    type *WRAP(name)(type * *place, const unsigned char **bytes, long count)  \
    {                                                                         \
        must_be_defined(*bytes, (size_t)count);                               \
        type *made = CALL(type *, REAL(name), place, bytes, count);           \
        is_defined(bytes, sizeof(*bytes));                                    \
        return made;                                                          \
    }

DECODER(X509, d2i_X509)
DECODER(X509_REQ, d2i_X509_REQ)
DECODER(X509_CRL, d2i_X509_CRL)

PLAIN(ASN1_TIME *, X509_gmtime_adj, (ASN1_TIME * time, long seconds), time, seconds)
PLAIN(ASN1_TIME *, ASN1_TIME_set, (ASN1_TIME * time, time_t seconds), time, seconds)
PLAIN(int, ASN1_TIME_set_string, (ASN1_TIME * time, const char *text), time, text)
PLAIN(int, X509_cmp_time, (const ASN1_TIME *time, time_t *than), time, than)
PLAIN(X509 *, PEM_read_X509, (FILE * file, X509 **place, pem_password_cb *password, void *ctx),
      file, place, password, ctx)
PLAIN(int, X509_NAME_add_entry_by_txt,
      (X509_NAME * name, const char *field, int type, const unsigned char *bytes, int len, int loc,
       int set),
      name, field, type, bytes, len, loc, set)
PLAIN(X509_EXTENSION *, X509V3_EXT_conf_nid,
      (struct lhash_st_CONF_VALUE * conf, X509V3_CTX *ctx, int nid, const char *value), conf, ctx,
      nid, value)
PLAIN(int, X509_check_host,
      (X509 * certificate, const char *name, size_t len, unsigned flags, char **ret_name),
      certificate, name, len, flags, ret_name)
PLAIN(int, X509_check_ip_asc, (X509 * certificate, const char *address, unsigned flags),
      certificate, address, flags)
PLAIN(int, PEM_write_X509, (FILE * file, const X509 *certificate), file, certificate)
PLAIN(int, PEM_write_X509_CRL, (FILE * file, const X509_CRL *list), file, list)
PLAIN(int, PEM_write_PUBKEY, (FILE * file, const EVP_PKEY *key), file, key)
PLAIN(int, PEM_write_PrivateKey,
      (FILE * file, const EVP_PKEY *key, const EVP_CIPHER *cipher, const unsigned char *password,
       int count, pem_password_cb *ask, void *ctx),
      file, key, cipher, password, count, ask, ctx)
PLAIN(int, i2d_X509_CRL_fp, (FILE * file, const X509_CRL *list), file, list)
PLAIN(int, X509_set_pubkey, (X509 * certificate, EVP_PKEY *key), certificate, key)
PLAIN(int, X509_sign, (X509 * certificate, EVP_PKEY *key, const EVP_MD *type), certificate, key,
      type)
PLAIN(int, X509_CRL_sign, (X509_CRL * list, EVP_PKEY *key, const EVP_MD *type), list, key, type)
PLAIN(int, X509_verify_cert, (X509_STORE_CTX * chain), chain)
PLAIN(int, X509_REQ_verify, (X509_REQ * request, EVP_PKEY *key), request, key)

int REAL(X509_digest)(const X509 *certificate, const EVP_MD *type, unsigned char *ret_digest,
                      unsigned *ret_bytes);
int WRAP(X509_digest)(const X509 *certificate, const EVP_MD *type, unsigned char *ret_digest,
                      unsigned *ret_bytes);
int WRAP(X509_digest)(const X509 *certificate, const EVP_MD *type, unsigned char *ret_digest,
                      unsigned *ret_bytes)
{
    int ok = CALL(int, REAL(X509_digest), certificate, type, ret_digest, ret_bytes);
    is_defined(ret_digest, (size_t)EVP_MD_get_size(type));
    is_defined(ret_bytes, sizeof(*ret_bytes));
    return ok;
}

int REAL(X509_CRL_get0_by_serial)(X509_CRL *list, X509_REVOKED **ret_entry,
                                  const ASN1_INTEGER *number);
int WRAP(X509_CRL_get0_by_serial)(X509_CRL *list, X509_REVOKED **ret_entry,
                                  const ASN1_INTEGER *number);
int WRAP(X509_CRL_get0_by_serial)(X509_CRL *list, X509_REVOKED **ret_entry,
                                  const ASN1_INTEGER *number)
{
    int found = CALL(int, REAL(X509_CRL_get0_by_serial), list, ret_entry, number);
    is_defined(ret_entry, sizeof(*ret_entry));
    return found;
}

int REAL(ASN1_STRING_to_UTF8)(unsigned char **ret_text, const ASN1_STRING *text);
int WRAP(ASN1_STRING_to_UTF8)(unsigned char **ret_text, const ASN1_STRING *text);
int WRAP(ASN1_STRING_to_UTF8)(unsigned char **ret_text, const ASN1_STRING *text)
{
    int count = CALL(int, REAL(ASN1_STRING_to_UTF8), ret_text, text);
    is_defined(ret_text, sizeof(*ret_text));
    if (count >= 0)
        is_defined(*ret_text, (size_t)count + 1);
    return count;
}

int REAL(ASN1_TIME_to_tm)(const ASN1_TIME *time, struct tm *ret_time);
int WRAP(ASN1_TIME_to_tm)(const ASN1_TIME *time, struct tm *ret_time);
int WRAP(ASN1_TIME_to_tm)(const ASN1_TIME *time, struct tm *ret_time)
{
    int ok = CALL(int, REAL(ASN1_TIME_to_tm), time, ret_time);
    is_defined(ret_time, sizeof(*ret_time));
    return ok;
}
