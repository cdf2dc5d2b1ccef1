#include "net/sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct sha256 {
    EVP_MD_CTX *context;
    bool failed; /* every build of OpenSSL has this digest, so it fails only without memory */
};

struct sha256 *sha256_new(void)
{
    struct sha256 *sum = calloc(1, sizeof(*sum));
    if (!sum)
        return NULL;
    sum->context = EVP_MD_CTX_new();
    if (!sum->context || EVP_DigestInit_ex(sum->context, EVP_sha256(), NULL) != 1) {
        sha256_free(sum);
        return NULL;
    }
    return sum;
}

void sha256_free(struct sha256 *sum)
{
    if (!sum)
        return;
    EVP_MD_CTX_free(sum->context);
    free(sum);
}

void sha256_add(struct sha256 *sum, struct slice bytes)
{
    if (EVP_DigestUpdate(sum->context, bytes.ptr, bytes.len) != 1)
        sum->failed = true;
}

enum status sha256_finish(struct sha256 *sum, uint8_t ret_digest[SHA256_BYTES])
{
    uint8_t digest[SHA256_BYTES];
    if (sum->failed || EVP_DigestFinal_ex(sum->context, digest, NULL) != 1)
        return ST_NOMEM;
    memcpy(ret_digest, digest, sizeof(digest));
    return ST_OK;
}
