#include "kubeclient/connect/exec_credential.h"

#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define V1 "client.authentication.k8s.io/v1"
#define HEAD "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\""

/* -- What a plugin is given -- */

static void expect_written(const struct kubeconfig *config, const char *ca, const char *wanted)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(exec_credential_write(&text, config, slice_from_text(ca)), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, wanted);
}

static void plugin_is_not_interactive(void **state)
{
    (void)state;
    struct kubeconfig config = {.server = "https://s", .exec.api_version = V1};
    expect_written(&config, "CA", HEAD ",\"spec\":{\"interactive\":false}}");
}

/* The same fields in the same order as client-go. */
static void cluster_is_described_on_request(void **state)
{
    (void)state;
    struct kubeconfig config = {
        .server = "https://s",
        .exec = {.api_version = V1, .wants_cluster_info = true},
    };
    expect_written(&config, "",
                   HEAD ",\"spec\":{\"cluster\":{\"server\":\"https://s\",\"config\":null},"
                        "\"interactive\":false}}");
    config.tls_server_name = "kube";
    config.insecure_skip_verify = config.disable_compression = true;
    config.proxy_url = "http://p";
    config.exec.cluster_config = SLICE_LITERAL("{\"audience\":\"x\"}");
    expect_written(&config, "CA",
                   HEAD ",\"spec\":{\"cluster\":{\"server\":\"https://s\","
                        "\"tls-server-name\":\"kube\",\"insecure-skip-tls-verify\":true,"
                        "\"certificate-authority-data\":\"Q0E=\",\"proxy-url\":\"http://p\","
                        "\"disable-compression\":true,\"config\":{\"audience\":\"x\"}},"
                        "\"interactive\":false}}");
}

static void write_all(void *ctx)
{
    AUTO(buf_fini) struct buf text = {0};
    bool may_fail = memory_fail_at != 0;
    enum status status = exec_credential_write(&text, ctx, SLICE_LITERAL("CA"));
    assert_true(status == ST_OK || (may_fail && status == ST_NOMEM));
}

static void missing_memory_for_writing_is_reported(void **state)
{
    (void)state;
    struct kubeconfig config = {
        .server = "https://s",
        .exec = {.api_version = V1, .wants_cluster_info = true},
    };
    assert_true(each_allocation_fails(write_all, &config) > 1);
}

/* -- What it printed -- */

static enum status read_text(const char *text, size_t len, struct exec_credential *found,
                             struct error *error)
{
    static struct arena arena;
    arena_fini(&arena);
    arena_init(&arena, NULL, 0, EXEC_CREDENTIAL_ARENA_BYTES_MAX);
    enum status status = exec_credential_read(&arena, slice_of(text, len), V1, found, error);
    if (status != ST_OK)
        arena_fini(&arena);
    return status;
}

static struct exec_credential read_good(const char *text)
{
    struct exec_credential found;
    struct error error = {0};
    if (read_text(text, strlen(text), &found, &error) != ST_OK)
        assert_string_equal(error.text, "");
    return found;
}

static void release(void)
{
    struct exec_credential found;
    struct error error;
    assert_int_equal(read_text("", 0, &found, &error), ST_MALFORMED);
}

static void expect_slice(struct slice found, const char *wanted)
{
    assert_true(slice_equal(found, slice_from_text(wanted)));
}

static const char everything[] = HEAD
    ",\"status\":{\"expirationTimestamp\":\"2026-11-16T08:00:00.5+01:00\",\"token\":\"a\\u0062\","
    "\"clientCertificateData\":\"C\\n\",\"clientKeyData\":\"K\\n\"}}";

static void token_certificate_and_expiry_are_read(void **state)
{
    (void)state;
    struct exec_credential found = read_good(everything);
    expect_slice(found.token, "ab");
    expect_slice(found.cert, "C\n");
    expect_slice(found.key, "K\n");
    assert_int_equal(found.expires_ns, INT64_C(1794812400) * NS_PER_S + NS_PER_S / 2);
    release();
}

static void token_alone_never_expires(void **state)
{
    (void)state;
    struct exec_credential found = read_good(" \n" HEAD ",\"status\":{\"token\":\"t\"}}\n");
    expect_slice(found.token, "t");
    assert_int_equal(found.cert.len, 0);
    assert_int_equal(found.expires_ns, CLOCK_NEVER);
    found = read_good(HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":null,"
                           "\"clientKeyData\":null}}");
    assert_int_equal(found.expires_ns, CLOCK_NEVER);
    release();
}

static void yaml_is_read_too(void **state)
{
    (void)state;
    struct exec_credential found =
        read_good("kind: ExecCredential\napiVersion: " V1 "\nstatus:\n  token: t\n");
    expect_slice(found.token, "t");
    release();
}

static int64_t expiry_of(const char *time)
{
    char text[256];
    snprintf(text, sizeof(text),
             HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"%s\"}}", time);
    return read_good(text).expires_ns;
}

static void times_beyond_nanoseconds_are_never_or_past(void **state)
{
    (void)state;
    assert_int_equal(expiry_of("9999-12-31T23:59:59Z"), CLOCK_NEVER);
    assert_int_equal(expiry_of("0001-01-01T00:00:00Z"), CLOCK_NEVER); /* Go's zero time */
    assert_int_equal(expiry_of("0002-01-01T00:00:00Z"), 0);
    assert_int_equal(expiry_of("1970-01-01T00:00:01Z"), NS_PER_S);
    release();
}

static void expect_bad(const char *text, const char *wanted)
{
    struct exec_credential found;
    struct error error = {0};
    assert_int_equal(read_text(text, strlen(text), &found, &error), ST_MALFORMED);
    if (!strstr(error.text, wanted))
        assert_string_equal(error.text, wanted);
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    expect_bad("", "it printed nothing");
    expect_bad(" \n", "it printed nothing");
    expect_bad("{", "it did not print an ExecCredential: unexpected EOF");
    expect_bad("hello", "it did not print an ExecCredential");
    expect_bad("[]", "it did not print an ExecCredential");
    expect_bad("a: b: c", "it did not print an ExecCredential: ");
    expect_bad("{}", "an object of kind \"\"");
    expect_bad("{\"kind\":1}", "the kind that it printed is not a string");
    expect_bad("{\"kind\":\"Pod\"}", "an object of kind \"Pod\"");
    expect_bad("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\"}",
               "configured to use " V1 ", but it printed version \"" V1 "beta1\"");
    expect_bad(HEAD "}", "has no status");
    expect_bad(HEAD ",\"status\":null}", "has no status");
    expect_bad(HEAD ",\"status\":{}}", "neither a token nor a certificate");
    expect_bad(HEAD ",\"status\":{\"token\":1}}", "the token that it printed is not a string");
    expect_bad(HEAD ",\"status\":{\"token\":\"\"}}", "neither a token nor a certificate");
    expect_bad(HEAD ",\"status\":{\"token\":\"a\\r\\nb\"}}", "contains line ends");
    expect_bad(HEAD ",\"status\":{\"token\":\"a\\u0000b\"}}", "contains line ends or zeros");
    expect_bad(HEAD ",\"status\":{\"token\":\"t\",\"clientKeyData\":\"k\"}}", "not both");
    expect_bad(HEAD ",\"status\":{\"clientCertificateData\":\"c\"}}", "not both");
    expect_bad(HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}",
               "the expirationTimestamp that it printed is invalid");
    expect_bad(HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":1}}", "is not a string");
}

static void output_that_is_cut_off_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(everything) - 1; len++) {
        struct exec_credential found;
        struct error error = {0};
        assert_int_equal(read_text(everything, len, &found, &error), ST_MALFORMED);
    }
}

/* As much nesting and as many values as fit into the output of a plugin. */
static void hostile_output_is_refused(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    struct exec_credential found;
    struct error error = {0};
    assert_non_null(text);
    static const char *const patterns[] = {"[",  "{\"a\":", "{\"a\":[1,1,1,1,1,",
                                           "- ", "\xff",    "a: b\n"};
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        size_t len = strlen(patterns[i]);
        for (size_t at = 0; at < BYTES; at++)
            text[at] = patterns[i][at % len];
        enum status status = read_text(text, BYTES, &found, &error);
        assert_true(status == ST_MALFORMED || status == ST_NOMEM);
    }
    free(text);
}

static void read_everything(void *ctx)
{
    (void)ctx;
    struct exec_credential found;
    struct error error = {0};
    bool may_fail = memory_fail_at != 0;
    enum status status = read_text(everything, sizeof(everything) - 1, &found, &error);
    assert_true(status == ST_OK || (may_fail && status == ST_NOMEM));
    release();
}

static void missing_memory_for_reading_is_reported(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(read_everything, NULL) > 0);
}

static void two_versions_are_known(void **state)
{
    (void)state;
    assert_true(exec_credential_version_known(V1));
    assert_true(exec_credential_version_known(V1 "beta1"));
    assert_false(exec_credential_version_known(V1 "alpha1"));
    assert_false(exec_credential_version_known(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugin_is_not_interactive),
        cmocka_unit_test(cluster_is_described_on_request),
        cmocka_unit_test(missing_memory_for_writing_is_reported),
        cmocka_unit_test(token_certificate_and_expiry_are_read),
        cmocka_unit_test(token_alone_never_expires),
        cmocka_unit_test(yaml_is_read_too),
        cmocka_unit_test(times_beyond_nanoseconds_are_never_or_past),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(output_that_is_cut_off_is_refused),
        cmocka_unit_test(hostile_output_is_refused),
        cmocka_unit_test(missing_memory_for_reading_is_reported),
        cmocka_unit_test(two_versions_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
