#include "base/failing_memory_test.h"
#include "client/http/token_file.h"
#include "kubeclient/connect/credentials_fixture_test.h"

static void write_token(const struct fixture *f, const char *token)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_true(fputs(token, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* -- Fixed -- */

static void fixed_credentials_never_change(void **state)
{
    struct fixture *f = *state;
    f->config.token = "t-1";
    assert_int_equal(make(f), ST_OK);
    expect(f, "Bearer t-1");
    uint64_t generation = credentials_generation(f->credentials);
    assert_false(credentials_refused(f->credentials, generation));
    expect(f, "Bearer t-1");
    assert_int_equal(credentials_cert(f->credentials).len, 0);
    assert_int_equal(credentials_key(f->credentials).len, 0);
}

static void password_is_sent_in_base64(void **state)
{
    struct fixture *f = *state;
    f->config.user = "ann";
    f->config.password = "s:e";
    assert_int_equal(make(f), ST_OK);
    expect(f, "Basic YW5uOnM6ZQ==");
    credentials_free(TAKE(f->credentials));
    f->config.user = NULL;
    assert_int_equal(make(f), ST_OK);
    expect(f, "Basic OnM6ZQ==");
}

static void without_credentials_nothing_is_sent(void **state)
{
    struct fixture *f = *state;
    size_t count;
    assert_int_equal(make(f), ST_OK);
    expect(f, "");
    credentials_fields(f->credentials, &count);
    assert_int_equal(count, 0);
}

static void token_and_password_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    f->config.token = "t";
    f->config.password = "p";
    expect_refusal(f, "a token, or a user and password, but not both");
}

static void token_cannot_bring_another_field(void **state)
{
    struct fixture *f = *state;
    f->config.token = "t\r\nimpersonate-user: root";
    expect_refusal(f, "line ends");
}

/* -- Token files -- */

static void token_file_is_read_every_50_seconds(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    write_token(f, " one\n");
    assert_int_equal(make(f), ST_OK);
    expect(f, "Bearer one");
    uint64_t generation = credentials_generation(f->credentials);
    write_token(f, "two");
    advance(f, TOKEN_FILE_VALID_NS - 1);
    expect(f, "Bearer one");
    assert_int_equal(credentials_generation(f->credentials), generation);
    advance(f, 1);
    expect(f, "Bearer two");
    assert_int_not_equal(credentials_generation(f->credentials), generation);
    generation = credentials_generation(f->credentials);
    advance(f, TOKEN_FILE_VALID_NS);
    expect(f, "Bearer two");
    assert_int_equal(credentials_generation(f->credentials), generation);
}

static void unreadable_file_keeps_the_last_token(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    write_token(f, "one");
    assert_int_equal(make(f), ST_OK);
    assert_int_equal(unlink(f->path), 0);
    advance(f, TOKEN_FILE_VALID_NS);
    expect(f, "Bearer one");
    write_token(f, " \n"); /* while it is being written */
    advance(f, TOKEN_FILE_PAUSE_NS);
    expect(f, "Bearer one");
    write_token(f, "a\nb");
    advance(f, TOKEN_FILE_PAUSE_NS);
    expect(f, "Bearer one");
    write_token(f, "two");
    advance(f, TOKEN_FILE_PAUSE_NS - 1); /* it is not tried at every request */
    expect(f, "Bearer one");
    advance(f, 1);
    expect(f, "Bearer two");
}

static void token_is_used_until_the_file_can_be_read(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    f->config.token = "first";
    assert_int_equal(make(f), ST_OK);
    expect(f, "Bearer first");
    write_token(f, "two");
    advance(f, TOKEN_FILE_PAUSE_NS);
    expect(f, "Bearer two");
    assert_int_equal(unlink(f->path), 0);
    advance(f, TOKEN_FILE_VALID_NS);
    expect(f, "Bearer two");
}

static void file_without_a_token_is_refused(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    expect_refusal(f, "/token: No such file");
    write_token(f, "\t\n");
    expect_refusal(f, "/token: there is no token in the file");
    write_token(f, "a\nb");
    expect_refusal(f, "/token: the token contains line ends");
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    for (int i = 0; i <= TOKEN_FILE_BYTES_MAX; i++)
        assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    expect_refusal(f, "/token: longer than 65536 bytes");
}

/* A token that was replaced early is found at once; a wrong one is not read at every request. */
static void refused_token_is_read_again(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    write_token(f, "one");
    assert_int_equal(make(f), ST_OK);
    uint64_t generation = credentials_generation(f->credentials);
    advance(f, TOKEN_FILE_PAUSE_NS);
    assert_false(credentials_refused(f->credentials, generation));
    write_token(f, "two");
    assert_false(credentials_refused(f->credentials, generation)); /* it was just read */
    advance(f, TOKEN_FILE_PAUSE_NS);
    assert_true(credentials_refused(f->credentials, generation));
    expect(f, "Bearer two");
    assert_true(credentials_refused(f->credentials, generation)); /* by a request sent before */
}

/* -- Impersonation -- */

static void expect_field(const struct http_field *field, const char *name, const char *value)
{
    assert_true(slice_equal(field->name, slice_from_text(name)));
    assert_true(slice_equal(field->value, slice_from_text(value)));
}

static void impersonated_user_is_sent(void **state)
{
    struct fixture *f = *state;
    static const char *const groups[] = {"dev", "ops", NULL};
    static const struct kubeconfig_extra extra[] = {
        {"Scopes", "a"}, {"Scopes", "b"}, {"x.y/z%", "c d"}, {"\xc3\xbc-_~!|", ""}};
    size_t count;
    f->config.impersonate = (struct kubeconfig_impersonation){
        .user = "bob", .uid = "7", .groups = groups, .extra = extra, .extra_count = 4};
    assert_int_equal(make(f), ST_OK);
    const struct http_field *fields = credentials_fields(f->credentials, &count);
    assert_int_equal(count, 8);
    expect_field(&fields[0], "impersonate-user", "bob");
    expect_field(&fields[1], "impersonate-uid", "7");
    expect_field(&fields[2], "impersonate-group", "dev");
    expect_field(&fields[3], "impersonate-group", "ops");
    expect_field(&fields[4], "impersonate-extra-scopes", "a");
    expect_field(&fields[5], "impersonate-extra-scopes", "b");
    expect_field(&fields[6], "impersonate-extra-x.y%2fz%25", "c d");
    expect_field(&fields[7], "impersonate-extra-%c3%bc-_~!|", "");
    expect(f, "");
}

static void impersonation_cannot_bring_another_field(void **state)
{
    struct fixture *f = *state;
    f->config.impersonate.user = "bob\r\nx: y";
    expect_refusal(f, "\"impersonate-user\" contains line ends");
}

/* -- Missing memory -- */

static void use_everything(void *ctx)
{
    static const struct kubeconfig_extra extra[] = {{"a", "b"}};
    struct fixture *f = ctx;
    struct credentials_waiter waiter = {0};
    struct slice found;
    memory_exempt = true;
    write_token(f, "one");
    memory_exempt = false;
    f->config.impersonate =
        (struct kubeconfig_impersonation){.user = "bob", .extra = extra, .extra_count = 1};
    enum status status = make(f);
    memory_exempt = true;
    write_token(f, "two");
    memory_exempt = false;
    if (status == ST_OK) {
        advance(f, TOKEN_FILE_VALID_NS);
        assert_int_equal(credentials_get(f->credentials, &waiter, &found, &f->error), ST_OK);
        memory_fail_at = 0;
        advance(f, TOKEN_FILE_VALID_NS);
        expect(f, "Bearer two");
        credentials_free(TAKE(f->credentials));
    } else {
        assert_int_equal(status, ST_NOMEM);
        assert_non_null(strstr(f->error.text, "out of memory"));
    }
}

static void missing_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = f->path;
    assert_true(each_allocation_fails(use_everything, f) > 4);
    f->config.token_file = NULL;
}

static void use_password(void *ctx)
{
    struct fixture *f = ctx;
    enum status status = make(f);
    if (status == ST_OK) {
        expect(f, "Basic YW5uOg==");
        credentials_free(TAKE(f->credentials));
    } else {
        assert_int_equal(status, ST_NOMEM);
    }
}

static void missing_memory_for_a_password_is_reported(void **state)
{
    struct fixture *f = *state;
    f->config.user = "ann";
    assert_true(each_allocation_fails(use_password, f) > 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fixed_credentials_never_change),
        TEST(password_is_sent_in_base64),
        TEST(without_credentials_nothing_is_sent),
        TEST(token_and_password_exclude_each_other),
        TEST(token_cannot_bring_another_field),
        TEST(token_file_is_read_every_50_seconds),
        TEST(unreadable_file_keeps_the_last_token),
        TEST(token_is_used_until_the_file_can_be_read),
        TEST(file_without_a_token_is_refused),
        TEST(refused_token_is_read_again),
        TEST(impersonated_user_is_sent),
        TEST(impersonation_cannot_bring_another_field),
        TEST(missing_memory_is_reported),
        TEST(missing_memory_for_a_password_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
