#include "auth/token/issuer.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define TTL_NS (300 * NS_PER_S)

struct fixture {
    struct auth_issuer *issuer;
    struct arena arena;
    uint64_t revision; /* revision of the store */
    struct auth_moment now;
    struct buf token;
};

static uint64_t revision_of(void *ctx)
{
    return ((struct fixture *)ctx)->revision;
}

static void fixture_init(struct fixture *f, const struct auth_jwt_settings *jwt, int64_t ttl_ns)
{
    struct error error;
    *f = (struct fixture){.revision = 7, .now = {1, 1000}};
    arena_init(&f->arena, NULL, 0, 1 << 20);
    struct auth_issuer_settings settings = {.simple_ttl_ns = ttl_ns, .jwt = jwt};
    assert_int_equal(auth_issuer_new(&settings, &f->issuer, &error), ST_OK);
}

static void fixture_fini(struct fixture *f)
{
    auth_issuer_free(f->issuer);
    arena_fini(&f->arena);
    buf_fini(&f->token);
}

static enum status give(struct fixture *f, const char *user, uint64_t revision)
{
    struct auth_login login = {
        .principal = {.user = slice_from_text(user), .revision = revision},
        .index = 12,
        .now = f->now,
        .revision = revision_of,
        .ctx = f,
    };
    buf_reset(&f->token, 0);
    return auth_issuer_give(f->issuer, &login, &f->token);
}

static enum status find(struct fixture *f, struct auth_principal *ret_principal)
{
    return auth_issuer_find(f->issuer, buf_slice(&f->token), f->revision, f->now, &f->arena,
                            ret_principal);
}

static void a_simple_token_gets_the_current_revision(void **state)
{
    (void)state;
    struct fixture f;
    struct auth_principal principal;
    fixture_init(&f, NULL, TTL_NS);
    assert_int_equal(give(&f, "anna", 7), ST_OK);
    assert_true(f.token.len == AUTH_TOKEN_LETTERS + 3);
    f.revision = 9;
    assert_int_equal(find(&f, &principal), ST_OK);
    assert_true(slice_equal(principal.user, SLICE_LITERAL("anna")));
    assert_int_equal(principal.revision, 9);
    f.now.mono_ns += TTL_NS; /* the last use renewed it */
    assert_int_equal(find(&f, &principal), ST_INVALID_AUTH_TOKEN);
    fixture_fini(&f);
}

static void no_token_is_issued_after_a_change(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL, TTL_NS);
    f.revision = 8;
    assert_int_equal(give(&f, "anna", 7), ST_AUTH_OLD_REVISION);
    assert_int_equal(f.token.len, 0);
    fixture_fini(&f);
}

static void revoked_tokens_are_unknown_and_caches_are_invalidated(void **state)
{
    (void)state;
    struct fixture f;
    struct auth_principal principal;
    fixture_init(&f, NULL, TTL_NS);
    uint64_t before = auth_issuer_endings(f.issuer);
    assert_int_equal(give(&f, "anna", 7), ST_OK);
    auth_issuer_end_user(f.issuer, SLICE_LITERAL("bert"));
    assert_int_equal(find(&f, &principal), ST_OK);
    auth_issuer_end_user(f.issuer, SLICE_LITERAL("anna"));
    assert_int_equal(find(&f, &principal), ST_INVALID_AUTH_TOKEN);
    assert_int_equal(give(&f, "anna", 7), ST_OK);
    auth_issuer_end_all(f.issuer);
    assert_int_equal(find(&f, &principal), ST_INVALID_AUTH_TOKEN);
    assert_int_equal(auth_issuer_endings(f.issuer), before + 3);
    fixture_fini(&f);
}

static void results_are_cached_for_less_than_the_life_of_a_token(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL, NS_PER_S);
    assert_true(auth_issuer_remember_ns(f.issuer) < NS_PER_S / 2);
    fixture_fini(&f);
    fixture_init(&f, NULL, TTL_NS);
    assert_true(auth_issuer_remember_ns(f.issuer) < NS_PER_S);
    fixture_fini(&f);
}

static void a_web_token_contains_its_revision_and_is_not_stored(void **state)
{
    (void)state;
    struct fixture f;
    struct auth_principal principal;
    struct auth_jwt_settings jwt = {.method = SLICE_LITERAL("HS256"),
                                    .private_key = SLICE_LITERAL("a secret of some length"),
                                    .ttl_s = 60};
    fixture_init(&f, &jwt, TTL_NS);
    assert_int_equal(give(&f, "anna", 7), ST_OK);
    f.revision = 9;
    assert_int_equal(find(&f, &principal), ST_OK);
    assert_true(slice_equal(principal.user, SLICE_LITERAL("anna")));
    assert_int_equal(principal.revision, 7);
    f.now.real_s += 61;
    assert_int_equal(find(&f, &principal), ST_INVALID_AUTH_TOKEN);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simple_token_gets_the_current_revision),
        cmocka_unit_test(no_token_is_issued_after_a_change),
        cmocka_unit_test(revoked_tokens_are_unknown_and_caches_are_invalidated),
        cmocka_unit_test(results_are_cached_for_less_than_the_life_of_a_token),
        cmocka_unit_test(a_web_token_contains_its_revision_and_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
