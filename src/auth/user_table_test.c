#include "auth/user_table.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NAMES = 3000, TABLES = 12 };

/* A table, and for each name the number of the user that should be in it. */
struct copy {
    struct user_table table;
    unsigned there[NAMES]; /* 0: no user */
    size_t count;
};

static struct slice name_of(unsigned i, char text[16])
{
    snprintf(text, 16, "user-%u", i);
    return slice_from_text(text);
}

/* The name of its only role contains the number. */
static struct auth_user *user_new(unsigned i, unsigned number)
{
    char name[16], role[16];
    snprintf(role, sizeof(role), "%u", number);
    struct slice roles[] = {slice_from_text(role)};
    struct pb_user from = {.name = name_of(i, name), .roles = roles, .roles_count = 1};
    return auth_user_new(&from, role_ranges_new(NULL, 0));
}

static void check(const struct copy *copy)
{
    size_t seen = 0, at = 0;
    for (const struct auth_user *user; (user = user_table_each(&copy->table, &at)); seen++)
        assert_ptr_equal(user_table_find(&copy->table, user->name), user);
    assert_int_equal(seen, copy->count);
    assert_int_equal(copy->table.count, copy->count);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16], role[16];
        const struct auth_user *user = user_table_find(&copy->table, name_of(i, name));
        assert_int_equal(user != NULL, copy->there[i] != 0);
        snprintf(role, sizeof(role), "%u", copy->there[i]);
        assert_true(!user || slice_equal(user->roles[0], slice_from_text(role)));
    }
}

static void change(struct copy *copy, struct random *random, unsigned number, unsigned names)
{
    unsigned i = (unsigned)random_below(random, names);
    char name[16];
    if (random_chance(random, 1, 3)) {
        user_table_remove(&copy->table, name_of(i, name));
        copy->count -= copy->there[i] != 0;
        copy->there[i] = 0;
    } else {
        user_table_put(&copy->table, user_new(i, number));
        copy->count += copy->there[i] == 0;
        copy->there[i] = number;
    }
}

/* Makes copies of copies, each changed while all others are kept; the oldest one is freed. */
static void changing_a_copy_does_not_change_the_others(void **state)
{
    (void)state;
    struct copy *copies = calloc(TABLES, sizeof(*copies));
    struct random random;
    assert_non_null(copies);
    random_init(&random, 7);
    user_table_init(&copies[0].table, 7);
    for (unsigned round = 1; round < 60; round++) {
        struct copy *from = &copies[(round - 1) % TABLES], *to = &copies[round % TABLES];
        user_table_fini(&to->table);
        *to = *from;
        user_table_copy(&to->table, &from->table);
        for (unsigned i = 0; i < 100; i++) /* few names at first, then many */
            change(to, &random, round * 100 + i, 1 + round * 50);
        check(from);
        check(to);
        check(&copies[random_below(&random, TABLES)]);
    }
    for (unsigned i = 0; i < TABLES; i++) {
        check(&copies[i]);
        user_table_fini(&copies[i].table);
    }
    free(copies);
}

static void a_copy_shares_all_unchanged_users(void **state)
{
    (void)state;
    struct user_table table, copy;
    user_table_init(&table, 7);
    for (unsigned i = 0; i < NAMES; i++)
        user_table_put(&table, user_new(i, 1));
    user_table_copy(&copy, &table);
    user_table_put(&copy, user_new(0, 2));
    size_t different = 0;
    for (size_t i = 0; i < table.bucket_count; i++)
        different += table.buckets[i] != copy.buckets[i];
    assert_int_equal(different, 1);
    user_table_fini(&table);
    char name[16];
    assert_non_null(user_table_find(&copy, name_of(NAMES - 1, name)));
    user_table_fini(&copy);
}

static void an_empty_table_has_no_users(void **state)
{
    (void)state;
    struct user_table table, copy;
    size_t at = 0;
    user_table_init(&table, 7);
    assert_null(user_table_find(&table, SLICE_LITERAL("root")));
    user_table_remove(&table, SLICE_LITERAL("root"));
    assert_null(user_table_each(&table, &at));
    user_table_copy(&copy, &table);
    user_table_put(&copy, user_new(1, 1));
    assert_int_equal(copy.count, 1);
    user_table_fini(&copy);
    user_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changing_a_copy_does_not_change_the_others),
        cmocka_unit_test(a_copy_shares_all_unchanged_users),
        cmocka_unit_test(an_empty_table_has_no_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
