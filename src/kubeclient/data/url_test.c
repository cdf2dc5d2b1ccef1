#include "kubeclient/data/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The path, or the error. The parts are those of a target in their order. */
static const char *path(const char *const parts[6])
{
    static char text[1024];
    vigil_kube_target target = {parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]};
    struct buf to = {0};
    struct error error;
    if (url_append_target(&to, &target, &error) == ST_OK)
        snprintf(text, sizeof(text), "%.*s", (int)to.len, (const char *)to.ptr);
    else
        snprintf(text, sizeof(text), "%s", error.text);
    buf_fini(&to);
    return text;
}

#define PATH(...) path((const char *const[6]){__VA_ARGS__})

static void targets_have_paths(void **state)
{
    (void)state;
    assert_string_equal(PATH(NULL, "v1", "pods"), "/api/v1/pods");
    assert_string_equal(PATH("", "v1", "pods", "default"), "/api/v1/namespaces/default/pods");
    assert_string_equal(PATH("apps", "v1", "deployments", "d", "web", "scale"),
                        "/apis/apps/v1/namespaces/d/deployments/web/scale");
    assert_string_equal(PATH(NULL, "v1", "nodes", NULL, "n1"), "/api/v1/nodes/n1");
    assert_string_equal(PATH("rbac.authorization.k8s.io", "v1", "clusterroles", "", "system:node"),
                        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode");
}

static void parts_that_would_change_the_path_are_refused(void **state)
{
    (void)state;
    assert_string_equal(PATH(NULL, "v1", "pods", "a/b"),
                        "the namespace \"a/b\" cannot be a part of a path");
    assert_string_equal(PATH(NULL, "v1", "pods", "n", ".."),
                        "the name \"..\" cannot be a part of a path");
    assert_string_equal(PATH(NULL, "v1", "pods", "n", "a%2f"),
                        "the name \"a%2f\" cannot be a part of a path");
    assert_string_equal(PATH(NULL, "v1", "pods", "n", NULL, "status"),
                        "the subresource \"status\" needs the name of an object");
    assert_string_equal(PATH(NULL, "v1"), "a request needs a version and a resource");
    assert_string_equal(PATH(NULL, "v1", ""), "the resource \"\" cannot be a part of a path");
}

static void parameters_are_escaped(void **state)
{
    (void)state;
    struct buf to = {0};
    size_t count = 0;
    assert_int_equal(
        url_append_parameter(&to, &count, "labelSelector", SLICE_LITERAL("a=b,c in (d, \xc3\xa4)")),
        ST_OK);
    assert_int_equal(url_append_parameter(&to, &count, "limit", SLICE_LITERAL("500")), ST_OK);
    assert_int_equal(url_append_parameter(&to, &count, "zero", slice_of("\0", 1)), ST_OK);
    assert_int_equal(buf_append(&to, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)to.ptr, "?labelSelector=a%3Db%2Cc%20in%20%28d%2C%20%C3%A4%29"
                                              "&limit=500&zero=%00");
    buf_fini(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_have_paths),
        cmocka_unit_test(parts_that_would_change_the_path_are_refused),
        cmocka_unit_test(parameters_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
