#include "auth/fixture_test.h"

enum {
    READ = PB_PERMISSION_TYPE_READ,
    WRITE = PB_PERMISSION_TYPE_WRITE,
    RW = PB_PERMISSION_TYPE_READWRITE
};

static enum status ask_as(struct world *w, struct auth_principal principal, enum auth_access access,
                          const char *key, const char *end)
{
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    auth_rights_check_order(rights);
    return auth_rights_check(rights, &principal, access, TEXT(key), end_of(end));
}

static enum status ask(struct world *w, const char *user, enum auth_access access, const char *key,
                       const char *end)
{
    return ask_as(w, who(w, user), access, key, end);
}

#define ALLOWED(...) assert_int_equal(ask(w, __VA_ARGS__), ST_OK)
#define DENIED(...) assert_int_equal(ask(w, __VA_ARGS__), ST_PERMISSION_DENIED)

static void everything_is_allowed_while_authentication_is_disabled(void **state)
{
    struct world *w = *state;
    const struct auth_principal nobody = {0};
    assert_int_equal(ask_as(w, nobody, AUTH_WRITE, "a", "*"), ST_OK);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    OK(auth_rights_check_admin(rights, &nobody));
    OK(auth_rights_check_user(rights, &nobody));
    OK(auth_rights_check_user_get(rights, &nobody, TEXT("u")));
    OK(auth_rights_check_role_get(rights, &nobody, TEXT("r")));
}

static void permission_for_one_key_covers_only_that_key(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", RW, "k", "");
    ALLOWED("u", AUTH_READ, "k", "");
    ALLOWED("u", AUTH_WRITE, "k", "");
    DENIED("u", AUTH_READ, "j", "");
    DENIED("u", AUTH_READ, "k1", "");
    DENIED("u", AUTH_READ, "k", "l");
    DENIED("u", AUTH_READ, "k", "*"); /* from the key on: GHSA-xg4h-6gfc-h4m8 */
    DENIED("u", AUTH_READ, "", "");
    DENIED("u", AUTH_READ, "", "*");
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    struct auth_principal u = who(w, "u");
    OK(auth_rights_check(rights, &u, AUTH_READ, TEXT("k"), slice_of("k", 2))); /* [k, k\0) */
}

static void reading_and_writing_need_separate_permissions(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "r", READ, "a", "c");
    user_with(w, "w", WRITE, "a", "c");
    user_with(w, "odd", 7, "a", "c");
    ALLOWED("r", AUTH_READ, "b", "");
    DENIED("r", AUTH_WRITE, "b", "");
    ALLOWED("w", AUTH_WRITE, "b", "");
    DENIED("w", AUTH_READ, "b", "");
    DENIED("odd", AUTH_READ, "b", "");
    DENIED("odd", AUTH_WRITE, "b", "");
}

static void permission_for_a_range_excludes_its_end(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", RW, "b", "d");
    ALLOWED("u", AUTH_READ, "b", "d");
    ALLOWED("u", AUTH_READ, "b", "c");
    ALLOWED("u", AUTH_READ, "cz", "");
    DENIED("u", AUTH_READ, "d", "");
    DENIED("u", AUTH_READ, "b", "da");
    DENIED("u", AUTH_READ, "a", "c");
    DENIED("u", AUTH_READ, "b", "*");
    DENIED("u", AUTH_READ, "a", "*");
    /* Empty ranges need the permission of their first key. */
    ALLOWED("u", AUTH_READ, "b", "b");
    ALLOWED("u", AUTH_READ, "b", "a");
    DENIED("u", AUTH_READ, "d", "d");
    DENIED("u", AUTH_READ, "a", "a");
    DENIED("u", AUTH_READ, "z", "a");
}

static void permission_without_end_covers_all_later_keys(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", RW, "m", "*");
    ALLOWED("u", AUTH_READ, "m", "*");
    ALLOWED("u", AUTH_READ, "zzz", "*");
    ALLOWED("u", AUTH_WRITE, "n", "\xff\xff");
    DENIED("u", AUTH_READ, "l", "*");
    DENIED("u", AUTH_READ, "l", "z");
}

static void adjacent_ranges_of_several_roles_are_merged(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", READ, "a", "c");
    OK(role_add(w, "more"));
    OK(role_grant(w, "more", READ, "c", "f"));
    DENIED("u", AUTH_READ, "a", "f");
    OK(user_grant(w, "u", "more"));
    ALLOWED("u", AUTH_READ, "a", "f");
    OK(role_grant(w, "more", READ, "g", "*"));
    DENIED("u", AUTH_READ, "a", "*"); /* [f, g) is missing */
    OK(role_grant(w, "more", READ, "e", "ga"));
    ALLOWED("u", AUTH_READ, "a", "*");
    OK(role_revoke(w, "more", "c", "f"));
    DENIED("u", AUTH_READ, "a", "d");
}

static void smaller_range_within_a_larger_one_removes_nothing(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", READ, "a", "z");
    OK(role_grant(w, "u", READ, "b", "c"));
    OK(role_grant(w, "u", WRITE, "c", "d"));
    ALLOWED("u", AUTH_READ, "a", "z");
    DENIED("u", AUTH_WRITE, "b", "d");
}

static void role_root_permits_everything_but_its_name_alone_nothing(void **state)
{
    struct world *w = *state;
    guard(w);
    OK(user_add(w, "admin"));
    DENIED("admin", AUTH_READ, "a", "");
    OK(user_grant(w, "admin", "root"));
    ALLOWED("admin", AUTH_WRITE, "a", "*");
    OK(disable(w));
    OK(user_revoke(w, "root", "root"));
    OK(user_grant(w, "root", "root"));
    OK(enable(w));
    ALLOWED("root", AUTH_READ, "a", "*");
}

static void credentials_older_than_the_last_change_are_refused(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", RW, "a", "z");
    struct auth_principal old = who(w, "u");
    assert_int_equal(ask_as(w, old, AUTH_READ, "b", ""), ST_OK);
    OK(role_add(w, "anything"));
    assert_int_equal(ask_as(w, old, AUTH_READ, "b", ""), ST_AUTH_OLD_REVISION);
    old = who(w, "gone");
    OK(role_add(w, "anything else"));
    assert_int_equal(ask_as(w, old, AUTH_READ, "b", ""), ST_AUTH_OLD_REVISION);
}

static void without_a_user_the_error_is_an_empty_name(void **state)
{
    struct world *w = *state;
    const struct auth_principal nobody = {0};
    guard(w);
    assert_int_equal(ask_as(w, nobody, AUTH_READ, "a", ""), ST_USER_EMPTY);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    assert_int_equal(auth_rights_check_admin(rights, &nobody), ST_USER_EMPTY);
    assert_int_equal(auth_rights_check_user(rights, &nobody), ST_USER_EMPTY);
    assert_int_equal(auth_rights_check_user_get(rights, &nobody, SLICE_EMPTY), ST_USER_EMPTY);
    assert_int_equal(auth_rights_check_role_get(rights, &nobody, TEXT("r")), ST_USER_EMPTY);
}

/* CVE-2018-16886: the name in a certificate alone permits nothing. */
static void an_unknown_user_may_do_nothing(void **state)
{
    struct world *w = *state;
    guard(w);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    struct auth_principal unknown = who(w, "unknown"), unnamed = who(w, "");
    DENIED("unknown", AUTH_READ, "a", "");
    assert_int_equal(auth_rights_check_user(rights, &unknown), ST_PERMISSION_DENIED);
    assert_int_equal(auth_rights_check_admin(rights, &unknown), ST_USER_NOT_FOUND);
    assert_int_equal(auth_rights_check_user(rights, &unnamed), ST_USER_EMPTY);
    assert_int_equal(auth_rights_check_admin(rights, &unnamed), ST_USER_EMPTY);
    DENIED("", AUTH_READ, "a", "");
}

static void user_can_read_itself_and_its_roles(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", READ, "a", "");
    user_with(w, "v", READ, "a", "");
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    struct auth_principal u = who(w, "u"), root = who(w, "root");
    OK(auth_rights_check_user_get(rights, &u, TEXT("u")));
    assert_int_equal(auth_rights_check_user_get(rights, &u, TEXT("v")), ST_PERMISSION_DENIED);
    OK(auth_rights_check_role_get(rights, &u, TEXT("u")));
    assert_int_equal(auth_rights_check_role_get(rights, &u, TEXT("v")), ST_PERMISSION_DENIED);
    OK(auth_rights_check_user_get(rights, &root, TEXT("u")));
    OK(auth_rights_check_role_get(rights, &root, TEXT("u")));
    assert_int_equal(auth_rights_check_admin(rights, &u), ST_PERMISSION_DENIED);
    OK(auth_rights_check_admin(rights, &root));
}

static void snapshot_of_rights_does_not_change_with_the_store(void **state)
{
    struct world *w = *state;
    guard(w);
    user_with(w, "u", RW, "a", "c");
    struct auth_principal u = who(w, "u");
    struct auth_rights *rights = auth_rights_new(w->store);
    auth_rights_ref(rights);
    auth_rights_unref(rights);
    OK(user_delete(w, "u"));
    OK(role_delete(w, "u"));
    OK(disable(w));
    OK(auth_rights_check(rights, &u, AUTH_READ, TEXT("a"), TEXT("c")));
    assert_true(auth_rights_enabled(rights));
    assert_int_equal(auth_rights_revision(rights), u.revision);
    assert_true(auth_rights_bytes(rights) < 64 << 10);
    auth_rights_unref(rights);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(everything_is_allowed_while_authentication_is_disabled),
        TEST(permission_for_one_key_covers_only_that_key),
        TEST(reading_and_writing_need_separate_permissions),
        TEST(permission_for_a_range_excludes_its_end),
        TEST(permission_without_end_covers_all_later_keys),
        TEST(adjacent_ranges_of_several_roles_are_merged),
        TEST(smaller_range_within_a_larger_one_removes_nothing),
        TEST(role_root_permits_everything_but_its_name_alone_nothing),
        TEST(credentials_older_than_the_last_change_are_refused),
        TEST(without_a_user_the_error_is_an_empty_name),
        TEST(an_unknown_user_may_do_nothing),
        TEST(user_can_read_itself_and_its_roles),
        TEST(snapshot_of_rights_does_not_change_with_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
