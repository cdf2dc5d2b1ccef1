#include "bolt/sha256.h"

#include "base/xalloc.h"

#include <openssl/evp.h>

struct sha256 {
    EVP_MD_CTX *context;
};

/* Every build of the library has this digest: it fails only without memory. */
static void must(int done)
{
    xalloc_check(done == 1 ? (void *)1 : NULL, SHA256_BYTES);
}

struct sha256 *sha256_new(void)
{
    struct sha256 *sum = xcalloc(1, sizeof(*sum));
    sum->context = xalloc_check(EVP_MD_CTX_new(), sizeof(sum->context));
    must(EVP_DigestInit_ex(sum->context, EVP_sha256(), NULL));
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
    must(EVP_DigestUpdate(sum->context, bytes.ptr, bytes.len));
}

void sha256_finish(struct sha256 *sum, uint8_t ret_digest[SHA256_BYTES])
{
    must(EVP_DigestFinal_ex(sum->context, ret_digest, NULL));
}
