/*
 * Any bytes as a token, in three ways: as it stands; as head and claims that are well signed; and
 * as a row of the store.
 */
#include "cost.h"

#include "auth/store.h"
#include "auth/token/jwt.h"
#include "codec/base64.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

static struct auth_jwt *the_jwt(void)
{
    static struct auth_jwt *jwt;
    struct error error;
    const struct auth_jwt_settings settings = {
        .method = SLICE_LITERAL("HS256"), .private_key = SLICE_LITERAL("secret"), .ttl_s = 300};
    if (!jwt && auth_jwt_new(&settings, &jwt, &error) != ST_OK)
        abort();
    return jwt;
}

static void check(struct slice token)
{
    struct arena arena;
    struct auth_principal principal = {0};
    arena_init(&arena, NULL, 0, 4 << 20);
    if (auth_jwt_check(the_jwt(), token, 1000000, &arena, &principal) == ST_OK)
        assert(principal.revision > 0);
    arena_fini(&arena);
}

static size_t append_base64(uint8_t *to, struct slice bytes)
{
    base64_encode(bytes, to);
    size_t len = base64_encoded_len(bytes.len);
    while (len && to[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++)
        to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    return len;
}

static void check_signed(struct slice claims)
{
    uint8_t *token = malloc(base64_encoded_len(claims.len) + 256);
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned mac_len;
    assert(token);
    size_t len = append_base64(token, SLICE_LITERAL("{\"alg\":\"HS256\"}"));
    token[len++] = '.';
    len += append_base64(token + len, claims);
    HMAC(EVP_sha256(), "secret", 6, token, len, mac, &mac_len);
    token[len++] = '.';
    len += append_base64(token + len, slice_of(mac, mac_len));
    check(slice_of(token, len));
    free(token);
}

/* What is taken in is what a check and a picture can live with. */
static void apply(struct slice value)
{
    AUTO(auth_store_freep) struct auth_store *store = auth_store_new();
    struct slice name = value.len > 2 ? slice_sub(value, 2, size_min(value.len - 2, 1)) : value;
    for (int table = 0; table < AUTH_TABLE_STATE; table++) {
        struct auth_row row = {.table = (enum auth_table)table, .key = name, .value = value};
        enum status status = auth_store_apply(store, &row);
        assert(status == ST_OK || status == ST_DAMAGED);
    }
    auth_store_check(store);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(store);
    auth_rights_check_order(rights);
}

FUZZ_INPUT()
{
    struct slice input = slice_of(data, size);
    check(input);
    check_signed(input);
    apply(input);
    return 0;
}
