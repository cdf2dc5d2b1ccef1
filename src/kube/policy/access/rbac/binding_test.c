#include "kube/policy/access/rbac/binding.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OTHERS = 20000, NAMES = 12, ROUNDS = 4000 };

struct fixture {
    struct arena arena;
    struct version_map indexes[3]; /* indexes of shelves: no namespace, "n", and another one */
    struct buf seen;
    size_t calls;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, 256 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(f->indexes); i++)
        assert_int_equal(version_map_count(&f->indexes[i]), 0);
    buf_fini(&f->seen);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static struct version_map *index_of(struct fixture *f, struct slice namespace)
{
    return &f->indexes[!namespace.len ? 0 : slice_is(namespace, "n") ? 1 : 2];
}

static void unbind(struct fixture *f, const struct kube_lookup_object *object)
{
    kube_binding_index_remove(index_of(f, object->namespace), object);
    version_map_check(index_of(f, object->namespace));
}

/* Subjects as "u:jane g:admins a:namespace/name". */
static struct kube_lookup_object *bind(struct fixture *f, const char *namespace, const char *name,
                                       const char *subjects)
{
    AUTO(buf_fini) struct buf text = {0};
    char all[256], *rest = all, *word;
    struct json_node *tree;
    struct error error;
    struct kube_lookup_object *object = arena_calloc(&f->arena, 1, sizeof(*object));
    snprintf(all, sizeof(all), "%s", subjects);
    assert_int_equal(buf_append_text(&text, "{\"roleRef\":{},\"subjects\":["), ST_OK);
    while ((word = strsep(&rest, " ")) != NULL) {
        const char *kind = *word == 'u' ? "User" : *word == 'g' ? "Group" : "ServiceAccount";
        char *of = word + 2, *slash = strchr(of, '/');
        if (slash)
            *slash = 0;
        assert_int_equal(
            buf_append_format(&text, "{\"kind\":\"%s\",\"namespace\":\"%s\",\"name\":\"%s\"}%s",
                              kind, slash ? of : "", slash ? slash + 1 : of, rest ? "," : ""),
            ST_OK);
    }
    assert_int_equal(buf_append_text(&text, "]}"), ST_OK);
    assert_int_equal(json_tree_read(&f->arena, buf_slice(&text), &tree, &error), ST_OK);
    assert_int_equal(arena_dup(&f->arena, slice_from_text(namespace), &object->namespace), ST_OK);
    assert_int_equal(arena_dup(&f->arena, slice_from_text(name), &object->name), ST_OK);
    object->data = kube_binding_read(&f->arena, tree);
    assert_non_null(object->data);
    kube_binding_index_add(index_of(f, object->namespace), object);
    return object;
}

static bool note(void *ctx, const struct kube_bound *bound)
{
    static const char letters[] = "uga";
    struct fixture *f = ctx;
    f->calls++;
    assert_int_equal(buf_append_format(&f->seen, "%.*s(%c:%.*s) ", SLICE_ARGS(bound->object->name),
                                       letters[bound->subject->kind],
                                       SLICE_ARGS(bound->subject->name)),
                     ST_OK);
    return true;
}

/* The bindings of a user with two groups; an empty name means none. */
static size_t visit(struct fixture *f, const char *namespace, const char *user, const char *group,
                    const char *other)
{
    const struct slice groups[] = {slice_from_text(group), slice_from_text(other)};
    const struct kube_user_info info = {.name = slice_from_text(user), .groups = {groups, 2}};
    buf_reset(&f->seen, SIZE_MAX);
    f->calls = 0;
    return kube_binding_index_each(index_of(f, slice_from_text(namespace)), &info, note, f);
}

static void assert_seen(struct fixture *f, const char *text)
{
    assert_int_equal(buf_append(&f->seen, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)f->seen.ptr, text);
}

static void bindings_are_visited_once_in_the_order_of_names(void **state)
{
    struct fixture *f = *state;
    struct kube_lookup_object *objects[] = {
        bind(f, "", "c", "u:jane g:admins"), bind(f, "", "a", "g:none g:admins u:jane"),
        bind(f, "", "b", "g:staff"),         bind(f, "", "d", "u:joe"),
        bind(f, "n", "e", "u:jane"),
    };
    assert_int_equal(visit(f, "", "jane", "admins", "staff"), 5);
    assert_seen(f, "a(g:admins) b(g:staff) c(u:jane) ");
    visit(f, "n", "jane", "admins", "staff");
    assert_seen(f, "e(u:jane) ");
    visit(f, "m", "jane", "admins", "staff");
    assert_seen(f, "");
    visit(f, "", "admins", "jane", "jane");
    assert_seen(f, "");
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        unbind(f, objects[i]);
    }
}

static void accounts_are_found_by_the_name_of_their_user(void **state)
{
    struct fixture *f = *state;
    struct kube_lookup_object *objects[] = {
        bind(f, "n", "a", "a:clerk"),
        bind(f, "n", "b", "a:shop/clerk"),
        bind(f, "n", "c", "u:system:serviceaccount:shop:clerk"),
        bind(f, "", "d", "a:clerk"), /* in no namespace, so it is of no user */
        bind(f, "", "e", "a:shop/clerk"),
    };
    visit(f, "n", "system:serviceaccount:shop:clerk", "", "");
    assert_seen(f, "b(a:clerk) c(u:system:serviceaccount:shop:clerk) ");
    visit(f, "n", "system:serviceaccount:n:clerk", "", "");
    assert_seen(f, "a(a:clerk) ");
    visit(f, "", "system:serviceaccount:shop:clerk", "", "");
    assert_seen(f, "e(a:clerk) ");
    visit(f, "", "system:serviceaccount::clerk", "", "");
    assert_seen(f, "");
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        unbind(f, objects[i]);
}

static void bindings_of_others_are_not_examined(void **state)
{
    struct fixture *f = *state;
    static struct kube_lookup_object *objects[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        char name[16], subjects[64];
        snprintf(name, sizeof(name), "b%05d", i);
        snprintf(subjects, sizeof(subjects), "u:user%d g:group%d g:all", i, i % 100);
        objects[i] = bind(f, "", name, i % 1000 == 500 ? "u:jane" : subjects);
    }
    assert_int_equal(visit(f, "", "jane", "staff", "none"), OTHERS / 1000);
    assert_int_equal(f->calls, OTHERS / 1000);
    assert_int_equal(visit(f, "", "user7", "group8", "none"), 1 + OTHERS / 100);
    for (int i = OTHERS; i-- > 0;)
        kube_binding_index_remove(&f->indexes[0], objects[i]);
}

/* Compared with a walk over all bindings. */
static void random_changes_keep_the_index_right(void **state)
{
    struct fixture *f = *state;
    struct kube_lookup_object *objects[NAMES * 2] = {0};
    struct random random;
    random_init(&random, 3);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = random_below(&random, COUNT_OF(objects)), expected = 0;
        char name[32], subjects[64];
        const char *namespace = at % 2 ? "n" : "";
        snprintf(name, sizeof(name), "b%zu", at / 2);
        snprintf(subjects, sizeof(subjects), "u:%d g:%d g:%d", (int)random_below(&random, 3),
                 (int)random_below(&random, 3), (int)random_below(&random, 3));
        if (objects[at])
            unbind(f, objects[at]);
        objects[at] = random_chance(&random, 1, 4) ? NULL : bind(f, namespace, name, subjects);
        for (size_t i = at % 2; i < COUNT_OF(objects); i += 2) {
            const struct kube_binding *b = objects[i] ? objects[i]->data : NULL;
            expected +=
                b && (slice_is(b->subjects[0].name, "1") || slice_is(b->subjects[1].name, "2") ||
                      slice_is(b->subjects[2].name, "2"));
        }
        visit(f, namespace, "1", "2", "none");
        assert_int_equal(f->calls, expected);
        version_map_check(index_of(f, slice_from_text(namespace)));
    }
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        if (objects[i])
            unbind(f, objects[i]);
}

static void long_names_and_many_groups_are_found(void **state)
{
    struct fixture *f = *state;
    static char name[200];
    static struct slice groups[KUBE_USER_GROUPS_MAX];
    static char texts[KUBE_USER_GROUPS_MAX][256];
    struct kube_lookup_object *objects[KUBE_USER_GROUPS_MAX];
    memset(name, 'x', sizeof(name) - 1);
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        char subject[sizeof(texts[0]) + 2], of[32];
        snprintf(texts[i], sizeof(texts[i]), "%s%04zu", name, i);
        snprintf(subject, sizeof(subject), "g:%s", texts[i]);
        snprintf(of, sizeof(of), "b%04zu", COUNT_OF(groups) - i);
        groups[i] = slice_from_text(texts[i]);
        objects[i] = bind(f, "", of, subject);
    }
    const struct kube_user_info info = {.name = SLICE_LITERAL("u"),
                                        .groups = {groups, COUNT_OF(groups)}};
    assert_int_equal(kube_binding_index_each(&f->indexes[0], &info, note, f), COUNT_OF(groups));
    assert_int_equal(f->calls, COUNT_OF(groups));
    assert_true(slice_has_prefix(buf_slice(&f->seen), SLICE_LITERAL("b0001(")));
    for (size_t i = 0; i < COUNT_OF(groups); i++)
        unbind(f, objects[i]);
}

/* As the same subject twice is one, a binding of many equal ones costs as much as each of them. */
static void equal_subjects_are_indexed_once(void **state)
{
    struct fixture *f = *state;
    struct kube_lookup_object *object = bind(f, "n", "a", "u:jane g:admins u:jane u:jane g:admins");
    assert_int_equal(visit(f, "n", "jane", "admins", "none"), 2);
    assert_seen(f, "a(u:jane) ");
    unbind(f, object);
    assert_int_equal(visit(f, "n", "jane", "admins", "none"), 0);
}

static void a_version_of_the_index_does_not_change(void **state)
{
    struct fixture *f = *state;
    struct kube_lookup_object *first = bind(f, "n", "a", "u:jane g:all");
    struct version_map old = version_map_dup(&f->indexes[1]);
    struct kube_lookup_object *second = bind(f, "n", "b", "u:jane u:joe g:all");
    unbind(f, first);
    visit(f, "n", "jane", "all", "none");
    assert_seen(f, "b(u:jane) ");
    struct version_map newer = f->indexes[1];
    f->indexes[1] = old;
    visit(f, "n", "jane", "all", "none");
    assert_seen(f, "a(u:jane) ");
    f->indexes[1] = newer;
    version_map_fini(&old);
    unbind(f, second);
}

/* The user's groups are sorted for this. */
static void the_subjects_of_a_binding_are_compared_as_the_index_finds_them(void **state)
{
    struct fixture *f = *state;
    const struct slice groups[] = {SLICE_LITERAL("admins"), SLICE_LITERAL("staff")};
    struct kube_user_info jane = {.name = SLICE_LITERAL("jane"), .groups = {groups, 2}};
    struct kube_user_info clerk = {.name = SLICE_LITERAL("system:serviceaccount:n:clerk")};
    struct kube_lookup_object *objects[] = {
        bind(f, "n", "a", "u:joe u:jane"), bind(f, "n", "b", "g:none g:staff"),
        bind(f, "n", "c", "u:admins"),     bind(f, "n", "d", "a:clerk"),
        bind(f, "", "e", "a:clerk"),       bind(f, "", "f", "a:n/clerk"),
    };
    const bool of_jane[] = {true, true, false, false, false, false};
    const bool of_clerk[] = {false, false, false, true, false, true};
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        assert_int_equal(kube_binding_is_of(objects[i], &jane), of_jane[i]);
        assert_int_equal(kube_binding_is_of(objects[i], &clerk), of_clerk[i]);
        unbind(f, objects[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bindings_are_visited_once_in_the_order_of_names),
        TEST(accounts_are_found_by_the_name_of_their_user),
        TEST(bindings_of_others_are_not_examined),
        TEST(random_changes_keep_the_index_right),
        TEST(long_names_and_many_groups_are_found),
        TEST(equal_subjects_are_indexed_once),
        TEST(a_version_of_the_index_does_not_change),
        TEST(the_subjects_of_a_binding_are_compared_as_the_index_finds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
