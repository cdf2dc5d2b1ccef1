#include "net/tls/self_signed.h"

#include "base/temp_dir_test.h"
#include "net/tls/server_context.h"
#include "net/tls/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct fixture {
    char base[TEMP_DIR_BYTES], directory[TEMP_DIR_BYTES + 32];
    struct address address;
    struct tls_auto result;
    struct error error;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    temp_dir_make("auto", f->base);
    snprintf(f->directory, sizeof(f->directory), "%s/fixtures/client", f->base);
    assert_int_equal(address_from_host(SLICE_LITERAL("192.0.2.7"), 1, &f->address), ST_OK);
}

static void fixture_fini(struct fixture *f)
{
    char path[TEMP_DIR_BYTES + 16];
    unlink(f->result.cert_file);
    unlink(f->result.key_file);
    rmdir(f->directory);
    snprintf(path, sizeof(path), "%s/fixtures", f->base);
    rmdir(path);
    assert_int_equal(rmdir(f->base), 0); /* nothing else was created */
}

static enum status open_auto(struct fixture *f, int64_t years)
{
    return tls_auto_open(f->directory, &f->address, 1, 1700000000, years, &f->result, &f->error);
}

static X509 *read_certificate(const struct fixture *f)
{
    FILE *file = fopen(f->result.cert_file, "r");
    assert_non_null(file);
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    assert_non_null(certificate);
    return certificate;
}

static void certificate_is_made_once_for_names_addresses_and_years(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(open_auto(&f, 2), ST_OK);
    assert_true(f.result.made);
    struct stat key;
    assert_int_equal(stat(f.result.key_file, &key), 0);
    assert_int_equal(key.st_mode & 0777, 0600);
    X509 *first = read_certificate(&f);
    assert_int_equal(X509_check_host(first, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(first, "192.0.2.7", 0), 1);
    assert_int_equal(X509_check_ip_asc(first, "::1", 0), 1);
    assert_int_equal(X509_check_host(first, "example.com", 0, 0, NULL), 0);
    time_t end = 1700000000 + 2 * 365 * 24 * 3600;
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(first), &end),
                     -1); /* equality counts as before */
    end--;
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(first), &end), 1);
    assert_int_equal(open_auto(&f, 5), ST_OK);
    assert_false(f.result.made);
    X509 *second = read_certificate(&f);
    assert_int_equal(X509_cmp(first, second), 0);
    X509_free(first);
    X509_free(second);
    fixture_fini(&f);
}

static void created_certificate_can_be_used_by_a_server(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(open_auto(&f, 1), ST_OK);
    struct tls_options options = TLS_OPTIONS_NONE;
    options.cert_file = f.result.cert_file;
    options.key_file = f.result.key_file;
    struct tls_source *source;
    struct tls_recipe recipe;
    assert_int_equal(tls_server_recipe(&options, &recipe, &f.error), ST_OK);
    assert_int_equal(tls_source_new(&recipe, (struct tls_source_hooks){0}, &source, &f.error),
                     ST_OK);
    tls_source_free(source);
    fixture_fini(&f);
}

static void missing_years_or_directory_are_an_error_with_a_message(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(open_auto(&f, 0), ST_INVALID);
    assert_string_equal(f.error.text,
                        "selfSignedCertValidity is invalid,it should be greater than 0");
    snprintf(f.directory, sizeof(f.directory), "/dev/null/x");
    assert_int_not_equal(open_auto(&f, 1), ST_OK);
    assert_non_null(strstr(f.error.text, "/dev/null"));
    assert_int_equal(rmdir(f.base), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_is_made_once_for_names_addresses_and_years),
        cmocka_unit_test(created_certificate_can_be_used_by_a_server),
        cmocka_unit_test(missing_years_or_directory_are_an_error_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
