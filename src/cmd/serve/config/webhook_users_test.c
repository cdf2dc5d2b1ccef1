#include "cmd/serve/config/webhook_users.h"

#include "base/buf.h"
#include "base/temp_dir_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char dir[TEMP_DIR_BYTES];
static char path[TEMP_DIR_BYTES + 16];
static struct arena arena;
static struct kube_webhook_users users;
static struct error error;

static int setup(void **state)
{
    (void)state;
    temp_dir_make_fast("users", dir);
    snprintf(path, sizeof(path), "%s/config", dir);
    arena_init(&arena, NULL, 0, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    temp_dir_remove(dir);
    return 0;
}

static enum status read_users(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return webhook_users_read(path, &arena, &users, &error);
}

static void accepted(const char *text)
{
    if (read_users(text) != ST_OK)
        fail_msg("%s", error.text);
}

/* The error begins with the path of the file. */
static void refused(const char *text, const char *why)
{
    assert_int_not_equal(read_users(text), ST_OK);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, why))
        assert_string_equal(error.text, why);
}

/* "name: value, …" of all fields. */
static const char *fields_of(const struct kube_webhook_credentials *row)
{
    static char text[512];
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < row->field_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s: %.*s", i ? ", " : "",
                                SLICE_ARGS(row->fields[i].name), SLICE_ARGS(row->fields[i].value));
    return text;
}

static void every_kind_of_user_is_read(void **state)
{
    (void)state;
    accepted("users:\n"
             "- {name: '*', user: {token: t, as: bob, as-groups: [g]}}\n"
             "- {name: 'a.b.svc:8443', user: {username: u, password: p}}\n"
             "- {name: '*.b.svc', user: {tokenFile: token, token: first}}\n"
             "- {name: c, user: {client-certificate: c.pem, client-key-data: S0VZ}}\n"
             "- {name: nothing, user: {}}\n"
             "contexts: [{name: x, context: {user: c}}]\n"
             "current-context: x\n");
    assert_int_equal(users.count, 5);
    assert_ptr_equal(users.others, &users.rows[3]);
    assert_true(slice_is(users.rows[0].hosts, "*"));
    assert_string_equal(fields_of(&users.rows[0]),
                        "authorization: Bearer t, impersonate-user: bob, impersonate-group: g");
    assert_string_equal(users.rows[0].token_file, "");
    assert_string_equal(fields_of(&users.rows[1]), "authorization: Basic dTpw");
    assert_string_equal(fields_of(&users.rows[2]), "");
    assert_non_null(strstr(users.rows[2].token_file, "/token"));
    assert_string_equal(users.rows[2].token, "first");
    assert_non_null(strstr(users.rows[3].cert_file, "/c.pem"));
    assert_true(slice_is(users.rows[3].key_pem, "KEY"));
    assert_string_equal(users.rows[3].key_file, "");
    assert_int_equal(users.rows[4].field_count, 0);
}

static void what_cannot_be_done_is_refused(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf many = {0};
    assert_int_equal(webhook_users_read("/nowhere", &arena, &users, &error), ST_NOT_FOUND);
    refused("users: [{name: a, user: {exec: {command: aws, apiVersion: "
            "client.authentication.k8s.io/v1}}}]",
            "user \"a\": it needs the exec plugin aws, which is not run for webhooks");
    refused("users: [{name: a, user: {auth-provider: {name: gcp}}}]", "has an auth-provider");
    refused("users: [{name: a, user: {token: \"a\\nb\"}}]", "the token contains line ends");
    refused("users: [{name: a, user: {token: t, as: \"b\\nc\"}}]", "contains line ends");
    refused("[]", "not a kubeconfig file");
    assert_int_equal(buf_append_text(&many, "users: [{name: a, user: {as: b, as-groups: [g"),
                     ST_OK);
    for (int i = 0; i < KUBE_WEBHOOK_FIELDS_MAX; i++)
        assert_int_equal(buf_append_text(&many, ", g"), ST_OK);
    assert_int_equal(buf_append(&many, slice_of("]}}]", 5)), ST_OK);
    refused((const char *)many.ptr, "it impersonates with more than 11 header fields");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind_of_user_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_done_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
