/* What single plugins make of an object, as pure functions of trees. */
#include "kube/policy/admission/plugins/pods/token_volume.h"
#include "kube/policy/admission/plugins/pods/toleration_merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena arena;
static struct kube_status status;
static struct random randoms;

static struct json_node *read(const char *text)
{
    struct json_node *node;
    struct error error;
    assert_int_equal(json_tree_read(&arena, slice_from_text(text), &node, &error), ST_OK);
    return node;
}

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 1 << 20);
    random_init(&randoms, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* -- Tolerations -- */

static void assert_merged(const char *own, const char *more, const char *wanted)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *list = read(own);
    assert_int_equal(kube_tolerations_merge(&arena, list, more ? read(more) : NULL), ST_OK);
    if (!json_node_equal(list, read(wanted))) {
        assert_int_equal(json_tree_write(list, &text), ST_OK);
        fail_msg("%.*s", SLICE_ARGS(buf_slice(&text)));
    }
}

static void a_toleration_that_another_contains_is_dropped(void **state)
{
    (void)state;
    assert_merged("[]", NULL, "[]");
    assert_merged("[{\"key\":\"a\",\"operator\":\"Exists\"}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\"}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\"}]");
    assert_merged("[{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"v\"}]",
                  "[{\"operator\":\"Exists\"}]", "[{\"operator\":\"Exists\"}]");
    assert_merged("[{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"v\"}]",
                  "[{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"w\"}]",
                  "[{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"v\"},"
                  "{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"w\"}]");
    assert_merged("[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
                  "\"tolerationSeconds\":9}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
                  "\"tolerationSeconds\":5}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
                  "\"tolerationSeconds\":9}]");
    assert_merged("[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
                  "\"tolerationSeconds\":9}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]",
                  "[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]");
}

static void too_many_tolerations_are_not_compared(void **state)
{
    (void)state;
    struct json_node *list = json_node_new(&arena, JSON_TYPE_ARRAY);
    for (int i = 0; i < KUBE_TOLERATIONS_COMPARED_MAX + 1; i++)
        assert_int_equal(json_node_insert(list, NULL, read("{\"operator\":\"Exists\"}")), ST_OK);
    assert_int_equal(kube_tolerations_merge(&arena, list, NULL), ST_OK);
    assert_int_equal(list->count, KUBE_TOLERATIONS_COMPARED_MAX + 1);
    json_node_remove(list, json_node_first(list));
    assert_int_equal(kube_tolerations_merge(&arena, list, NULL), ST_OK);
    assert_int_equal(list->count, 1);
}

/* -- The volume of the token -- */

static struct json_node *add_volume(const char *spec)
{
    struct json_node *node = read(spec);
    struct kube_admission_write write = {
        .arena = &arena, .random = &randoms, .status = &status, .object = node};
    assert_true(kube_token_volume_add(&write, node));
    return node;
}

static void every_container_mounts_the_token(void **state)
{
    (void)state;
    const struct json_node *spec =
        add_volume("{\"initContainers\":[{\"name\":\"a\"}],\"containers\":[{\"name\":\"b\"}]}");
    const struct json_node *volume = json_node_item(json_node_named(spec, "volumes"), 0);
    const struct json_node *name = json_node_named(volume, "name");
    assert_true(slice_has_prefix(name->text, SLICE_LITERAL("kube-api-access-")));
    assert_int_equal(name->text.len, strlen("kube-api-access-") + 5);
    assert_int_equal(json_node_path(volume, "projected.sources")->count, 3);
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const struct json_node *container = json_node_item(json_node_named(spec, lists[i]), 0);
        const struct json_node *mount =
            json_node_item(json_node_named(container, "volumeMounts"), 0);
        assert_true(json_node_equal(json_node_named(mount, "name"), name));
        assert_true(json_node_named(mount, "readOnly")->truth);
    }
}

static void a_mount_of_the_pod_at_that_path_is_kept(void **state)
{
    (void)state;
    const struct json_node *spec =
        add_volume("{\"containers\":[{\"name\":\"b\",\"volumeMounts\":[{\"name\":\"own\","
                   "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}]}]}");
    assert_null(json_node_named(spec, "volumes"));
}

static void a_volume_of_the_pod_with_that_name_is_used(void **state)
{
    (void)state;
    const struct json_node *spec = add_volume("{\"volumes\":[{\"name\":\"kube-api-access-x\"}],"
                                              "\"containers\":[{\"name\":\"b\"}]}");
    assert_int_equal(json_node_named(spec, "volumes")->count, 1);
    const struct json_node *container = json_node_item(json_node_named(spec, "containers"), 0);
    assert_true(json_node_is_text(
        json_node_named(json_node_item(json_node_named(container, "volumeMounts"), 0), "name"),
        "kube-api-access-x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_toleration_that_another_contains_is_dropped),
        cmocka_unit_test(too_many_tolerations_are_not_compared),
        cmocka_unit_test(every_container_mounts_the_token),
        cmocka_unit_test(a_mount_of_the_pod_at_that_path_is_kept),
        cmocka_unit_test(a_volume_of_the_pod_with_that_name_is_used),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
