#include "auth/password.h"

#include "base/xalloc.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

static void forget_text(char (*text)[AUTH_PASSWORD_BYTES_MAX + 1])
{
    OPENSSL_cleanse(*text, sizeof(*text));
}

static void forget_data(struct crypt_data **data)
{
    OPENSSL_cleanse(*data, sizeof(**data));
    free(*data);
}

/* setting: "$2a$10$" and 22 characters of salt, or a whole hash, which begins with them. */
static MUST_CHECK
enum status bcrypt(struct slice password, const char *setting, uint8_t ret_hash[AUTH_HASH_BYTES])
{
    AUTO(forget_text) char text[AUTH_PASSWORD_BYTES_MAX + 1] = {0};
    slice_copy(text, slice_sub(password, 0, size_min(password.len, AUTH_PASSWORD_BYTES_MAX)));
    AUTO(forget_data) struct crypt_data *data = xcalloc(1, sizeof(*data));
    const char *hash = crypt_rn(text, setting, data, sizeof(*data));
    if (!hash || strlen(hash) != AUTH_HASH_BYTES)
        return ST_INVALID;
    memcpy(ret_hash, hash, AUTH_HASH_BYTES);
    return ST_OK;
}

static bool has_nul(struct slice text)
{
    return text.len && memchr(text.ptr, 0, text.len);
}

enum status auth_password_hash(struct slice password, const uint8_t salt[AUTH_SALT_BYTES],
                               unsigned cost, uint8_t ret_hash[AUTH_HASH_BYTES])
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    assert(cost >= AUTH_BCRYPT_COST_MIN);
    assert(cost <= AUTH_BCRYPT_COST_MAX);
    if (password.len > AUTH_PASSWORD_BYTES_MAX || has_nul(password))
        return ST_INVALID;
    if (!crypt_gensalt_rn("$2a$", cost, (const char *)salt, AUTH_SALT_BYTES, setting,
                          sizeof(setting)))
        return ST_INTERNAL;
    return bcrypt(password, setting, ret_hash);
}

/* A stored hash may come from an import: accept only bcrypt, and no excessive cost. */
static bool is_hash(struct slice hash)
{
    const uint8_t *h = hash.ptr;
    if (hash.len != AUTH_HASH_BYTES || has_nul(hash) || h[0] != '$' || h[1] != '2')
        return false;
    return (h[2] == 'a' || h[2] == 'b' || h[2] == 'y') && h[3] == '$' && h[6] == '$';
}

/* Takes as long as a real check: otherwise the time would reveal users without a hash, and guessing
 * would be fast. */
static enum status fail_slowly(struct slice password)
{
    uint8_t unused[AUTH_HASH_BYTES];
    (void)!bcrypt(password, "$2a$10$zZ9wYk0QeVbT7uJx3RmNfO", unused);
    return ST_AUTH_FAILED;
}

enum status auth_password_check(struct slice password, struct slice hash)
{
    char setting[AUTH_HASH_BYTES + 1] = {0};
    uint8_t computed[AUTH_HASH_BYTES];
    if (!is_hash(hash))
        return fail_slowly(password);
    slice_copy(setting, hash);
    if (bcrypt(password, setting, computed) != ST_OK)
        return fail_slowly(password);
    bool same = CRYPTO_memcmp(computed, hash.ptr, AUTH_HASH_BYTES) == 0;
    return same && !has_nul(password) ? ST_OK : ST_AUTH_FAILED;
}
