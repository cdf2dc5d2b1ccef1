/* Requests for certificates and chains of certificates, and OpenSSL's allocations failing. */
#include "net/tls/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/tls/certs_test.h"

/* -- OpenSSL's memory -- */

static size_t fail_at; /* 0: never; 1: the next allocation fails */
static bool fail_on;   /* and all that follow */
static size_t allocations;

static bool fails(void)
{
    allocations++;
    if (fail_at == 1 && fail_on)
        return true;
    return fail_at && --fail_at == 0;
}

static void *on_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : malloc(size);
}

static void *on_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : realloc(ptr, size);
}

static void on_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    free(ptr);
}

/* -- Texts -- */

static char request_pem[4096], wrong_pem[4096], chain_pem[8192], groups_pem[4096];

static void take(BIO *from, char *to, size_t size)
{
    int len = BIO_read(from, to, (int)size - 1);
    assert_true(len > 0);
    to[len] = '\0';
    BIO_free(from);
}

/* A request that names one key and is signed by another if `wrong`. */
static void make_request(char *to, size_t size, bool wrong)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    X509_REQ *request = X509_REQ_new();
    BIO *out = BIO_new(BIO_s_mem());
    assert_true(X509_REQ_set_pubkey(request, key));
    assert_true(X509_REQ_sign(request, wrong ? other : key, EVP_sha256()) > 0);
    assert_true(PEM_write_bio_X509_REQ(out, request));
    take(out, to, size);
    X509_REQ_free(request);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

/* A request with three organizations. */
static void make_groups(void)
{
    static const char *const names[] = {"one", "system:masters", "three"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509_REQ *request = X509_REQ_new();
    X509_NAME *subject = X509_REQ_get_subject_name(request);
    BIO *out = BIO_new(BIO_s_mem());
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_true(X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_UTF8,
                                               (const unsigned char *)names[i], -1, -1, 0));
    assert_true(X509_REQ_set_pubkey(request, key));
    assert_true(X509_REQ_sign(request, key, EVP_sha256()) > 0);
    assert_true(PEM_write_bio_X509_REQ(out, request));
    take(out, groups_pem, sizeof(groups_pem));
    X509_REQ_free(request);
    EVP_PKEY_free(key);
}

static void make_chain(void)
{
    struct test_identity root =
        test_identity_make(TEST_WISH(.common_name = "root", .authority = true), NULL);
    BIO *out = BIO_new(BIO_s_mem());
    for (int i = 0; i < 2; i++)
        assert_true(PEM_write_bio_X509(out, root.certificate));
    take(out, chain_pem, sizeof(chain_pem));
    test_identity_free(&root);
}

static void copy(char *to, size_t size, const char *format, const char *text)
{
    assert_true((size_t)snprintf(to, size, format, text) < size);
}

/* -- Tests -- */

static void requests_are_verified(void **state)
{
    char damaged[4096];
    (void)state;
    assert_int_equal(tls_request_check(slice_from_text(request_pem)), TLS_REQUEST_FINE);
    assert_int_equal(tls_request_check(slice_from_text(wrong_pem)), TLS_REQUEST_EC_SIGNATURE);
    assert_int_equal(tls_request_check(slice_from_text(chain_pem)), TLS_REQUEST_OTHER_PEM);
    assert_int_equal(tls_request_check(SLICE_EMPTY), TLS_REQUEST_OTHER_PEM);
    assert_int_equal(tls_request_check(SLICE_LITERAL("text")), TLS_REQUEST_OTHER_PEM);
    copy(damaged, sizeof(damaged), "%s", request_pem);
    memset(strchr(damaged, '\n') + 1, 'A', 4);
    assert_int_equal(tls_request_check(slice_from_text(damaged)), TLS_REQUEST_DAMAGED);
}

static void chains_are_read(void **state)
{
    char type[TLS_PEM_TYPE_BYTES], damaged[sizeof(chain_pem)];
    (void)state;
    assert_int_equal(tls_chain_check(slice_from_text(chain_pem), type), TLS_CHAIN_FINE);
    assert_int_equal(tls_chain_check(SLICE_EMPTY, type), TLS_CHAIN_EMPTY);
    assert_int_equal(tls_chain_check(slice_from_text(request_pem), type), TLS_CHAIN_OTHER_PEM);
    assert_string_equal(type, "CERTIFICATE REQUEST");
    copy(damaged, sizeof(damaged), "%s", chain_pem);
    memset(strchr(damaged, '\n') + 1, 'A', 4);
    assert_int_equal(tls_chain_check(slice_from_text(damaged), type), TLS_CHAIN_DAMAGED);
}

static int check_chain(const char *pem)
{
    char type[TLS_PEM_TYPE_BYTES];
    return (int)tls_chain_check(slice_from_text(pem), type);
}

static int check_request(const char *pem)
{
    return (int)tls_request_check(slice_from_text(pem));
}

static bool has_organization(const char *pem, const char *name)
{
    bool has;
    assert_int_equal(
        tls_request_has_organization(slice_from_text(pem), slice_from_text(name), &has),
        TLS_REQUEST_FINE);
    return has;
}

static void organizations_are_found(void **state)
{
    bool has;
    (void)state;
    assert_true(has_organization(groups_pem, "one"));
    assert_true(has_organization(groups_pem, "system:masters"));
    assert_true(has_organization(groups_pem, "three"));
    assert_false(has_organization(groups_pem, "two"));
    assert_false(has_organization(groups_pem, "system:master"));
    assert_false(has_organization(request_pem, "one"));
    assert_int_equal(tls_request_has_organization(slice_from_text(chain_pem), SLICE_EMPTY, &has),
                     TLS_REQUEST_OTHER_PEM);
}

/* 100: it has the organization. */
static int look_for_masters(const char *pem)
{
    bool has = false;
    enum tls_request result =
        tls_request_has_organization(slice_from_text(pem), SLICE_LITERAL("system:masters"), &has);
    return has ? 100 : (int)result;
}

enum { ALL_OF = 100, STEP = 23 };

/* Allocations fail, alone and with all that follow: each of the first, which read the text, and
 * every so many of those with which OpenSSL finds its algorithms. */
static void starve(int (*check)(const char *pem), const char *pem, int no_memory)
{
    int expected = check(pem); /* what OpenSSL keeps for good is there afterwards */
    for (int on = 0; on < 2; on++) {
        allocations = 0;
        assert_int_equal(check(pem), expected);
        size_t total = allocations;
        assert_true(total > 2);
        fail_on = on;
        for (size_t n = 1; n <= total; n += n < ALL_OF ? 1 : STEP) {
            fail_at = n;
            int result = check(pem);
            fail_at = 0;
            if (result != expected && result != no_memory)
                fail_msg("allocation %zu of %zu: %d instead of %d", n, total, result, expected);
        }
        fail_on = false;
    }
}

static void a_failed_allocation_is_not_blamed_on_the_client(void **state)
{
    char mixed[sizeof(chain_pem) + sizeof(request_pem)];
    (void)state;
    starve(check_request, request_pem, TLS_REQUEST_NO_MEMORY);
    starve(check_request, wrong_pem, TLS_REQUEST_NO_MEMORY);
    starve(check_request, chain_pem, TLS_REQUEST_NO_MEMORY);
    starve(check_chain, chain_pem, TLS_CHAIN_NO_MEMORY);
    starve(look_for_masters, groups_pem, TLS_REQUEST_NO_MEMORY);
    starve(look_for_masters, request_pem, TLS_REQUEST_NO_MEMORY);
    copy(mixed, sizeof(mixed), "%s", chain_pem);
    copy(mixed + strlen(mixed), sizeof(request_pem), "%s", request_pem);
    starve(check_chain, mixed, TLS_CHAIN_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_verified),
        cmocka_unit_test(chains_are_read),
        cmocka_unit_test(organizations_are_found),
        cmocka_unit_test(a_failed_allocation_is_not_blamed_on_the_client),
    };
    if (!CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free))
        return 1;
    make_request(request_pem, sizeof(request_pem), false);
    make_request(wrong_pem, sizeof(wrong_pem), true);
    make_groups();
    make_chain();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
