#include "kube/types/object/app_armor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEY "container.apparmor.security.beta.kubernetes.io/"

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* The pod is written as it is after its creation. */
static void assert_becomes(const char *pod, const char *expected)
{
    struct kube_status status = {0};
    struct kube_meta meta = {.arena = &arena, .status = &status};
    struct json_node *tree;
    struct error error;
    struct buf text = {0};
    assert_int_equal(json_tree_read(&arena, slice_from_text(pod), &tree, &error), ST_OK);
    assert_true(kube_app_armor_create(&meta, tree));
    assert_int_equal(json_tree_write(tree, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

static void an_annotation_becomes_a_field(void **state)
{
    (void)state;
    assert_becomes("{\"metadata\":{\"annotations\":{\"" KEY "a\":\"localhost/x\"}},"
                   "\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
                   "{\"metadata\":{\"annotations\":{\"" KEY "a\":\"localhost/x\"}},"
                   "\"spec\":{\"containers\":[{\"name\":\"a\",\"securityContext\":{"
                   "\"appArmorProfile\":{\"type\":\"Localhost\",\"localhostProfile\":\"x\"}}},"
                   "{\"name\":\"b\"}]}}");
}

static void a_field_stays_as_it_is(void **state)
{
    static const char pod[] = "{\"metadata\":{\"annotations\":{\"" KEY
                              "a\":\"localhost/x\"}},\"spec\":{\"containers\":[{\"name\":\"a\","
                              "\"securityContext\":{\"appArmorProfile\":{\"type\":"
                              "\"Unconfined\"}}}]}}";
    (void)state;
    assert_becomes(pod, pod);
}

static void the_profile_of_the_pod_is_not_repeated(void **state)
{
    static const char pod[] = "{\"metadata\":{\"annotations\":{\"" KEY
                              "a\":\"unconfined\"}},\"spec\":{\"securityContext\":{"
                              "\"appArmorProfile\":{\"type\":\"Unconfined\"}},"
                              "\"containers\":[{\"name\":\"a\"}]}}";
    (void)state;
    assert_becomes(pod, pod);
}

static void other_annotations_are_left_alone(void **state)
{
    static const char *const values[] = {"else", "localhost/", "localhost/ x"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct buf pod = {0};
        assert_int_equal(buf_append_format(&pod,
                                           "{\"metadata\":{\"annotations\":{\"" KEY "a\":\"%s\"}},"
                                           "\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
                                           values[i]),
                         ST_OK);
        assert_int_equal(buf_append(&pod, slice_of("", 1)), ST_OK);
        assert_becomes((const char *)pod.ptr, (const char *)pod.ptr);
        buf_fini(&pod);
    }
}

static void nothing_fails_without_memory_in_silence(void **state)
{
    (void)state;
    for (size_t limit = 0; limit < 64 << 10; limit += 512) {
        struct kube_status status = {0};
        struct arena small;
        struct kube_meta meta = {.arena = &small, .status = &status};
        struct json_node *tree;
        struct error error;
        assert_int_equal(
            json_tree_read(&arena,
                           SLICE_LITERAL("{\"metadata\":{\"annotations\":{\"" KEY
                                         "a\":\"unconfined\"}},\"spec\":{\"containers\":["
                                         "{\"name\":\"a\"}]}}"),
                           &tree, &error),
            ST_OK);
        arena_init(&small, NULL, 0, limit);
        bool fine = kube_app_armor_create(&meta, tree);
        assert_true(fine == !arena_ran_out(&small));
        arena_fini(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_annotation_becomes_a_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_field_stays_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_profile_of_the_pod_is_not_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_annotations_are_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_fails_without_memory_in_silence, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
