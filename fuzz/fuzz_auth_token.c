/*
 * Any bytes as a token, in four ways: as it stands; as head and claims that are well signed; as
 * signature and as signed text, with the method that the first byte chooses; and as a row of the
 * store.
 */
#include "cost.h"

#include "auth/store.h"
#include "auth/token/jwt.h"
#include "auth/token/signature.h"
#include "codec/base64.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
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

/* -- Signatures -- */

struct signer {
    const char *method;
    const char *type, *curve; /* type and curve of the key, as OpenSSL names them; NULL: a secret */
    struct signature_key *key;
};

static struct signer signers[] = {{"HS512", NULL, NULL, NULL},     {"RS256", "RSA", NULL, NULL},
                                  {"PS384", "RSA", NULL, NULL},    {"ES256", "EC", "P-256", NULL},
                                  {"ES384", "EC", "P-384", NULL},  {"ES512", "EC", "P-521", NULL},
                                  {"EdDSA", "ED25519", NULL, NULL}};

static EVP_PKEY *key_make(const struct signer *signer)
{
    if (strcmp(signer->type, "RSA") == 0)
        return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    return EVP_PKEY_Q_keygen(NULL, NULL, signer->type, signer->curve);
}

static void pem_make(const struct signer *signer, char *ret_pem, int room)
{
    EVP_PKEY *key = key_make(signer);
    BIO *text = BIO_new(BIO_s_mem());
    if (!key || !text || PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) != 1)
        abort();
    int len = BIO_read(text, ret_pem, room - 1);
    ret_pem[len > 0 ? len : 0] = 0;
    BIO_free(text);
    EVP_PKEY_free(key);
}

/* Before the inputs, because keys for RSA take long. */
__attribute__((constructor)) static void make_keys(void)
{
    for (size_t i = 0; i < COUNT_OF(signers); i++) {
        struct error error;
        char pem[4096] = "secret";
        if (signers[i].type)
            pem_make(&signers[i], pem, sizeof(pem));
        if (signature_key_new(slice_from_text(signers[i].method), SLICE_EMPTY, slice_from_text(pem),
                              &signers[i].key, &error) != ST_OK)
            abort();
    }
}

/* No key has signed the input, but what it signs holds until a bit of it changes. */
static void check_signature(struct slice input)
{
    static const struct slice text = SLICE_LITERAL("head.claims");
    if (input.len < 2)
        return;
    const struct signature_key *key = signers[input.ptr[0] % COUNT_OF(signers)].key;
    struct slice rest = slice_sub(input, 1, input.len - 1);
    assert(!signature_holds(key, text, rest));

    uint8_t made[SIGNATURE_BYTES_MAX];
    size_t len;
    if (signature_make(key, rest, made, &len) != ST_OK)
        abort();
    assert(signature_holds(key, rest, slice_of(made, len)));
    made[rest.ptr[0] % len] ^= 1;
    assert(!signature_holds(key, rest, slice_of(made, len)));
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
    check_signature(input);
    apply(input);
    return 0;
}
