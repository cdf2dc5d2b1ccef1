#include "etcd/v2/policy_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 16 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct slice text(const char *from)
{
    return slice_from_text(from);
}

/* A role from "read,read|write,write". */
static bool allows(const char *read, const char *write, const char *path, bool writes, bool below)
{
    struct slice patterns[] = {text(read), text(write)};
    struct v2_role role = {
        .name = text("r"),
        .rights = {.read = {&patterns[0], 1, true}, .write = {&patterns[1], 1, true}},
    };
    struct v2_access access = {.path = text(path), .write = writes, .recursive = below};
    return v2_role_allows(&role, &access);
}

static void patterns_match_a_key_or_a_prefix(void **state)
{
    (void)state;
    assert_true(allows("/a", "", "/a", false, false));
    assert_false(allows("/a", "", "/a/b", false, false));
    assert_false(allows("/a", "", "/ab", false, false));
    assert_false(allows("/a", "", "/", false, false));
    assert_true(allows("/a/*", "", "/a/b", false, false));
    assert_true(allows("/a/*", "", "/a/", false, false));
    assert_false(allows("/a/*", "", "/a", false, false));
    assert_false(allows("/a/*", "", "/b", false, false));
    assert_true(allows("/a*", "", "/ab/c", false, false));
    assert_true(allows("*", "", "", false, false));
    assert_false(allows("/*", "", "", false, false));
    assert_false(allows("/a*b", "", "/aXb", false, false)); /* a star counts only at the end */
    assert_false(allows("", "", "", false, false));
}

static void recursive_access_needs_a_star(void **state)
{
    (void)state;
    assert_false(allows("/a", "", "/a", false, true));
    assert_true(allows("/a*", "", "/a", false, true));
    assert_true(allows("/a/*", "", "/a/b", false, true));
}

static void reading_and_writing_are_separate(void **state)
{
    (void)state;
    assert_false(allows("/a", "/b", "/a", true, false));
    assert_true(allows("/a", "/b", "/b", true, false));
    assert_false(allows("/a", "/b", "/b", false, false));
}

static void missing_roles_permit_nothing(void **state)
{
    (void)state;
    struct v2_policy policy = {.enabled = true};
    struct slice names[] = {text("gone"), text("guest")};
    struct v2_names roles = {names, 2, true};
    struct v2_access access = {.path = text("/a")};
    assert_false(v2_policy_allows(&policy, &roles, &access));
    names[1] = text("root");
    assert_true(v2_policy_allows(&policy, &roles, &access));
}

/* -- The document -- */

static void put_user(struct v2_policy *policy, const char *name, const char *body)
{
    struct v2_refusal refusal = {0};
    struct v2_user_change change;
    struct v2_user user;
    bool created;
    assert_true(v2_user_change_read(&arena, text(body), text(name), &change, &refusal));
    change.user.hash = text("$2a$");
    assert_true(v2_user_put(&arena, policy, &change, &user, &created, &refusal));
}

static void policy_survives_writing_and_reading(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf first = {0};
    AUTO(buf_fini) struct buf second = {0};
    struct v2_refusal refusal = {0};
    struct v2_policy policy = {0}, again;
    put_user(&policy, "root", "{\"user\":\"root\",\"password\":\"p\"}");
    put_user(&policy, "z\"", "{\"user\":\"z\\\"\",\"password\":\"p\",\"roles\":[\"a\",\"b\"]}");
    put_user(&policy, "m", "{\"user\":\"m\",\"password\":\"p\"}");
    assert_true(v2_policy_enable(&arena, &policy, &refusal));
    assert_int_equal(v2_policy_write(&policy, &first), ST_OK);
    assert_int_equal(v2_policy_read(&arena, buf_slice(&first), &again), ST_OK);
    assert_int_equal(v2_policy_write(&again, &second), ST_OK);
    assert_true(slice_equal(buf_slice(&first), buf_slice(&second)));
    assert_true(again.enabled);
    assert_int_equal(again.user_count, 3);
    assert_true(v2_policy_user(&again, text("z\"")));
    assert_false(v2_policy_user(&again, text("m"))->roles.given);
    assert_true(v2_names_contain(&v2_policy_user(&again, text("root"))->roles, text("root")));
    assert_true(v2_policy_role(&again, text("guest")));
}

static void invalid_documents_are_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "x",
        "[]",
        "{}",
        "{\"enabled\":false}",
        "{\"enabled\":1,\"users\":[],\"roles\":[]}",
        "{\"enabled\":false,\"users\":{},\"roles\":[]}",
        "{\"enabled\":false,\"users\":[1],\"roles\":[]}",
        "{\"enabled\":false,\"users\":[],\"roles\":[null]}",
        "{\"enabled\":false,\"users\":[{\"user\":\"b\"},{\"user\":\"a\"}],\"roles\":[]}",
        "{\"enabled\":false,\"users\":[],\"roles\":[{\"role\":\"a\"},{\"role\":\"a\"}]}",
        "{\"enabled\":false,\"users\":[{\"user\":\"b\",\"roles\":[1]}],\"roles\":[]}",
        "{\"enabled\":false,\"users\":[],\"roles\":[{\"role\":\"a\",\"permissions\":{\"kv\":1}}]}",
    };
    struct v2_policy policy = {0};
    for (size_t i = 0; i < COUNT_OF(broken); i++)
        assert_int_equal(v2_policy_read(&arena, text(broken[i]), &policy), ST_MALFORMED);
    assert_int_equal(v2_policy_read(&arena, SLICE_EMPTY, &policy), ST_OK);
    assert_false(policy.enabled);
}

static void documents_past_the_limit_are_not_written(void **state)
{
    (void)state;
    struct v2_policy policy = {0};
    enum status status = ST_OK;
    size_t count = 0;
    while (status == ST_OK) {
        AUTO(buf_fini) struct buf to = {0};
        char name[V2_POLICY_NAME_BYTES_MAX + 1];
        snprintf(name, sizeof(name), "%0*zu", V2_POLICY_NAME_BYTES_MAX, count++);
        struct v2_user user = {.hash = text("h")};
        assert_int_equal(arena_dup(&arena, text(name), &user.name), ST_OK);
        assert_int_equal(v2_policy_add_user(&arena, &policy, &user), ST_OK);
        status = v2_policy_write(&policy, &to);
        assert_int_equal(status == ST_OK, to.len <= V2_POLICY_BYTES_MAX);
    }
    assert_int_equal(status, ST_LIMIT);
    assert_true(count > 200);
    struct slice body = {arena_calloc(&arena, 1, V2_POLICY_BYTES_MAX + 1), V2_POLICY_BYTES_MAX + 1};
    assert_int_equal(v2_policy_read(&arena, body, &policy), ST_LIMIT);
}

/* -- Bodies -- */

static unsigned user_code(const char *body)
{
    struct v2_refusal refusal = {0};
    struct v2_user_change change;
    bool fine = v2_user_change_read(&arena, text(body), text("u"), &change, &refusal);
    assert_int_equal(fine, refusal.code == 0);
    return refusal.code;
}

static unsigned role_code(const char *body)
{
    struct v2_refusal refusal = {0};
    struct v2_role_change change;
    bool fine = v2_role_change_read(&arena, text(body), text("u"), &change, &refusal);
    assert_int_equal(fine, refusal.code == 0);
    return refusal.code;
}

static void broken_bodies_are_refused(void **state)
{
    (void)state;
    static const char *const both[] = {"", "{", "[]", "1", "\"u\"", "{}", "null", "{\"user\":1}"};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_int_equal(user_code(both[i]), 400);
        assert_int_equal(role_code(both[i]), 400);
    }
    assert_int_equal(user_code("{\"user\":\"u\"}"), 0);
    assert_int_equal(user_code("{\"user\":\"v\"}"), 400);
    assert_int_equal(user_code("{\"user\":\"u\",\"roles\":\"a\"}"), 400);
    assert_int_equal(user_code("{\"user\":\"u\",\"password\":1}"), 400);
    assert_int_equal(user_code("{\"user\":\"u\",\"grant\":[\"a\"],\"roles\":[\"b\"]}"), 400);
    assert_int_equal(role_code("{\"role\":\"u\"}"), 0);
    assert_int_equal(role_code("{\"role\":\"u\",\"permissions\":[]}"), 400);
    assert_int_equal(role_code("{\"role\":\"u\",\"grant\":{\"kv\":{\"read\":{}}}}"), 400);
    assert_int_equal(role_code("{\"role\":\"u\",\"permissions\":{\"kv\":{\"read\":[\"/a\"]}},"
                               "\"revoke\":{\"kv\":{\"read\":[\"/a\"]}}}"),
                     400);
}

/* {"user":"u","grant":["","",…]} */
static unsigned code_of_list(size_t count)
{
    AUTO(buf_fini) struct buf body = {0};
    assert_int_equal(buf_append_text(&body, "{\"user\":\"u\",\"grant\":["), ST_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buf_append_format(&body, "%s\"%zu\"", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&body, SLICE_LITERAL("]}\0")), ST_OK);
    return user_code((const char *)body.ptr);
}

static void lists_and_names_past_the_limits_are_refused(void **state)
{
    (void)state;
    char body[V2_POLICY_NAME_BYTES_MAX + 64];
    assert_int_equal(code_of_list(V2_POLICY_NAMES_MAX), 0);
    assert_int_equal(code_of_list(V2_POLICY_NAMES_MAX + 1), 400);
    snprintf(body, sizeof(body), "{\"user\":\"u\",\"grant\":[\"%0*d\"]}", V2_POLICY_NAME_BYTES_MAX,
             0);
    assert_int_equal(user_code(body), 0);
    snprintf(body, sizeof(body), "{\"user\":\"u\",\"grant\":[\"%0*d\"]}",
             V2_POLICY_NAME_BYTES_MAX + 1, 0);
    assert_int_equal(user_code(body), 400);
}

static void grants_past_the_limit_are_refused(void **state)
{
    (void)state;
    struct slice names[V2_POLICY_NAMES_MAX], other = text("x"), which;
    char texts[V2_POLICY_NAMES_MAX][8];
    for (size_t i = 0; i < V2_POLICY_NAMES_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%zu", i);
        names[i] = text(texts[i]);
    }
    struct v2_names all = {names, V2_POLICY_NAMES_MAX, true}, one = {&other, 1, true}, none = {0};
    struct v2_names made;
    assert_int_equal(v2_names_grant(&arena, &none, &all, &made, &which), ST_OK);
    assert_int_equal(v2_names_grant(&arena, &made, &one, &made, &which), ST_LIMIT);
    assert_int_equal(v2_names_grant(&arena, &made, &all, &made, &which), ST_INVALID);
    assert_true(slice_equal(which, text("0")));
    assert_int_equal(v2_names_revoke(&arena, &made, &one, &made, &which), ST_INVALID);
    assert_int_equal(v2_names_revoke(&arena, &made, &one, &made, NULL), ST_OK);
    assert_int_equal(v2_names_revoke(&arena, &made, &all, &made, &which), ST_OK);
    assert_int_equal(made.count, 0);
    assert_true(made.given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_a_key_or_a_prefix),
        cmocka_unit_test(recursive_access_needs_a_star),
        cmocka_unit_test(reading_and_writing_are_separate),
        cmocka_unit_test(missing_roles_permit_nothing),
        cmocka_unit_test_setup_teardown(policy_survives_writing_and_reading, begin, end),
        cmocka_unit_test_setup_teardown(invalid_documents_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(documents_past_the_limit_are_not_written, begin, end),
        cmocka_unit_test_setup_teardown(broken_bodies_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(lists_and_names_past_the_limits_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(grants_past_the_limit_are_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
