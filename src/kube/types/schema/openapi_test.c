#include "kube/types/schema/openapi.h"

#include "codec/json/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Reads in chunks of that size. */
static struct buf read_all(const char *api_version, size_t piece)
{
    struct kube_openapi *document;
    struct buf text = {0};
    size_t len;
    assert_int_equal(kube_openapi_open(slice_from_text(api_version), &document), ST_OK);
    do {
        assert_int_equal(buf_reserve(&text, piece), ST_OK);
        assert_int_equal(kube_openapi_read(document, text.ptr + text.len, piece, &len), ST_OK);
        text.len += len;
    } while (len);
    kube_openapi_close(document);
    return text;
}

static void documents_are_the_same_in_chunks_of_any_size(void **state)
{
    (void)state;
    struct buf large = read_all("apps/v1", 1 << 20), small = read_all("apps/v1", 7);
    assert_int_equal(large.len, small.len);
    assert_memory_equal(large.ptr, small.ptr, large.len);
    buf_fini(&large);
    buf_fini(&small);
}

static void documents_have_merge_keys_and_patch_parameters(void **state)
{
    (void)state;
    struct arena arena;
    struct error error;
    struct json_node *root;
    struct buf text = read_all("v1", 4096);
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(json_tree_read(&arena, buf_slice(&text), &root, &error), ST_OK);
    struct json_node *schemas = json_node_path(root, "components.schemas");
    struct json_node *spec = json_node_named(schemas, "io.k8s.api.core.v1.PodSpec");
    struct json_node *containers = json_node_path(spec, "properties.containers");
    assert_true(json_node_text_is(containers, "x-kubernetes-patch-merge-key", "name"));
    assert_true(json_node_text_is(spec, "type", "object"));
    struct json_node *path = json_node_named(json_node_named(root, "paths"),
                                             "/api/v1/namespaces/{namespace}/pods/{name}");
    struct json_node *parameters = json_node_path(path, "patch.parameters");
    assert_true(json_node_text_is(json_node_item(parameters, 2), "name", "fieldValidation"));
    arena_fini(&arena);
    buf_fini(&text);
}

static void unknown_versions_have_no_document(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", "v2", "apps", "apps/v1beta1", "meta.k8s.io/v1"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        struct kube_openapi *document;
        assert_int_equal(kube_openapi_open(slice_from_text(unknown[i]), &document), ST_NOT_FOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_the_same_in_chunks_of_any_size),
        cmocka_unit_test(documents_have_merge_keys_and_patch_parameters),
        cmocka_unit_test(unknown_versions_have_no_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
