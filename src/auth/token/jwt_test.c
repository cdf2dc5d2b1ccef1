#include "auth/token/jwt.h"

#include "codec/base64.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NOW = 1000000, TTL = 600 };

struct pem {
    char private_key[8192];
    char public_key[2048];
};

static struct pem rsa, rsa_other, p256, p384, p521, ed;

static void read_all(BIO *bio, char *to, size_t room)
{
    int len = BIO_read(bio, to, (int)room - 1);
    assert_true(len > 0);
    to[len] = 0;
    BIO_free(bio);
}

static struct pem pem_of(EVP_PKEY *key)
{
    struct pem pem = {0};
    assert_non_null(key);
    BIO *out = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL), 1);
    read_all(out, pem.private_key, sizeof(pem.private_key));
    out = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(out, key), 1);
    read_all(out, pem.public_key, sizeof(pem.public_key));
    EVP_PKEY_free(key);
    return pem;
}

static int make_keys(void **state)
{
    (void)state;
    rsa = pem_of(EVP_RSA_gen(2048));
    rsa_other = pem_of(EVP_RSA_gen(2048));
    p256 = pem_of(EVP_EC_gen("P-256"));
    p384 = pem_of(EVP_EC_gen("P-384"));
    p521 = pem_of(EVP_EC_gen("P-521"));
    ed = pem_of(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
    return 0;
}

static enum status try_new(const char *method, const char *public_key, const char *private_key,
                           struct auth_jwt **ret_jwt)
{
    struct error error;
    struct auth_jwt_settings settings = {.method = slice_from_text(method),
                                         .public_key = slice_from_text(public_key),
                                         .private_key = slice_from_text(private_key),
                                         .ttl_s = TTL};
    return auth_jwt_new(&settings, ret_jwt, &error);
}

static struct auth_jwt *make(const char *method, const char *public_key, const char *private_key)
{
    struct auth_jwt *jwt;
    assert_int_equal(try_new(method, public_key, private_key, &jwt), ST_OK);
    return jwt;
}

static struct slice sign(struct auth_jwt *jwt, const char *user, uint64_t revision, struct buf *out)
{
    buf_reset(out, 0);
    assert_int_equal(
        auth_jwt_sign(jwt,
                      &(struct auth_principal){.user = slice_from_text(user), .revision = revision},
                      NOW, out),
        ST_OK);
    return buf_slice(out);
}

/* "user@revision", or the status. */
static const char *check(struct auth_jwt *jwt, struct slice token, int64_t now)
{
    static char text[128];
    struct arena arena;
    struct auth_principal principal;
    arena_init(&arena, NULL, 0, 1 << 20);
    enum status status = auth_jwt_check(jwt, token, now, &arena, &principal);
    if (status == ST_OK)
        snprintf(text, sizeof(text), "%.*s@%llu", SLICE_ARGS(principal.user),
                 (unsigned long long)principal.revision);
    else
        snprintf(text, sizeof(text), "%s", status_name(status));
    arena_fini(&arena);
    return text;
}

#define REFUSED(jwt, token, now) assert_string_equal(check(jwt, token, now), "INVALID_AUTH_TOKEN")

static void every_method_knows_its_own_signature_and_no_other(void **state)
{
    (void)state;
    const struct {
        const char *method;
        const struct pem *key;
    } cases[] = {{"RS256", &rsa},  {"RS384", &rsa}, {"RS512", &rsa},  {"PS256", &rsa},
                 {"PS384", &rsa},  {"PS512", &rsa}, {"ES256", &p256}, {"ES384", &p384},
                 {"ES512", &p521}, {"EdDSA", &ed},  {"HS256", NULL},  {"HS384", NULL},
                 {"HS512", NULL}};
    struct buf token = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct pem *key = cases[i].key;
        AUTO(auth_jwt_freep)
        struct auth_jwt *jwt = make(cases[i].method, "", key ? key->private_key : "a secret");
        sign(jwt, "user \"u\"", 7, &token);
        assert_string_equal(check(jwt, buf_slice(&token), NOW), "user \"u\"@7");
        if (key) {
            AUTO(auth_jwt_freep)
            struct auth_jwt *verifier = make(cases[i].method, key->public_key, "");
            assert_string_equal(check(verifier, buf_slice(&token), NOW), "user \"u\"@7");
            struct buf out = {0};
            assert_int_equal(auth_jwt_sign(verifier, &(struct auth_principal){0}, NOW, &out),
                             ST_UNIMPLEMENTED);
        }
        for (size_t k = 0; k < COUNT_OF(cases); k++) {
            const struct pem *other = cases[k].key;
            AUTO(auth_jwt_freep)
            struct auth_jwt *another =
                make(cases[k].method, "", other ? other->private_key : "a secret");
            if (k != i)
                REFUSED(another, buf_slice(&token), NOW);
        }
        /* Any changed byte is detected; the last byte may have unused bits. */
        for (size_t at = 0; at < token.len - 1; at += 7) {
            token.ptr[at] ^= 1;
            REFUSED(jwt, buf_slice(&token), NOW);
            token.ptr[at] ^= 1;
        }
    }
    buf_fini(&token);
}

static void a_token_expires(void **state)
{
    (void)state;
    struct buf token = {0};
    AUTO(auth_jwt_freep) struct auth_jwt *jwt = make("HS256", "", "secret");
    sign(jwt, "u", 3, &token);
    assert_string_equal(check(jwt, buf_slice(&token), NOW + TTL - 1), "u@3");
    REFUSED(jwt, buf_slice(&token), NOW + TTL);
    buf_fini(&token);
}

/* Made by golang-jwt/v5, which etcd uses: HS256, "secret", exp 2000000, revision 12, "alice". */
static void tokens_of_etcd_are_understood(void **state)
{
    (void)state;
    AUTO(auth_jwt_freep) struct auth_jwt *jwt = make("HS256", "", "secret");
    assert_string_equal(
        check(jwt,
              SLICE_LITERAL("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                            "eyJleHAiOjIwMDAwMDAsInJldmlzaW9uIjoxMiwidXNlcm5hbWUiOiJhbGljZSJ9."
                            "ewvznqANXOUAVJ0NiZtUU40aKQO1S7Qa_6A2NwLp55s"),
              NOW),
        "alice@12");
    REFUSED(jwt,
            SLICE_LITERAL("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                          "eyJleHAiOjIwMDAwMDAsInJldmlzaW9uIjoxMiwidXNlcm5hbWUiOiJhbGljZSJ9."
                          "ewvznqANXOUAVJ0NiZtUU40aKQO1S7Qa_6A2NwLp55s"),
            2000000);
}

/* Signs any claims with the right key. */
static const char *check_claims(const char *head, const char *claims)
{
    static char token[4096];
    AUTO(auth_jwt_freep) struct auth_jwt *jwt = make("HS256", "", "secret");
    uint8_t mac[EVP_MAX_MD_SIZE], text[2048];
    unsigned mac_len;
    const struct slice parts[] = {slice_from_text(head), slice_from_text(claims)};
    token[0] = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t before = strlen(token);
        if (i == 2)
            HMAC(EVP_sha256(), "secret", 6, (uint8_t *)token, before, mac, &mac_len);
        struct slice part = i == 2 ? slice_of(mac, mac_len) : parts[i];
        base64_encode(part, text);
        size_t len = base64_encoded_len(part.len);
        while (len && text[len - 1] == '=')
            len--;
        for (size_t k = 0; k < len; k++)
            text[k] = text[k] == '+' ? '-' : text[k] == '/' ? '_' : text[k];
        snprintf(token + before, sizeof(token) - before, "%s%.*s", i ? "." : "", (int)len,
                 (char *)text);
    }
    return check(jwt, slice_from_text(token), NOW);
}

static void claims_must_contain_the_user_and_the_revision(void **state)
{
    (void)state;
    const char *head = "{\"alg\":\"HS256\"}", *no = "INVALID_AUTH_TOKEN";
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":2}"), "u@2");
    assert_string_equal(
        check_claims(head, "{\"username\":\"u\",\"revision\":2e0,\"exp\":1000000.5}"), "u@2");
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":2,\"exp\":1000000}"),
                        no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":2,\"exp\":\"never\"}"),
                        no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":2,\"nbf\":1000001}"),
                        no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":2,\"nbf\":1000000}"),
                        "u@2");
    assert_string_equal(check_claims(head, "{\"revision\":2}"), no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\"}"), no);
    assert_string_equal(check_claims(head, "{\"username\":1,\"revision\":2}"), no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":\"2\"}"), no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":0}"), no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":-1}"), no);
    assert_string_equal(check_claims(head, "{\"username\":\"u\",\"revision\":1e300}"), no);
    assert_string_equal(check_claims(head, "[]"), no);
    assert_string_equal(check_claims(head, "{"), no);
    assert_string_equal(check_claims("{}", "{\"username\":\"u\",\"revision\":2}"), no);
}

/* The settings choose the method: a token cannot choose another one or none. */
static void the_header_of_a_token_does_not_choose_the_method(void **state)
{
    (void)state;
    const char *claims = "{\"username\":\"root\",\"revision\":9}";
    assert_string_equal(check_claims("{\"alg\":\"none\"}", claims), "INVALID_AUTH_TOKEN");
    assert_string_equal(check_claims("{\"alg\":\"HS512\"}", claims), "INVALID_AUTH_TOKEN");
    AUTO(auth_jwt_freep) struct auth_jwt *jwt = make("HS256", "", "secret");
    /* {"alg":"none"} and the claims above, unsigned. */
    REFUSED(jwt, SLICE_LITERAL("eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6InJvb3QiLCJyZXZpc2lvbiI6OX0."),
            NOW);
    /* Signed with the public key of RSA as if it were a secret. */
    AUTO(auth_jwt_freep) struct auth_jwt *confused = make("HS256", "", rsa.public_key);
    AUTO(auth_jwt_freep) struct auth_jwt *verifier = make("RS256", rsa.public_key, "");
    struct buf token = {0};
    sign(confused, "root", 9, &token);
    REFUSED(verifier, buf_slice(&token), NOW);
    buf_fini(&token);
}

static void an_invalid_token_is_refused(void **state)
{
    (void)state;
    AUTO(auth_jwt_freep) struct auth_jwt *jwt = make("RS256", rsa.public_key, "");
    static const char *const texts[] = {"", ".", "..", "...", "a.b.c", "a.b.c.d", "a+/=.b.c"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        REFUSED(jwt, slice_from_text(texts[i]), NOW);
    static char longest[AUTH_JWT_BYTES_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    longest[10] = longest[20] = '.';
    REFUSED(jwt, slice_of(longest, sizeof(longest)), NOW);
    REFUSED(jwt, slice_of(longest, sizeof(longest) - 1), NOW);
}

static void keys_of_the_wrong_type_are_refused_at_the_start(void **state)
{
    (void)state;
    struct auth_jwt *jwt = NULL;
    assert_int_equal(try_new("XX256", rsa.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("", rsa.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("none", rsa.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("RS256", "", "", &jwt), ST_INVALID);
    assert_int_equal(try_new("HS256", "public", "", &jwt), ST_INVALID);
    assert_int_equal(try_new("RS256", "no PEM", "", &jwt), ST_INVALID);
    assert_int_equal(try_new("RS256", p256.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("ES256", p384.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("EdDSA", p256.public_key, "", &jwt), ST_INVALID);
    assert_int_equal(try_new("RS256", rsa_other.public_key, rsa.private_key, &jwt), ST_INVALID);
    assert_null(jwt);
    AUTO(auth_jwt_freep) struct auth_jwt *both = make("RS256", rsa.public_key, rsa.private_key);
    assert_non_null(both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_knows_its_own_signature_and_no_other),
        cmocka_unit_test(a_token_expires),
        cmocka_unit_test(tokens_of_etcd_are_understood),
        cmocka_unit_test(claims_must_contain_the_user_and_the_revision),
        cmocka_unit_test(the_header_of_a_token_does_not_choose_the_method),
        cmocka_unit_test(an_invalid_token_is_refused),
        cmocka_unit_test(keys_of_the_wrong_type_are_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, make_keys, NULL);
}
