#include "net/tls/request.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>

/* A block of PEM. */
struct block {
    char *type, *headers;
    unsigned char *bytes;
    long len;
};

static void block_fini(struct block *b)
{
    OPENSSL_free(b->type);
    OPENSSL_free(b->headers);
    OPENSSL_free(b->bytes);
}

static void bio_freep(BIO **bio)
{
    BIO_free(*bio);
}

static void x509_freep(X509 **certificate)
{
    X509_free(*certificate);
}

static void request_freep(X509_REQ **request)
{
    X509_REQ_free(*request);
}

static BIO *open_pem(struct slice pem)
{
    return pem.len > INT_MAX ? NULL
                             : BIO_new_mem_buf(pem.len ? (const void *)pem.ptr : "", (int)pem.len);
}

static bool next_block(BIO *from, struct block *ret_block)
{
    struct block b = {0};
    if (PEM_read_bio(from, &b.type, &b.headers, &b.bytes, &b.len) != 1)
        return false;
    *ret_block = b;
    return true;
}

static enum tls_request fault_of(const EVP_PKEY *key)
{
    switch (EVP_PKEY_base_id(key)) {
    case EVP_PKEY_RSA:
        return TLS_REQUEST_RSA_SIGNATURE;
    case EVP_PKEY_EC:
        return TLS_REQUEST_EC_SIGNATURE;
    case EVP_PKEY_ED25519:
        return TLS_REQUEST_ED_SIGNATURE;
    default:
        return TLS_REQUEST_UNKNOWN_SIGNATURE;
    }
}

static enum tls_request check_der(const struct block *b)
{
    const unsigned char *at = b->bytes;
    AUTO(request_freep) X509_REQ *request = d2i_X509_REQ(NULL, &at, b->len);
    if (!request || at != b->bytes + b->len)
        return TLS_REQUEST_DAMAGED;
    EVP_PKEY *key = X509_REQ_get0_pubkey(request);
    if (!key)
        return TLS_REQUEST_UNKNOWN_SIGNATURE;
    enum tls_request fault = fault_of(key);
    if (fault == TLS_REQUEST_UNKNOWN_SIGNATURE)
        return fault;
    return X509_REQ_verify(request, key) == 1 ? TLS_REQUEST_FINE : fault;
}

enum tls_request tls_request_check(struct slice pem)
{
    AUTO(bio_freep) BIO *from = open_pem(pem);
    AUTO(block_fini) struct block b = {0};
    if (!from)
        return TLS_REQUEST_NO_MEMORY;
    enum tls_request result = TLS_REQUEST_OTHER_PEM;
    if (next_block(from, &b) && strcmp(b.type, PEM_STRING_X509_REQ) == 0)
        result = check_der(&b);
    ERR_clear_error();
    return result;
}

static enum tls_chain check_certificate(const struct block *b, char ret_type[TLS_PEM_TYPE_BYTES])
{
    const unsigned char *at = b->bytes;
    if (strcmp(b->type, PEM_STRING_X509) != 0) {
        snprintf(ret_type, TLS_PEM_TYPE_BYTES, "%s", b->type);
        return TLS_CHAIN_OTHER_PEM;
    }
    if (b->headers[0])
        return TLS_CHAIN_HAS_HEADERS;
    AUTO(x509_freep) X509 *certificate = d2i_X509(NULL, &at, b->len);
    return certificate && at == b->bytes + b->len ? TLS_CHAIN_FINE : TLS_CHAIN_DAMAGED;
}

enum tls_chain tls_chain_check(struct slice pem, char ret_type[TLS_PEM_TYPE_BYTES])
{
    AUTO(bio_freep) BIO *from = open_pem(pem);
    enum tls_chain result = TLS_CHAIN_EMPTY;
    ret_type[0] = '\0';
    if (!from)
        return TLS_CHAIN_NO_MEMORY;
    while (result == TLS_CHAIN_EMPTY || result == TLS_CHAIN_FINE) {
        AUTO(block_fini) struct block b = {0};
        if (!next_block(from, &b))
            break;
        result = check_certificate(&b, ret_type);
    }
    ERR_clear_error();
    return result;
}
