#include "auth/password.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static const uint8_t salt[AUTH_SALT_BYTES] = "0123456789abcdef";

static struct slice hash_of(const char *password, uint8_t *hash)
{
    assert_int_equal(auth_password_hash(slice_from_text(password), salt, 4, hash), ST_OK);
    return slice_of(hash, AUTH_HASH_BYTES);
}

static void only_the_right_password_matches(void **state)
{
    (void)state;
    uint8_t bytes[AUTH_HASH_BYTES];
    struct slice hash = hash_of("secret", bytes);
    assert_memory_equal(hash.ptr, "$2a$04$", 7);
    assert_int_equal(auth_password_check(SLICE_LITERAL("secret"), hash), ST_OK);
    assert_int_equal(auth_password_check(SLICE_LITERAL("Secret"), hash), ST_AUTH_FAILED);
    assert_int_equal(auth_password_check(SLICE_LITERAL("secre"), hash), ST_AUTH_FAILED);
    assert_int_equal(auth_password_check(SLICE_EMPTY, hash), ST_AUTH_FAILED);
}

/* Made by golang.org/x/crypto/bcrypt, which etcd uses. */
static void hashes_of_etcd_are_understood(void **state)
{
    (void)state;
    struct slice hash =
        SLICE_LITERAL("$2a$10$w4mhIXiCGc.4cPP9AmVpE.MwAh/1LoCeqofVm2SI4eSFhkWd0YrXO");
    assert_int_equal(auth_password_check(SLICE_LITERAL("from etcd"), hash), ST_OK);
    assert_int_equal(auth_password_check(SLICE_LITERAL("from etcd "), hash), ST_AUTH_FAILED);
}

static void a_password_with_a_nul_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[AUTH_HASH_BYTES];
    struct slice hash = hash_of("a", bytes);
    assert_int_equal(auth_password_check(slice_of("a\0b", 3), hash), ST_AUTH_FAILED);
    assert_int_equal(auth_password_hash(slice_of("a\0b", 3), salt, 4, bytes), ST_INVALID);
}

static void a_password_too_long_for_bcrypt_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[AUTH_HASH_BYTES];
    char password[AUTH_PASSWORD_BYTES_MAX + 2];
    memset(password, 'p', sizeof(password));
    struct slice longest = slice_of(password, AUTH_PASSWORD_BYTES_MAX);
    struct slice longer = slice_of(password, AUTH_PASSWORD_BYTES_MAX + 1);
    assert_int_equal(auth_password_hash(longer, salt, 4, bytes), ST_INVALID);
    assert_int_equal(auth_password_hash(longest, salt, 4, bytes), ST_OK);
    assert_int_equal(auth_password_check(longest, slice_of(bytes, sizeof(bytes))), ST_OK);
}

static void an_invalid_hash_matches_no_password(void **state)
{
    (void)state;
    uint8_t bytes[AUTH_HASH_BYTES];
    struct slice hash = hash_of("", bytes);
    assert_int_equal(auth_password_check(SLICE_EMPTY, hash), ST_OK);
    assert_int_equal(auth_password_check(SLICE_EMPTY, SLICE_EMPTY), ST_AUTH_FAILED);
    assert_int_equal(auth_password_check(SLICE_EMPTY, slice_sub(hash, 0, 59)), ST_AUTH_FAILED);
    /* Few invalid settings are enough, because each takes as long as a valid one. */
    for (size_t i = 0; i < AUTH_HASH_BYTES - 1; i += i < 9 ? 3 : i == 9 ? 20 : 1) {
        uint8_t bent[AUTH_HASH_BYTES];
        memcpy(bent, bytes, sizeof(bent));
        bent[i] = '*';
        assert_int_equal(auth_password_check(SLICE_EMPTY, slice_of(bent, sizeof(bent))),
                         ST_AUTH_FAILED);
    }
}

static int64_t cpu_ns(void)
{
    struct timespec at;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at), 0);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int64_t cost_of(struct slice password, struct slice hash)
{
    int64_t begun = cpu_ns();
    assert_int_equal(auth_password_check(password, hash), ST_AUTH_FAILED);
    return cpu_ns() - begun;
}

static void a_failure_costs_the_same_whatever_the_reason(void **state)
{
    (void)state;
    uint8_t bytes[AUTH_HASH_BYTES];
    assert_int_equal(auth_password_hash(SLICE_LITERAL("p"), salt, 10, bytes), ST_OK);
    struct slice hash = slice_of(bytes, sizeof(bytes));
    int64_t usual = cost_of(SLICE_LITERAL("q"), hash);
    bytes[10] = '*';
    assert_true(cost_of(SLICE_LITERAL("p"), hash) > usual / 10);
    assert_true(cost_of(SLICE_LITERAL("p"), SLICE_EMPTY) > usual / 10);
    assert_int_equal(auth_password_hash(SLICE_LITERAL("p"), salt, 10, bytes), ST_OK);
    assert_true(cost_of(slice_of("p\0q", 3), hash) > usual / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_right_password_matches),
        cmocka_unit_test(hashes_of_etcd_are_understood),
        cmocka_unit_test(a_password_with_a_nul_is_refused),
        cmocka_unit_test(a_password_too_long_for_bcrypt_is_refused),
        cmocka_unit_test(an_invalid_hash_matches_no_password),
        cmocka_unit_test(a_failure_costs_the_same_whatever_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
