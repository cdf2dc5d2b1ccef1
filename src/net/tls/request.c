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

enum next { NEXT_BLOCK, NEXT_NONE, NEXT_NO_MEMORY };

/* OpenSSL names a fault of the text; otherwise there was no memory to read it. */
static enum next next_block(BIO *from, struct block *ret_block)
{
    struct block b = {0};
    ERR_clear_error();
    if (PEM_read_bio(from, &b.type, &b.headers, &b.bytes, &b.len) != 1) {
        unsigned long error = ERR_peek_error();
        bool named =
            ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) != ERR_R_MALLOC_FAILURE;
        return named ? NEXT_NONE : NEXT_NO_MEMORY;
    }
    *ret_block = b;
    return NEXT_BLOCK;
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

static enum tls_request read_block(struct slice pem, struct block *ret_block)
{
    AUTO(bio_freep) BIO *from = open_pem(pem);
    enum next next = from ? next_block(from, ret_block) : NEXT_NO_MEMORY;
    if (next == NEXT_NO_MEMORY)
        return TLS_REQUEST_NO_MEMORY;
    return next == NEXT_BLOCK && strcmp(ret_block->type, PEM_STRING_X509_REQ) == 0
               ? TLS_REQUEST_FINE
               : TLS_REQUEST_OTHER_PEM;
}

static enum tls_request check_request(struct slice pem)
{
    AUTO(block_fini) struct block b = {0};
    enum tls_request read = read_block(pem, &b);
    return read == TLS_REQUEST_FINE ? check_der(&b) : read;
}

/*
 * OpenSSL does not always say that it had no memory: a key for which there was none is one that it
 * cannot decode. So a fault is one only if it is found twice; without memory the second attempt
 * does not get that far.
 */
enum tls_request tls_request_check(struct slice pem)
{
    enum tls_request result = check_request(pem);
    if (result != TLS_REQUEST_FINE && check_request(pem) != result)
        result = TLS_REQUEST_NO_MEMORY;
    ERR_clear_error();
    return result;
}

/* Whether one of the names of a type is this one, or the last of them. */
static enum tls_request find_name(const X509_NAME *subject, int type, bool last, struct slice name,
                                  bool *ret_has)
{
    bool has = false;
    for (int at = -1;
         (last || !has) && (at = X509_NAME_get_index_by_NID(subject, type, at)) >= 0;) {
        unsigned char *text = NULL;
        int len =
            ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        /* What cannot be read could be any name. */
        if (len < 0)
            return TLS_REQUEST_DAMAGED;
        has = slice_equal(slice_of(text, (size_t)len), name);
        OPENSSL_free(text);
    }
    *ret_has = has;
    return TLS_REQUEST_FINE;
}

static enum tls_request look_for(struct slice pem, int type, bool last, struct slice name,
                                 bool *ret_has)
{
    AUTO(block_fini) struct block b = {0};
    enum tls_request read = read_block(pem, &b);
    if (read != TLS_REQUEST_FINE)
        return read;
    const unsigned char *at = b.bytes;
    AUTO(request_freep) X509_REQ *request = d2i_X509_REQ(NULL, &at, b.len);
    if (!request)
        return TLS_REQUEST_DAMAGED;
    return find_name(X509_REQ_get_subject_name(request), type, last, name, ret_has);
}

/* As above, a fault is one only if it is found twice. */
static enum tls_request look_twice(struct slice pem, int type, bool last, struct slice name,
                                   bool *ret_has)
{
    enum tls_request result = look_for(pem, type, last, name, ret_has);
    if (result != TLS_REQUEST_FINE && look_for(pem, type, last, name, ret_has) != result)
        result = TLS_REQUEST_NO_MEMORY;
    ERR_clear_error();
    return result;
}

enum tls_request tls_request_has_organization(struct slice pem, struct slice name, bool *ret_has)
{
    return look_twice(pem, NID_organizationName, false, name, ret_has);
}

enum tls_request tls_request_has_name(struct slice pem, struct slice name, bool *ret_has)
{
    return look_twice(pem, NID_commonName, true, name, ret_has);
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

static enum tls_chain check_chain(struct slice pem, char ret_type[TLS_PEM_TYPE_BYTES])
{
    AUTO(bio_freep) BIO *from = open_pem(pem);
    enum tls_chain result = TLS_CHAIN_EMPTY;
    ret_type[0] = '\0';
    if (!from)
        return TLS_CHAIN_NO_MEMORY;
    while (result == TLS_CHAIN_EMPTY || result == TLS_CHAIN_FINE) {
        AUTO(block_fini) struct block b = {0};
        enum next next = next_block(from, &b);
        if (next == NEXT_NO_MEMORY)
            return TLS_CHAIN_NO_MEMORY;
        if (next == NEXT_NONE)
            break;
        result = check_certificate(&b, ret_type);
    }
    return result;
}

enum tls_chain tls_chain_check(struct slice pem, char ret_type[TLS_PEM_TYPE_BYTES])
{
    enum tls_chain result = check_chain(pem, ret_type);
    if (result != TLS_CHAIN_FINE && check_chain(pem, ret_type) != result)
        result = TLS_CHAIN_NO_MEMORY;
    ERR_clear_error();
    return result;
}
