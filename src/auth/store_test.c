#include "auth/fixture_test.h"

enum { READ = PB_PERMISSION_TYPE_READ, RW = PB_PERMISSION_TYPE_READWRITE };

/* "a b c" */
static const char *roles_of(struct world *w, const char *name)
{
    static char text[256];
    const struct pb_user *user;
    text[0] = 0;
    if (auth_store_user_get(w->store, TEXT(name), &user) != ST_OK)
        return "none";
    for (size_t i = 0; i < user->roles_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", i ? " " : "",
                 SLICE_ARGS(user->roles[i]));
    return text;
}

/* "0:a-c 2:k": type, key, end */
static const char *permissions_of(struct world *w, const char *name)
{
    static char text[256];
    const struct pb_role *role;
    const struct pb_permission *permissions;
    size_t count;
    text[0] = 0;
    if (auth_store_role_get(w->store, TEXT(name), &role) != ST_OK)
        return "none";
    auth_role_shown(role, &permissions, &count);
    for (size_t i = 0; i < count; i++) {
        const struct pb_permission *p = &permissions[i];
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d:%.*s%s%.*s", i ? " " : "",
                 p->perm_type, SLICE_ARGS(p->key), p->range_end.len ? "-" : "",
                 SLICE_ARGS(p->range_end));
    }
    return text;
}

static void enabling_needs_the_user_root_with_the_role_root(void **state)
{
    struct world *w = *state;
    assert_int_equal(enable(w), ST_ROOT_USER_NOT_EXIST);
    OK(user_add(w, "root"));
    assert_int_equal(enable(w), ST_ROOT_ROLE_NOT_EXIST);
    OK(user_grant(w, "root", "root")); /* a role that was not added */
    assert_false(auth_store_enabled(w->store));
    OK(enable(w));
    assert_true(auth_store_enabled(w->store));
    OK(enable(w));
    assert_int_equal(w->change.row_count, 0);
}

static void every_change_increments_the_revision_but_enabling_does_not(void **state)
{
    struct world *w = *state;
    assert_int_equal(auth_store_revision(w->store), 1);
    OK(user_add(w, "root"));
    OK(user_grant(w, "root", "root"));
    assert_int_equal(auth_store_revision(w->store), 3);
    OK(user_grant(w, "root", "root")); /* has it already */
    OK(enable(w));
    assert_int_equal(auth_store_revision(w->store), 3);
    OK(role_add(w, "r"));
    OK(role_grant(w, "r", READ, "a", ""));
    OK(role_revoke(w, "r", "a", ""));
    OK(role_delete(w, "r"));
    OK(user_password(w, "root", "other"));
    assert_int_equal(auth_store_revision(w->store), 8);
    OK(disable(w));
    assert_int_equal(auth_store_revision(w->store), 9);
    OK(disable(w)); /* is already */
    assert_int_equal(auth_store_revision(w->store), 9);
}

static void change_has_no_effect_before_its_rows_are_applied(void **state)
{
    struct world *w = *state;
    OK(auth_store_user_add(w->store, TEXT("u"), TEXT("h"), false, world_arena(w), &w->change));
    assert_int_equal(w->change.row_count, 2);
    assert_int_equal(auth_store_user_count(w->store), 0);
    assert_int_equal(auth_store_revision(w->store), 1);
    OK(world_apply(w, ST_OK));
    assert_int_equal(auth_store_user_count(w->store), 1);
}

static void users_are_refused_as_etcd_refuses_them(void **state)
{
    struct world *w = *state;
    assert_int_equal(user_add(w, ""), ST_USER_EMPTY);
    OK(user_add(w, "u"));
    assert_int_equal(user_add(w, "u"), ST_USER_ALREADY_EXIST);
    assert_int_equal(user_delete(w, "x"), ST_USER_NOT_FOUND);
    assert_int_equal(user_password(w, "x", "h"), ST_USER_NOT_FOUND);
    assert_int_equal(user_grant(w, "x", "nor this"), ST_USER_NOT_FOUND);
    assert_int_equal(user_grant(w, "u", "x"), ST_ROLE_NOT_FOUND);
    assert_int_equal(user_revoke(w, "x", "r"), ST_USER_NOT_FOUND);
    assert_int_equal(user_revoke(w, "u", "x"), ST_ROLE_NOT_GRANTED);
    const struct pb_user *user;
    assert_int_equal(auth_store_user_get(w->store, TEXT("x"), &user), ST_USER_NOT_FOUND);
}

static void roles_are_refused_as_etcd_refuses_them(void **state)
{
    struct world *w = *state;
    assert_int_equal(role_add(w, ""), ST_ROLE_EMPTY);
    OK(role_add(w, "r"));
    assert_int_equal(role_add(w, "r"), ST_ROLE_ALREADY_EXIST);
    assert_int_equal(role_delete(w, "x"), ST_ROLE_NOT_FOUND);
    assert_int_equal(auth_store_role_grant(w->store, TEXT("x"), NULL, world_arena(w), &w->change),
                     ST_PERMISSION_NOT_GIVEN);
    assert_int_equal(role_grant(w, "x", READ, "", ""), ST_INVALID_AUTH_MGMT);
    assert_int_equal(role_grant(w, "x", READ, "b", "a"), ST_INVALID_AUTH_MGMT);
    assert_int_equal(role_grant(w, "x", READ, "b", "b"), ST_INVALID_AUTH_MGMT);
    assert_int_equal(role_grant(w, "x", READ, "a", "b"), ST_ROLE_NOT_FOUND);
    assert_int_equal(role_revoke(w, "x", "a", ""), ST_ROLE_NOT_FOUND);
    assert_int_equal(role_revoke(w, "r", "a", ""), ST_PERMISSION_NOT_GRANTED);
}

static void root_keeps_its_role_while_authentication_is_enabled(void **state)
{
    struct world *w = *state;
    guard(w);
    assert_int_equal(user_delete(w, "root"), ST_INVALID_AUTH_MGMT);
    assert_int_equal(user_revoke(w, "root", "root"), ST_INVALID_AUTH_MGMT);
    assert_int_equal(role_delete(w, "root"), ST_INVALID_AUTH_MGMT);
    OK(disable(w));
    OK(user_revoke(w, "root", "root"));
    OK(user_delete(w, "root"));
    assert_int_equal(role_delete(w, "root"), ST_ROLE_NOT_FOUND);
}

static void role_root_is_shown_with_permission_for_everything(void **state)
{
    struct world *w = *state;
    OK(role_add(w, "root"));
    OK(role_grant(w, "root", READ, "a", ""));
    const struct pb_role *role;
    const struct pb_permission *shown;
    size_t count;
    OK(auth_store_role_get(w->store, TEXT("root"), &role));
    auth_role_shown(role, &shown, &count);
    assert_int_equal(count, 1);
    assert_int_equal(shown->perm_type, RW);
    assert_int_equal(shown->key.len, 0);
    assert_int_equal(shown->range_end.len, 1);
    assert_int_equal(shown->range_end.ptr[0], 0);
}

static void roles_and_names_are_sorted(void **state)
{
    struct world *w = *state;
    OK(user_add(w, "b"));
    OK(user_add(w, "a"));
    OK(user_add(w, "c"));
    assert_memory_equal(auth_store_user_at(w->store, 0)->name.ptr, "a", 1);
    assert_memory_equal(auth_store_user_at(w->store, 2)->name.ptr, "c", 1);
    OK(role_add(w, "z"));
    OK(role_add(w, "m"));
    OK(user_grant(w, "b", "z"));
    OK(user_grant(w, "b", "m"));
    OK(user_grant(w, "b", "root"));
    assert_string_equal(roles_of(w, "b"), "m root z");
    OK(user_revoke(w, "b", "root"));
    assert_string_equal(roles_of(w, "b"), "m z");
}

static void permissions_are_sorted_and_unique(void **state)
{
    struct world *w = *state;
    OK(role_add(w, "r"));
    OK(role_grant(w, "r", RW, "k", ""));
    OK(role_grant(w, "r", READ, "a", "c"));
    OK(role_grant(w, "r", RW, "a", ""));
    assert_string_equal(permissions_of(w, "r"), "0:a-c 2:a 2:k");
    OK(role_grant(w, "r", RW, "a", "c"));
    OK(role_grant(w, "r", READ, "a", "")); /* a weaker permission, and not the first of its key */
    assert_string_equal(permissions_of(w, "r"), "2:a-c 0:a 2:k");
    assert_int_equal(role_revoke(w, "r", "a", "b"), ST_PERMISSION_NOT_GRANTED);
    OK(role_revoke(w, "r", "a", "c"));
    assert_string_equal(permissions_of(w, "r"), "0:a 2:k");
}

static void role_that_is_created_again_has_no_users(void **state)
{
    struct world *w = *state;
    OK(user_add(w, "u"));
    OK(user_add(w, "v"));
    OK(role_add(w, "r"));
    OK(role_add(w, "s"));
    OK(user_grant(w, "u", "r"));
    OK(user_grant(w, "u", "s"));
    OK(user_grant(w, "v", "s"));
    OK(role_delete(w, "r"));
    assert_int_equal(w->change.row_count, 3); /* the role, u, the revision */
    assert_string_equal(roles_of(w, "u"), "s");
    OK(role_add(w, "r"));
    assert_string_equal(roles_of(w, "u"), "s");
}

static void tokens_end_when_password_user_or_authentication_changes(void **state)
{
    struct world *w = *state;
    guard(w);
    OK(user_add(w, "u"));
    assert_int_equal(w->change.ends_tokens_of.len, 0);
    OK(user_password(w, "u", "h2"));
    assert_memory_equal(w->change.ends_tokens_of.ptr, "u", 1);
    assert_false(w->change.ends_all_tokens);
    OK(user_delete(w, "u"));
    assert_memory_equal(w->change.ends_tokens_of.ptr, "u", 1);
    OK(disable(w));
    assert_true(w->change.ends_all_tokens);
}

static void a_user_without_password_cannot_be_given_one(void **state)
{
    struct world *w = *state;
    struct slice hash;
    uint64_t revision;
    assert_int_equal(auth_store_password(w->store, TEXT("u"), &hash, &revision),
                     ST_AUTH_NOT_ENABLED);
    guard(w);
    OK(world_apply(
        w, auth_store_user_add(w->store, TEXT("u"), TEXT("h"), true, world_arena(w), &w->change)));
    assert_int_equal(auth_store_password(w->store, TEXT("u"), &hash, &revision), ST_AUTH_FAILED);
    OK(user_password(w, "u", "h"));
    assert_int_equal(auth_store_password(w->store, TEXT("u"), &hash, &revision), ST_AUTH_FAILED);
    const struct pb_user *user;
    OK(auth_store_user_get(w->store, TEXT("u"), &user));
    assert_int_equal(user->password.len, 0);
    assert_int_equal(auth_store_password(w->store, TEXT("x"), &hash, &revision), ST_AUTH_FAILED);
    OK(auth_store_password(w->store, TEXT("root"), &hash, &revision));
    assert_memory_equal(hash.ptr, "hash", 4);
    assert_int_equal(revision, auth_store_revision(w->store));
}

/* A start reads only rows, and must lead to the same store. */
static void replaying_the_rows_gives_the_same_store(void **state)
{
    struct world *w = *state;
    AUTO(auth_store_freep) struct auth_store *other = auth_store_new();
#define BOTH(call)                                                       \
    do {                                                                 \
        OK(call);                                                        \
        for (size_t i = 0; i < w->change.row_count; i++)                 \
            OK(auth_store_apply(other, &w->change.rows[i]));             \
        arena_fini(&w->arena); /* frees the rows: nothing is borrowed */ \
        w->change = (struct auth_change){0};                             \
    } while (0)
    BOTH(user_add(w, "root"));
    BOTH(user_grant(w, "root", "root"));
    BOTH(enable(w));
    BOTH(role_add(w, "r"));
    BOTH(role_grant(w, "r", RW, "a", "*"));
    BOTH(user_add(w, "u"));
    BOTH(user_grant(w, "u", "r"));
    BOTH(user_add(w, "gone"));
    BOTH(user_delete(w, "gone"));
#undef BOTH
    auth_store_check(other);
    assert_true(auth_store_enabled(other));
    assert_int_equal(auth_store_revision(other), auth_store_revision(w->store));
    assert_int_equal(auth_store_user_count(other), 2);
    assert_int_equal(auth_store_role_at(other, 0)->key_permission_count, 1);
    assert_int_equal(auth_store_user_at(other, 1)->roles_count, 1);
}

static void damaged_rows_are_refused_and_change_nothing(void **state)
{
    struct world *w = *state;
    static const struct auth_row rows[] = {
        {AUTH_TABLE_USERS, false, {(const uint8_t *)"u", 1}, {(const uint8_t *)"\xff", 1}},
        {AUTH_TABLE_USERS, false, {(const uint8_t *)"u", 1}, {(const uint8_t *)"\x0a\x01v", 3}},
        {AUTH_TABLE_USERS, false, {NULL, 0}, {NULL, 0}},
        /* roles "b", "a": a search would not find them */
        {AUTH_TABLE_USERS,
         false,
         {(const uint8_t *)"u", 1},
         {(const uint8_t *)"\x0a\x01u\x1a\x01"
                           "b\x1a\x01"
                           "a",
          9}},
        {AUTH_TABLE_ROLES, false, {(const uint8_t *)"r", 1}, {(const uint8_t *)"\x0a\x05r", 3}},
        {AUTH_TABLE_STATE, false, {(const uint8_t *)"other", 5}, {(const uint8_t *)"\1", 1}},
        {AUTH_TABLE_STATE, false, {(const uint8_t *)"authEnabled", 11}, {(const uint8_t *)"\2", 1}},
        {AUTH_TABLE_STATE, false, {(const uint8_t *)"authRevision", 12}, {(const uint8_t *)"1", 1}},
        {AUTH_TABLE_STATE, true, {(const uint8_t *)"authEnabled", 11}, {NULL, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(auth_store_apply(w->store, &rows[i]), ST_DAMAGED);
    assert_int_equal(auth_store_user_count(w->store), 0);
    assert_int_equal(auth_store_revision(w->store), 1);
}

/* An import may contain such a row, with the most memory for the fewest bytes. */
static void a_row_of_many_empty_permissions_is_read(void **state)
{
    struct world *w = *state;
    static uint8_t value[3 + 2 * 100000] = {0x0a, 1, 'r'};
    for (size_t i = 3; i < sizeof(value); i += 2)
        value[i] = 0x12;
    OK(auth_store_apply(w->store, &(struct auth_row){.table = AUTH_TABLE_ROLES,
                                                     .key = TEXT("r"),
                                                     .value = slice_of(value, sizeof(value))}));
    assert_int_equal(auth_store_role_at(w->store, 0)->key_permission_count, 100000);
}

static void names_and_rows_have_limits(void **state)
{
    struct world *w = *state;
    char name[AUTH_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[AUTH_NAME_BYTES_MAX + 1] = 0;
    assert_int_equal(user_add(w, name), ST_LIMIT);
    assert_int_equal(role_add(w, name), ST_LIMIT);
    name[AUTH_NAME_BYTES_MAX] = 0;
    OK(user_add(w, name));
    OK(role_add(w, "r"));
    static char key[6 << 20];
    memset(key, 'k', sizeof(key) - 1);
    for (int i = 0; i < 2; i++) {
        key[0] = (char)('a' + i);
        OK(role_grant(w, "r", READ, key, ""));
    }
    key[0] = 'z';
    assert_int_equal(role_grant(w, "r", READ, key, ""), ST_LIMIT);
    assert_int_equal(user_add(w, "small"), ST_OK);
    key[0] = 'a';
    OK(role_revoke(w, "r", key, ""));
    key[0] = 'z';
    OK(role_grant(w, "r", READ, key, ""));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(enabling_needs_the_user_root_with_the_role_root),
        TEST(every_change_increments_the_revision_but_enabling_does_not),
        TEST(change_has_no_effect_before_its_rows_are_applied),
        TEST(users_are_refused_as_etcd_refuses_them),
        TEST(roles_are_refused_as_etcd_refuses_them),
        TEST(root_keeps_its_role_while_authentication_is_enabled),
        TEST(role_root_is_shown_with_permission_for_everything),
        TEST(roles_and_names_are_sorted),
        TEST(permissions_are_sorted_and_unique),
        TEST(role_that_is_created_again_has_no_users),
        TEST(tokens_end_when_password_user_or_authentication_changes),
        TEST(a_user_without_password_cannot_be_given_one),
        TEST(replaying_the_rows_gives_the_same_store),
        TEST(damaged_rows_are_refused_and_change_nothing),
        TEST(a_row_of_many_empty_permissions_is_read),
        TEST(names_and_rows_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
