#include "kube/policy/access/account_token.h"

#include "auth/token/jws.h"
#include "base/temp_dir_test.h"

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

enum { NOW = 1700000000 };
#define ISSUER "https://here/"

/* The files of one pair of keys. */
struct pair {
    char private_file[256], public_file[256], public_text[4096];
};

static char directory[TEMP_DIR_BYTES];
static struct pair rsa, other_rsa, p256, p384;
static struct arena arena;

static struct pair write_pair(const char *name, EVP_PKEY *key)
{
    struct pair pair;
    assert_non_null(key);
    snprintf(pair.private_file, sizeof(pair.private_file), "%s/%s.key", directory, name);
    snprintf(pair.public_file, sizeof(pair.public_file), "%s/%s.pub", directory, name);
    FILE *file = fopen(pair.private_file, "we");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    file = fopen(pair.public_file, "w+e");
    assert_int_equal(PEM_write_PUBKEY(file, key), 1);
    rewind(file);
    size_t len = fread(pair.public_text, 1, sizeof(pair.public_text) - 1, file);
    pair.public_text[len] = 0;
    fclose(file);
    EVP_PKEY_free(key);
    return pair;
}

static int set_up(void **state)
{
    (void)state;
    temp_dir_make("accounts", directory);
    rsa = write_pair("rsa", EVP_RSA_gen(2048));
    other_rsa = write_pair("other", EVP_RSA_gen(2048));
    p256 = write_pair("p256", EVP_EC_gen("P-256"));
    p384 = write_pair("p384", EVP_EC_gen("P-384"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove(directory);
    return 0;
}

static enum status open_keys(const char *issuers, const char *audiences, const char *files,
                             const char *signer, struct kube_account_keys **ret_keys,
                             struct error *error)
{
    struct kube_account_settings settings = {issuers, audiences, files, signer};
    return kube_account_keys_read(&settings, ret_keys, error);
}

static struct kube_account_keys *keys_of(const char *files, const char *signer)
{
    struct kube_account_keys *keys;
    struct error error;
    if (open_keys(ISSUER ",https://before/", "", files, signer, &keys, &error) != ST_OK)
        fail_msg("%s", error.text);
    return keys;
}

static const struct slice audience = {(const uint8_t *)ISSUER, sizeof(ISSUER) - 1};

static struct kube_account_claims claims_of(void)
{
    return (struct kube_account_claims){
        .namespace = SLICE_LITERAL("shop"),
        .account = {SLICE_LITERAL("clerk"), SLICE_LITERAL("u-1")},
        .pod = {SLICE_LITERAL("web-0"), SLICE_LITERAL("u-2")},
        .node = {SLICE_LITERAL("n1"), SLICE_LITERAL("u-3")},
        .audiences = {&audience, 1},
        .id = SLICE_LITERAL("an-id"),
        .issued_s = NOW,
        .expires_s = NOW + 600,
    };
}

static enum status verify_at(const struct kube_account_keys *keys, struct slice token,
                             const struct kube_texts *wanted, int64_t now_s,
                             struct kube_account_claims *claims, const char **why)
{
    arena_fini(&arena);
    arena_init(&arena, NULL, 0, 1 << 20);
    return kube_account_verify(keys, token, wanted, now_s, &arena, claims, why);
}

static void assert_refused(const struct kube_account_keys *keys, struct slice token, int64_t now_s)
{
    struct kube_account_claims claims;
    const char *why;
    assert_int_equal(verify_at(keys, token, NULL, now_s, &claims, &why), ST_INVALID_AUTH_TOKEN);
    assert_non_null(why);
}

static void assert_accepted(const struct kube_account_keys *keys, struct slice token)
{
    struct kube_account_claims claims;
    const char *why;
    assert_int_equal(verify_at(keys, token, NULL, NOW, &claims, &why), ST_OK);
    assert_true(slice_is(claims.account.name, "clerk"));
}

static struct slice sign(const struct kube_account_keys *keys,
                         const struct kube_account_claims *claims, struct buf *out)
{
    buf_reset(out, SIZE_MAX);
    assert_int_equal(kube_account_sign(keys, claims, out), ST_OK);
    return buf_slice(out);
}

/* -- Tokens that are made by hand -- */

#define CLAIMS(more)                                                                  \
    "{\"iss\":\"" ISSUER "\",\"aud\":[\"" ISSUER "\"],\"sub\":"                       \
    "\"system:serviceaccount:shop:clerk\",\"kubernetes.io\":{\"namespace\":\"shop\"," \
    "\"serviceaccount\":{\"name\":\"clerk\",\"uid\":\"u-1\"}}" more "}"
#define EXP ",\"exp\":1700000600"

static struct slice sign_text(const char *key_file, const char *head, const char *claims,
                              struct buf *out)
{
    char pem[8192];
    struct signature_key *key;
    struct error error;
    FILE *file = fopen(key_file, "re");
    size_t len = fread(pem, 1, sizeof(pem), file);
    fclose(file);
    assert_int_equal(signature_key_detect(SLICE_EMPTY, slice_of(pem, len), &key, &error), ST_OK);
    buf_reset(out, SIZE_MAX);
    assert_int_equal(jws_sign(key, slice_from_text(head), slice_from_text(claims), out), ST_OK);
    signature_key_free(key);
    return buf_slice(out);
}

static struct slice sign_secret(const char *secret, const char *head, const char *claims,
                                struct buf *out)
{
    struct signature_key *key;
    struct error error;
    assert_int_equal(signature_key_new(SLICE_LITERAL("HS256"), SLICE_EMPTY, slice_from_text(secret),
                                       &key, &error),
                     ST_OK);
    buf_reset(out, SIZE_MAX);
    assert_int_equal(jws_sign(key, slice_from_text(head), slice_from_text(claims), out), ST_OK);
    signature_key_free(key);
    return buf_slice(out);
}

static void a_token_names_its_account_and_what_it_is_bound_to(void **state)
{
    const struct pair *pairs[] = {&rsa, &p256, &p384};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        AUTO(buf_fini) struct buf out = {0};
        struct kube_account_keys *keys = keys_of("", pairs[i]->private_file);
        struct kube_account_claims made = claims_of(), claims;
        const char *why;
        struct slice token = sign(keys, &made, &out);
        assert_int_equal(verify_at(keys, token, NULL, NOW, &claims, &why), ST_OK);
        assert_true(slice_equal(claims.namespace, made.namespace));
        assert_true(slice_equal(claims.account.uid, made.account.uid));
        assert_true(slice_equal(claims.pod.name, made.pod.name));
        assert_true(slice_equal(claims.node.uid, made.node.uid));
        assert_int_equal(claims.secret.name.len, 0);
        assert_int_equal(claims.expires_s, made.expires_s);
        struct kube_user_info user;
        kube_account_user(&arena, &claims, &user);
        assert_true(slice_is(user.name, "system:serviceaccount:shop:clerk"));
        assert_int_equal(user.groups.count, 2);
        assert_true(slice_is(user.groups.items[1], "system:serviceaccounts:shop"));
        assert_int_equal(user.extra_count, 5);
        assert_true(slice_is(user.extra[0].values.items[0], "JTI=an-id"));
        kube_account_keys_free(keys);
    }
}

static void only_configured_keys_verify(void **state)
{
    char files[600];
    AUTO(buf_fini) struct buf out = {0};
    (void)state;
    struct kube_account_keys *signer = keys_of("", rsa.private_file);
    struct kube_account_claims claims = claims_of();
    struct slice token = sign(signer, &claims, &out);
    snprintf(files, sizeof(files), "%s,%s", p256.public_file, rsa.public_file);
    struct kube_account_keys *both = keys_of(files, "");
    struct kube_account_keys *other = keys_of(other_rsa.public_file, "");
    struct kube_account_keys *as_private = keys_of(rsa.private_file, "");
    assert_accepted(both, token);
    assert_accepted(as_private, token);
    assert_refused(other, token, NOW);
    assert_false(kube_account_can_sign(both));
    assert_false(kube_account_can_sign(as_private));
    assert_true(kube_account_can_sign(signer));
    AUTO(buf_fini) struct buf none = {0};
    assert_int_equal(kube_account_sign(both, &claims, &none), ST_UNIMPLEMENTED);
    kube_account_keys_free(signer);
    kube_account_keys_free(both);
    kube_account_keys_free(other);
    kube_account_keys_free(as_private);
}

/* The head of a token never chooses how it is verified. */
static void a_token_cannot_choose_its_method(void **state)
{
    AUTO(buf_fini) struct buf out = {0};
    (void)state;
    struct kube_account_keys *keys = keys_of(rsa.public_file, "");
    struct kube_account_keys *curve = keys_of(p256.public_file, "");
    const char *claims = CLAIMS(EXP);
    assert_accepted(keys, sign_text(rsa.private_file, "{\"alg\":\"RS256\"}", claims, &out));
    assert_accepted(curve, sign_text(p256.private_file, "{\"alg\":\"ES256\"}", claims, &out));
    /* The public key as a secret. */
    assert_refused(keys, sign_secret(rsa.public_text, "{\"alg\":\"HS256\"}", claims, &out), NOW);
    assert_refused(keys, sign_secret(rsa.public_text, "{\"alg\":\"RS256\"}", claims, &out), NOW);
    /* No signature, or an empty one. */
    buf_reset(&out, SIZE_MAX);
    assert_int_equal(jws_append(&out, SLICE_LITERAL("{\"alg\":\"none\"}")), ST_OK);
    assert_int_equal(buf_append_text(&out, "."), ST_OK);
    assert_int_equal(jws_append(&out, slice_from_text(claims)), ST_OK);
    assert_refused(keys, buf_slice(&out), NOW);
    assert_int_equal(buf_append_text(&out, "."), ST_OK);
    assert_refused(keys, buf_slice(&out), NOW);
    /* A right signature with another method in the head. */
    assert_refused(keys, sign_text(rsa.private_file, "{\"alg\":\"none\"}", claims, &out), NOW);
    assert_refused(keys, sign_text(rsa.private_file, "{\"alg\":\"PS256\"}", claims, &out), NOW);
    assert_refused(keys, sign_text(rsa.private_file, "{}", claims, &out), NOW);
    assert_refused(keys, sign_text(rsa.private_file, "[]", claims, &out), NOW);
    /* Another curve. */
    assert_refused(curve, sign_text(p384.private_file, "{\"alg\":\"ES256\"}", claims, &out), NOW);
    /* A key of the token's own, in its head. */
    assert_refused(keys,
                   sign_text(other_rsa.private_file,
                             "{\"alg\":\"RS256\",\"kid\":\"../rsa\",\"jwk\":{\"kty\":\"RSA\"},"
                             "\"jku\":\"https://elsewhere/\"}",
                             claims, &out),
                   NOW);
    kube_account_keys_free(keys);
    kube_account_keys_free(curve);
}

static void times_issuer_and_audience_are_checked(void **state)
{
    static const struct {
        const char *claims;
        int64_t now_s;
        bool accepted;
    } rows[] = {
        {CLAIMS(EXP), NOW, true},
        {CLAIMS(EXP), NOW + 600 + KUBE_ACCOUNT_LEEWAY_S, true},
        {CLAIMS(EXP), NOW + 601 + KUBE_ACCOUNT_LEEWAY_S, false},
        {CLAIMS(""), NOW, false}, /* it would never expire */
        {CLAIMS(",\"exp\":\"1700000600\""), NOW, false},
        {CLAIMS(",\"exp\":1e999"), NOW, false},
        {CLAIMS(EXP ",\"nbf\":1700000060"), NOW, true},
        {CLAIMS(EXP ",\"nbf\":1700000061"), NOW, false},
        {CLAIMS(EXP ",\"iat\":1700000061"), NOW, false},
        {CLAIMS(EXP ",\"iss\":\"https://before/\""), NOW, true},
        {CLAIMS(EXP ",\"iss\":\"https://elsewhere/\""), NOW, false},
        {CLAIMS(EXP ",\"iss\":null"), NOW, false},
        {CLAIMS(EXP ",\"aud\":\"" ISSUER "\""), NOW, true},
        {CLAIMS(EXP ",\"aud\":[\"x\",\"https://before/\"]"), NOW, true},
        {CLAIMS(EXP ",\"aud\":[\"https://elsewhere/\"]"), NOW, false},
        {CLAIMS(EXP ",\"aud\":[]"), NOW, false},
        {CLAIMS(EXP ",\"aud\":{}"), NOW, false},
        {CLAIMS(EXP ",\"sub\":\"system:serviceaccount:shop:owner\""), NOW, false},
        {CLAIMS(EXP ",\"sub\":\"system:admin\""), NOW, false},
        {CLAIMS(EXP ",\"kubernetes.io\":[]"), NOW, false},
    };
    AUTO(buf_fini) struct buf out = {0};
    (void)state;
    struct kube_account_keys *keys = keys_of(p256.public_file, "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_account_claims claims;
        const char *why = NULL;
        struct slice token =
            sign_text(p256.private_file, "{\"alg\":\"ES256\"}", rows[i].claims, &out);
        enum status status = verify_at(keys, token, NULL, rows[i].now_s, &claims, &why);
        if (status != (rows[i].accepted ? ST_OK : ST_INVALID_AUTH_TOKEN))
            fail_msg("%s at %ld: %s", rows[i].claims, (long)rows[i].now_s, why ? why : "accepted");
    }
    /* Audiences of a review instead of the server's. */
    struct slice wanted = SLICE_LITERAL("vault");
    struct kube_texts list = {&wanted, 1};
    struct kube_account_claims claims;
    const char *why;
    struct slice token = sign_text(p256.private_file, "{\"alg\":\"ES256\"}",
                                   CLAIMS(EXP ",\"aud\":[\"vault\"]"), &out);
    assert_int_equal(verify_at(keys, token, &list, NOW, &claims, &why), ST_OK);
    assert_int_equal(verify_at(keys, token, NULL, NOW, &claims, &why), ST_INVALID_AUTH_TOKEN);
    kube_account_keys_free(keys);
}

static void damaged_tokens_are_refused(void **state)
{
    AUTO(buf_fini) struct buf out = {0}, copy = {0};
    (void)state;
    struct kube_account_keys *keys = keys_of("", p256.private_file);
    struct kube_account_claims claims = claims_of();
    sign(keys, &claims, &out);
    for (size_t len = 0; len < out.len; len++)
        assert_refused(keys, slice_of(out.ptr, len), NOW);
    for (size_t i = 0; i < out.len; i += 3) {
        out.ptr[i] ^= 1;
        assert_refused(keys, buf_slice(&out), NOW);
        out.ptr[i] ^= 1;
    }
    assert_int_equal(buf_append(&copy, buf_slice(&out)), ST_OK);
    assert_int_equal(buf_append_text(&copy, ".x"), ST_OK);
    assert_refused(keys, buf_slice(&copy), NOW);
    kube_account_keys_free(keys);
}

/* Past the limits: length, nesting, audiences; all of them correctly signed. */
static void long_and_deep_tokens_are_refused(void **state)
{
    AUTO(buf_fini) struct buf out = {0}, text = {0};
    (void)state;
    struct kube_account_keys *keys = keys_of(p256.public_file, "");
    for (size_t depth = 200; depth <= 400; depth += 200) {
        buf_reset(&text, SIZE_MAX);
        assert_int_equal(buf_append_text(&text, CLAIMS(EXP)), ST_OK);
        text.len--;
        assert_int_equal(buf_append_text(&text, ",\"x\":"), ST_OK);
        for (size_t i = 0; i < depth; i++)
            assert_int_equal(buf_append_text(&text, "["), ST_OK);
        for (size_t i = 0; i < depth; i++)
            assert_int_equal(buf_append_text(&text, "]"), ST_OK);
        assert_int_equal(buf_append(&text, slice_of("}", 2)), ST_OK);
        struct slice token =
            sign_text(p256.private_file, "{\"alg\":\"ES256\"}", (const char *)text.ptr, &out);
        if (depth == 200)
            assert_accepted(keys, token);
        else
            assert_refused(keys, token, NOW);
    }
    for (size_t count = KUBE_ACCOUNT_AUDIENCES_MAX; count <= KUBE_ACCOUNT_AUDIENCES_MAX + 1;
         count++) {
        buf_reset(&text, SIZE_MAX);
        assert_int_equal(buf_append_text(&text, CLAIMS(EXP)), ST_OK);
        text.len--;
        assert_int_equal(buf_append_text(&text, ",\"aud\":[\"" ISSUER "\""), ST_OK);
        for (size_t i = 1; i < count; i++)
            assert_int_equal(buf_append_text(&text, ",\"x\""), ST_OK);
        assert_int_equal(buf_append(&text, slice_of("]}", 3)), ST_OK);
        struct slice token =
            sign_text(p256.private_file, "{\"alg\":\"ES256\"}", (const char *)text.ptr, &out);
        if (count == KUBE_ACCOUNT_AUDIENCES_MAX)
            assert_accepted(keys, token);
        else
            assert_refused(keys, token, NOW);
    }
    struct kube_account_claims claims = claims_of();
    struct kube_account_keys *signer = keys_of("", p256.private_file);
    AUTO(buf_fini) struct buf id = {0};
    while (id.len < KUBE_ACCOUNT_TOKEN_BYTES_MAX)
        assert_int_equal(buf_append_text(&id, "x"), ST_OK);
    claims.id = slice_of(id.ptr, 8000);
    assert_accepted(keys, sign(signer, &claims, &out));
    claims.id = buf_slice(&id);
    assert_refused(keys, sign(signer, &claims, &out), NOW);
    kube_account_keys_free(signer);
    kube_account_keys_free(keys);
}

static void files_without_usable_keys_are_refused(void **state)
{
    char path[256], other[256];
    struct kube_account_keys *keys;
    struct error error;
    (void)state;
    assert_int_equal(open_keys(ISSUER, "", "", "", &keys, &error), ST_OK);
    assert_null(keys);
    assert_int_equal(open_keys("", "", rsa.public_file, "", &keys, &error), ST_INVALID);
    assert_int_equal(open_keys(ISSUER, "", "", rsa.public_file, &keys, &error), ST_INVALID);
    assert_int_not_equal(open_keys(ISSUER, "", "/nowhere", "", &keys, &error), ST_OK);
    snprintf(path, sizeof(path), "%s/bad", directory);
    snprintf(other, sizeof(other), "%s/ed", directory);
    FILE *file = fopen(path, "we");
    fprintf(file, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
    fclose(file);
    assert_int_equal(open_keys(ISSUER, "", path, "", &keys, &error), ST_INVALID);
    file = fopen(path, "we");
    fclose(file);
    assert_int_equal(open_keys(ISSUER, "", path, "", &keys, &error), ST_INVALID);
    EVP_PKEY *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    file = fopen(other, "we");
    assert_int_equal(PEM_write_PUBKEY(file, ed), 1);
    fclose(file);
    EVP_PKEY_free(ed);
    assert_int_equal(open_keys(ISSUER, "", other, "", &keys, &error), ST_INVALID);
}

static void keys_past_the_limits_are_refused(void **state)
{
    char path[256];
    struct kube_account_keys *keys;
    struct error error;
    (void)state;
    snprintf(path, sizeof(path), "%s/many", directory);
    for (int count = KUBE_ACCOUNT_KEYS_MAX; count <= KUBE_ACCOUNT_KEYS_MAX + 1; count++) {
        FILE *file = fopen(path, "we");
        for (int i = 0; i < count; i++)
            fputs(p256.public_text, file);
        fclose(file);
        enum status status = open_keys(ISSUER, "", path, "", &keys, &error);
        assert_int_equal(status, count > KUBE_ACCOUNT_KEYS_MAX ? ST_LIMIT : ST_OK);
        if (status == ST_OK)
            kube_account_keys_free(keys);
    }
    FILE *file = fopen(path, "we");
    fputs(p256.public_text, file);
    for (int i = 0; i < KUBE_ACCOUNT_KEY_FILE_BYTES_MAX; i++)
        fputc('\n', file);
    fclose(file);
    assert_int_equal(open_keys(ISSUER, "", path, "", &keys, &error), ST_LIMIT);
}

static void names_of_accounts_are_split(void **state)
{
    struct slice namespace, name;
    (void)state;
    assert_true(
        kube_user_split_account(SLICE_LITERAL("system:serviceaccount:a:b"), &namespace, &name));
    assert_true(slice_is(name, "b"));
    const char *wrong[] = {"system:serviceaccount:a",
                           "system:serviceaccount:a:b:c",
                           "system:serviceaccount::b",
                           "system:serviceaccount:a:",
                           "system:serviceaccounts:a:b",
                           "x",
                           ""};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(kube_user_split_account(slice_from_text(wrong[i]), &namespace, &name));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_names_its_account_and_what_it_is_bound_to),
        cmocka_unit_test(only_configured_keys_verify),
        cmocka_unit_test(a_token_cannot_choose_its_method),
        cmocka_unit_test(times_issuer_and_audience_are_checked),
        cmocka_unit_test(damaged_tokens_are_refused),
        cmocka_unit_test(long_and_deep_tokens_are_refused),
        cmocka_unit_test(files_without_usable_keys_are_refused),
        cmocka_unit_test(keys_past_the_limits_are_refused),
        cmocka_unit_test(names_of_accounts_are_split),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
