/* The part of OpenSSL's libcrypto that programs without TLS use, as the memory sanitizer has to see
 * it: what is hashed must be defined, and the digest is. */
#include <openssl/evp.h>
#include <sanitizer/msan_interface.h>

/* Names that the linker makes from OpenSSL's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

int REAL(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count);
int WRAP(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count);
int REAL(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes);
int WRAP(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes);

int WRAP(EVP_DigestUpdate)(EVP_MD_CTX *context, const void *bytes, size_t count)
{
    __msan_check_mem_is_initialized(bytes, count);
    return REAL(EVP_DigestUpdate)(context, bytes, count);
}

int WRAP(EVP_DigestFinal_ex)(EVP_MD_CTX *context, unsigned char *ret_digest, unsigned *ret_bytes)
{
    int ok = REAL(EVP_DigestFinal_ex)(context, ret_digest, ret_bytes);
    __msan_unpoison(ret_digest, (size_t)EVP_MD_CTX_get_size(context));
    if (ret_bytes)
        __msan_unpoison(ret_bytes, sizeof(*ret_bytes));
    return ok;
}
