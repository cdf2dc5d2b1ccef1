#include "net/tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

/* -- errors -- */

static enum status complain(struct error *error, const char *name, const char *what)
{
    bool no_memory = ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
    ERR_clear_error();
    if (no_memory)
        return error_set(error, ST_NOMEM, "%.300s: out of memory", name);
    return error_set(error, ST_INVALID, "%.300s: %s", name, what);
}

enum status tls_complain(struct error *error, const char *name, const char *otherwise)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return complain(error, name, reason ? reason : otherwise);
}

/* True: reading ended because there is no further object of the kind. */
static bool was_the_last(void)
{
    unsigned long last = ERR_peek_last_error();
    return ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
}

/* -- reading -- */

static void bio_freep(BIO **bio)
{
    BIO_free(*bio);
}

/* NULL: no memory. */
static BIO *open_bytes(struct slice bytes)
{
    return BIO_new_mem_buf(bytes.len ? (const void *)bytes.ptr : "", (int)bytes.len);
}

/* A key with a password is an error; the password is not requested. */
static int no_password(char *to, int bytes, int writing, void *ctx)
{
    (void)writing, (void)ctx;
    if (bytes > 0)
        to[0] = 0;
    return 0;
}

static X509 *next_certificate(BIO *from)
{
    return PEM_read_bio_X509(from, NULL, no_password, NULL);
}

/* -- certificate and key -- */

static enum status use_chain(SSL_CTX *ssl, struct tls_pem chain, BIO *from, struct error *error)
{
    X509 *own = next_certificate(from);
    if (!own)
        return was_the_last() ? complain(error, chain.name, "no certificate in it (PEM)")
                              : tls_complain(error, chain.name, "damaged");
    int used = SSL_CTX_use_certificate(ssl, own);
    X509_free(own);
    if (used != 1)
        return tls_complain(error, chain.name, "not usable");
    for (X509 *next; (next = next_certificate(from));)
        if (SSL_CTX_add0_chain_cert(ssl, next) != 1) {
            X509_free(next);
            return tls_complain(error, chain.name, "its chain is not usable");
        }
    if (!was_the_last())
        return tls_complain(error, chain.name, "its chain is damaged");
    ERR_clear_error();
    return ST_OK;
}

static bool holds_key(struct slice bytes)
{
    static const char mark[] = "PRIVATE KEY-----";
    return bytes.len && memmem(bytes.ptr, bytes.len, mark, strlen(mark));
}

static enum status use_key(SSL_CTX *ssl, struct tls_pem pem, BIO *from, struct error *error)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_password, NULL);
    if (!key)
        return complain(error, pem.name,
                        holds_key(pem.bytes) ? "its key cannot be read, or has a password"
                                             : "no private key in it (PEM)");
    int used = SSL_CTX_use_PrivateKey(ssl, key);
    EVP_PKEY_free(key);
    if (used != 1 || SSL_CTX_check_private_key(ssl) != 1)
        return complain(error, pem.name, "tls: private key does not match public key");
    return ST_OK;
}

enum status tls_pem_use_identity(SSL_CTX *ssl, struct tls_pem chain, struct tls_pem key,
                                 struct error *error)
{
    AUTO(bio_freep) BIO *from_chain = open_bytes(chain.bytes);
    AUTO(bio_freep) BIO *from_key = open_bytes(key.bytes);
    if (!from_chain || !from_key)
        return error_no_memory(error);
    TRY(use_chain(ssl, chain, from_chain, error));
    return use_key(ssl, key, from_key, error);
}

/* -- authorities -- */

enum status tls_pem_trust(SSL_CTX *ssl, struct tls_pem authorities, bool announce,
                          struct error *error)
{
    AUTO(bio_freep) BIO *from = open_bytes(authorities.bytes);
    unsigned count = 0;
    if (!from)
        return error_no_memory(error);
    for (X509 *ca; (ca = next_certificate(from)); count++) {
        bool taken = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), ca) == 1 &&
                     (!announce || SSL_CTX_add_client_CA(ssl, ca) == 1);
        X509_free(ca);
        if (!taken)
            return tls_complain(error, authorities.name, "a certificate in it is not usable");
    }
    if (!was_the_last())
        return tls_complain(error, authorities.name, "a certificate in it is damaged");
    ERR_clear_error();
    return count ? ST_OK : complain(error, authorities.name, "no certificate in it (PEM)");
}

enum status tls_pem_trust_system(SSL_CTX *ssl, struct error *error)
{
    if (SSL_CTX_set_default_verify_paths(ssl) != 1)
        return tls_complain(error, "the system's authorities", "not readable");
    return ST_OK;
}
