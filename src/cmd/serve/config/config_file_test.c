#include "cmd/serve/config/config_file.h"

#include "cmd/serve/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct options options;
    struct serve_options values;
    struct config_file *file;
    struct error error;
    enum status status;
    char unknown[256]; /* "key:line " of each */
};

static void note(void *ctx, const char *key, size_t line)
{
    struct fixture *f = ctx;
    size_t len = strlen(f->unknown);
    snprintf(f->unknown + len, sizeof(f->unknown) - len, "%s:%zu ", key, line);
}

static void apply(struct fixture *f, struct slice text)
{
    *f = (struct fixture){0};
    options_init(&f->options, &serve_table, &f->values);
    f->status = config_file_of("vigil.yml", text, &f->file, &f->error);
    if (f->status == ST_OK)
        f->status = config_file_apply(
            f->file, &f->options, (struct config_file_listener){.fn = note, .ctx = f}, &f->error);
}

static void assert_refused(const char *text, const char *part)
{
    struct fixture f;
    apply(&f, slice_from_text(text));
    assert_int_not_equal(f.status, ST_OK);
    if (!strstr(f.error.text, part))
        fail_msg("\"%s\" says nothing of \"%s\"", f.error.text, part);
    config_file_close(f.file);
}

static void settings_of_every_kind_are_read(void **state)
{
    (void)state;
    struct fixture f;
    apply(&f, SLICE_LITERAL("# a comment\n"
                            "name: 'quoted'\n"
                            "listen-client-urls: http://127.0.0.1:1,http://127.0.0.1:2\n"
                            "log-outputs: [stderr, /var/log/v.log]\n"
                            "max-txn-ops: 77\n"
                            "quota-backend-bytes: 0x10\n"
                            "max-request-bytes: 2048\n"
                            "enable-grpc-gateway: off\n"
                            "auto-compaction-mode: revision\n"
                            "auto-compaction-retention: 1000\n"
                            "grpc-keepalive-min-time: 7000000000\n"
                            "grpc-keepalive-timeout: 9s\n"
                            "experimental-watch-progress-notify-interval: 1m\n"
                            "data-dir:\n"
                            "cors: ~\n"));
    assert_int_equal(f.status, ST_OK);
    assert_string_equal(f.values.name, "quoted");
    assert_string_equal(f.values.listen_client_urls, "http://127.0.0.1:1,http://127.0.0.1:2");
    assert_string_equal(f.values.log_outputs, "stderr,/var/log/v.log");
    assert_int_equal(f.values.max_txn_ops, 77);
    assert_int_equal(f.values.quota_backend_bytes, 16);
    assert_int_equal(f.values.max_request_bytes, 2048);
    assert_false(f.values.enable_grpc_gateway);
    assert_int_equal(f.values.auto_compaction_mode, SERVE_COMPACT_REVISION);
    assert_string_equal(f.values.auto_compaction_retention, "1000");
    assert_int_equal(f.values.grpc_keepalive_min_time_ns, INT64_C(7000000000));
    assert_int_equal(f.values.grpc_keepalive_timeout_ns, INT64_C(9000000000));
    assert_int_equal(f.values.watch_progress_notify_interval_ns, INT64_C(60000000000));
    assert_string_equal(f.values.data_dir, "");
    assert_string_equal(f.values.cors, "*");
    assert_string_equal(f.unknown, "");
    assert_int_equal(options_source(&f.options, "name"), OPTION_FROM_FILE);
    assert_int_equal(options_source(&f.options, "cors"), OPTION_FROM_DEFAULT);
    config_file_close(f.file);
}

static void blocks_of_tls_become_their_flags(void **state)
{
    (void)state;
    struct fixture f;
    apply(&f, SLICE_LITERAL("client-transport-security:\n"
                            "  cert-file: /c.pem\n"
                            "  key-file: /k.pem\n"
                            "  client-cert-auth: true\n"
                            "  trusted-ca-file: /ca.pem\n"
                            "  allowed-cn: [a, b]\n"
                            "  allowed-hostname: [h]\n"
                            "  name: not-here\n"
                            "peer-transport-security: {cert-file: /p.pem, allowed-cn: [x]}\n"
                            "socket-options: {reuse-port: true}\n"));
    assert_int_equal(f.status, ST_OK);
    assert_string_equal(f.values.cert_file, "/c.pem");
    assert_string_equal(f.values.key_file, "/k.pem");
    assert_true(f.values.client_cert_auth);
    assert_string_equal(f.values.trusted_ca_file, "/ca.pem");
    assert_string_equal(f.values.client_cert_allowed_cn, "a,b");
    assert_string_equal(f.values.client_cert_allowed_hostname, "h");
    assert_string_equal(f.values.name, "default");
    assert_int_equal(options_source(&f.options, "peer-cert-file"), OPTION_FROM_FILE);
    assert_int_equal(options_source(&f.options, "peer-cert-allowed-cn"), OPTION_FROM_FILE);
    assert_int_equal(options_source(&f.options, "socket-reuse-port"), OPTION_FROM_FILE);
    assert_string_equal(f.unknown, "name:8 ");
    config_file_close(f.file);
}

static void unknown_settings_are_skipped_and_reported(void **state)
{
    (void)state;
    struct fixture f;
    apply(&f, SLICE_LITERAL("foo: {a: [1, {b: c}], d: e}\nname: x\nversion: true\nbar: [1, 2]\n"
                            "config-file: /x\nname: y\n"));
    assert_int_equal(f.status, ST_OK);
    assert_string_equal(f.values.name, "y"); /* the last wins, as in etcd */
    assert_false(f.values.version);
    assert_string_equal(f.unknown, "foo:1 version:3 bar:4 config-file:5 ");
    config_file_close(f.file);
}

static void an_empty_file_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "---\n", "{}"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct fixture f;
        apply(&f, slice_from_text(texts[i]));
        assert_int_equal(f.status, ST_OK);
        config_file_close(f.file);
    }
}

static void mistakes_are_named_with_their_line(void **state)
{
    (void)state;
    assert_refused("name: a\nfoo: [1\nbar: 2\n",
                   "vigil.yml: yaml: line 3: did not find expected ',' or ']'");
    assert_refused("name: a\n\nmax-txn-ops: many\n", "line 3: invalid value \"many\"");
    assert_refused("name: {a: b}\n", "line 1: a text, a number or a list is expected");
    assert_refused("log-outputs: [a, [b]]\n", "line 1: a list of texts is expected");
    assert_refused("- a\n- b\n", "line 1: settings are expected");
    assert_refused("? [a]\n: b\n", "line 1: the name of a setting is expected");
    assert_refused("name: \"a\\0b\"\n", "line 1: a zero byte");
    assert_refused("name: \xff\n", "yaml: line 1");
    assert_refused("log-level: loud\n", "expected debug|info");
    assert_refused("  a: b\nname: c\n", "yaml: line 2: did not find expected");
    assert_refused("name: c\n---\nname: d\n", "line 2: a second document");
}

static void expanding_file_is_refused(void **state)
{
    (void)state;
    char deep[256] = "foo: ";
    memset(deep + strlen(deep), '[', CONFIG_FILE_DEPTH_MAX + 1);
    assert_refused(deep, "nested too deep");
    assert_refused("data-dir: &a x\nname: *a\n", "line 2: aliases are not read");
    struct fixture f;
    char *large = calloc(1, CONFIG_FILE_BYTES_MAX + 1);
    memset(large, '#', CONFIG_FILE_BYTES_MAX + 1);
    apply(&f, slice_of(large, CONFIG_FILE_BYTES_MAX + 1));
    assert_int_equal(f.status, ST_LIMIT);
    apply(&f, slice_of(large, CONFIG_FILE_BYTES_MAX));
    assert_int_equal(f.status, ST_OK);
    config_file_close(f.file);
    free(large);
}

static void unreadable_file_is_reported(void **state)
{
    (void)state;
    struct error error;
    struct config_file *file;
    assert_int_not_equal(config_file_open("/no/such/file", &file, &error), ST_OK);
    assert_string_equal(error.text, "open /no/such/file: No such file or directory");
    assert_int_not_equal(config_file_open("/", &file, &error), ST_OK);
    assert_non_null(strstr(error.text, "directory"));
}

static void a_file_may_be_applied_again(void **state)
{
    (void)state;
    struct fixture f;
    apply(&f, SLICE_LITERAL("name: x\ncipher-suites: [a, b]\n"));
    assert_int_equal(f.status, ST_OK);
    assert_int_equal(
        config_file_apply(f.file, &f.options, (struct config_file_listener){0}, &f.error), ST_OK);
    assert_string_equal(f.values.cipher_suites, "a,b");
    config_file_close(f.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_every_kind_are_read),
        cmocka_unit_test(blocks_of_tls_become_their_flags),
        cmocka_unit_test(unknown_settings_are_skipped_and_reported),
        cmocka_unit_test(an_empty_file_changes_nothing),
        cmocka_unit_test(mistakes_are_named_with_their_line),
        cmocka_unit_test(expanding_file_is_refused),
        cmocka_unit_test(unreadable_file_is_reported),
        cmocka_unit_test(a_file_may_be_applied_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
