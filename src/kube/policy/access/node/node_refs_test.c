#include "kube/policy/access/node/node_refs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct node_refs refs;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, 64 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static enum status read_as(struct fixture *f, enum node_kind kind, const char *json)
{
    const struct node_object object = {kind, SLICE_LITERAL("shop"), SLICE_LITERAL("p")};
    return node_refs_read(&f->arena, object, slice_from_text(json), &f->refs);
}

static bool has(const struct fixture *f, enum node_kind kind, const char *namespace,
                const char *name)
{
    for (size_t i = 0; i < f->refs.count; i++)
        if (f->refs.named[i].kind == kind && slice_is(f->refs.named[i].namespace, namespace) &&
            slice_is(f->refs.named[i].name, name))
            return true;
    return false;
}

static void a_pod_names_what_its_kubelet_needs(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        read_as(f, NODE_POD,
                "{\"metadata\":{\"name\":\"p\"},\"status\":{\"resourceClaimStatuses\":[{\"name\":"
                "\"t\",\"resourceClaimName\":\"made\"}]},\"spec\":{\"nodeName\":\"one\","
                "\"serviceAccountName\":\"sa\",\"imagePullSecrets\":[{\"name\":\"pull\"},{}],"
                "\"ephemeralContainers\":[{\"env\":[{\"valueFrom\":{\"secretKeyRef\":{\"name\":"
                "\"debug\"}}}]}],\"resourceClaims\":[{\"name\":\"t\",\"resourceClaimTemplateName\":"
                "\"x\"},{\"name\":\"u\",\"resourceClaimTemplateName\":\"x\"}],\"volumes\":[{"
                "\"name\":\"v\",\"ephemeral\":{}},{\"persistentVolumeClaim\":{\"claimName\":"
                "\"c\"}}]}}"),
        ST_OK);
    assert_true(slice_is(f->refs.node, "one"));
    assert_true(has(f, NODE_ACCOUNT, "shop", "sa"));
    assert_true(has(f, NODE_SECRET, "shop", "pull"));
    assert_true(has(f, NODE_SECRET, "shop", "debug"));
    assert_true(has(f, NODE_RESOURCE_CLAIM, "shop", "made"));
    assert_true(has(f, NODE_CLAIM, "shop", "p-v"));
    assert_true(has(f, NODE_CLAIM, "shop", "c"));
    assert_int_equal(f->refs.count, 6);
}

static void a_mirror_pod_and_one_without_a_node_name_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(read_as(f, NODE_POD,
                             "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":"
                             "\"\"}},\"spec\":{\"nodeName\":\"one\",\"serviceAccountName\":"
                             "\"sa\"}}"),
                     ST_OK);
    assert_true(slice_is(f->refs.node, "one"));
    assert_int_equal(f->refs.count, 0);
    assert_int_equal(read_as(f, NODE_POD, "{\"spec\":{\"serviceAccountName\":\"sa\"}}"), ST_OK);
    assert_int_equal(f->refs.node.len, 0);
    assert_int_equal(f->refs.count, 0);
    /* Only the annotation counts, and not its text elsewhere. */
    assert_int_equal(read_as(f, NODE_POD,
                             "{\"metadata\":{\"labels\":{\"kubernetes.io/config.mirror\":\"\"}},"
                             "\"spec\":{\"nodeName\":\"one\",\"serviceAccountName\":\"sa\"}}"),
                     ST_OK);
    assert_int_equal(f->refs.count, 1);
}

static void the_secrets_of_a_volume_have_its_own_namespaces(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        read_as(f, NODE_VOLUME,
                "{\"spec\":{\"claimRef\":{\"namespace\":\"bank\",\"name\":\"c\"},\"csi\":{"
                "\"nodeStageSecretRef\":{\"namespace\":\"storage\",\"name\":\"stage\"},"
                "\"controllerPublishSecretRef\":{\"namespace\":\"storage\",\"name\":"
                "\"controller\"}},\"rbd\":{\"secretRef\":{\"name\":\"rbd\"}}}}"),
        ST_OK);
    assert_true(slice_is(f->refs.claim.namespace, "bank"));
    assert_true(slice_is(f->refs.claim.name, "c"));
    assert_true(has(f, NODE_SECRET, "storage", "stage"));
    assert_true(has(f, NODE_SECRET, "bank", "rbd"));
    assert_int_equal(f->refs.count, 2);
    assert_int_equal(read_as(f, NODE_VOLUME, "{\"spec\":{}}"), ST_OK);
    assert_int_equal(f->refs.claim.name.len, 0);
}

static void what_is_not_an_object_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {"", "[]", "{", "{\"spec\":", "{\"spec\":{]}", "x\x01"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_int_not_equal(read_as(f, NODE_POD, texts[i]), ST_OK);
    /* Other types than those of Kubernetes name nothing. */
    assert_int_equal(read_as(f, NODE_POD,
                             "{\"spec\":{\"nodeName\":7,\"volumes\":{\"a\":1},\"containers\":"
                             "[1,[],{\"env\":{}}]}}"),
                     ST_OK);
    assert_int_equal(f->refs.node.len, 0);
    assert_int_equal(
        read_as(f, NODE_POD, "{\"spec\":{\"nodeName\":\"n\",\"volumes\":[7],\"containers\":[1]}}"),
        ST_OK);
    assert_int_equal(f->refs.count, 0);
}

static void a_pod_names_a_limited_number_of_objects(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{\"spec\":{\"nodeName\":\"n\",\"imagePullSecrets\":["),
                     ST_OK);
    for (int i = 0; i < NODE_NAMED_MAX + 10; i++)
        assert_int_equal(buf_append_format(&text, "%s{\"name\":\"s%d\"}", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("]}}", 4)), ST_OK);
    assert_int_equal(read_as(f, NODE_POD, (const char *)text.ptr), ST_OK);
    assert_int_equal(f->refs.count, NODE_NAMED_MAX);
    assert_true(has(f, NODE_SECRET, "shop", "s0"));
    assert_false(has(f, NODE_SECRET, "shop", "s4096"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pod_names_what_its_kubelet_needs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mirror_pod_and_one_without_a_node_name_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_secrets_of_a_volume_have_its_own_namespaces, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_an_object_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_names_a_limited_number_of_objects, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
