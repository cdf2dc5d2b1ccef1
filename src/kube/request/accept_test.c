#include "kube/request/accept.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_supported_clause_with_the_highest_weight_is_used(void **state)
{
    (void)state;
    enum { BOTH = 1 << KUBE_JSON | 1 << KUBE_PROTOBUF };
    static const struct kube_offer offer = {
        .whole = BOTH, .table = 1 << KUBE_JSON, .partial = BOTH, .discovery_v2 = true};
    static const struct {
        const char *accept;
        bool met;
        enum kube_format format;
        enum kube_shape shape;
        bool discovery_v2;
    } cases[] = {
        {"", true, KUBE_JSON, KUBE_WHOLE, false},
        {"*/*", true, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", true, KUBE_JSON,
         KUBE_TABLE, false},
        {"application/json;as=Table;v=v2;g=meta.k8s.io, application/json", true, KUBE_JSON,
         KUBE_WHOLE, false},
        {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", true,
         KUBE_PROTOBUF, KUBE_PARTIAL, false},
        {"application/cbor, application/vnd.kubernetes.protobuf ; q=0.9", true, KUBE_PROTOBUF,
         KUBE_WHOLE, false},
        {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
         true, KUBE_JSON, KUBE_WHOLE, true},
        {"application/json;q=0.5,application/vnd.kubernetes.protobuf;q=0.75", true, KUBE_PROTOBUF,
         KUBE_WHOLE, false},
        {"*/*,application/vnd.kubernetes.protobuf", true, KUBE_PROTOBUF, KUBE_WHOLE, false},
        {"application/json;q=1.5,application/vnd.kubernetes.protobuf", true, KUBE_JSON, KUBE_WHOLE,
         false},
        {"application/vnd.kubernetes.protobuf;q=x,application/json;q=0.1", true, KUBE_JSON,
         KUBE_WHOLE, false},
        {"application/json;q=0", true, KUBE_JSON, KUBE_WHOLE, false},
        {"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json", true,
         KUBE_JSON, KUBE_WHOLE, false},
        {"*/*;q=0.9,application/vnd.kubernetes.protobuf;q=0.1", true, KUBE_PROTOBUF, KUBE_WHOLE,
         false}, /* as in Go: a named type precedes a later one of higher weight */
        {"*", true, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;stream=watch", true, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;stream=other", false, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;v=v1", false, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;as=Other;g=meta.k8s.io;v=v1", false, KUBE_JSON, KUBE_WHOLE, false},
        {"application/json;sv=v2", false, KUBE_JSON, KUBE_WHOLE, false},
        {"application", false, KUBE_JSON, KUBE_WHOLE, false},
        {"a/b/c", false, KUBE_JSON, KUBE_WHOLE, false},
        {"text/html", false, KUBE_JSON, KUBE_WHOLE, false},
        {"application/yaml", false, KUBE_JSON, KUBE_WHOLE, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_accept accept;
        assert_int_equal(kube_accept_parse(slice_from_text(cases[i].accept), &offer, &accept),
                         cases[i].met);
        if (!cases[i].met)
            continue;
        assert_int_equal(accept.format, cases[i].format);
        assert_int_equal(accept.shape, cases[i].shape);
        assert_int_equal(accept.discovery_v2, cases[i].discovery_v2);
    }
}

static void the_router_compares_types_literally(void **state)
{
    static const struct {
        const char *accept;
        bool routes;
    } cases[] = {
        {"", true},
        {"*/*", true},
        {"text/html, application/yaml;q=0.1", true},
        {"application/vnd.kubernetes.protobuf;as=Nothing", true},
        {"application/*", false},
        {"application/cbor", false},
        {"Application/JSON", false},
        {",", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(kube_accept_routes(slice_from_text(cases[i].accept)), cases[i].routes);
}

static void clauses_after_the_limit_are_ignored(void **state)
{
    static const struct kube_offer offer = {.whole = 1 << KUBE_JSON};
    struct kube_accept accept;
    struct buf text = {0};
    (void)state;
    for (int i = 0; i < KUBE_ACCEPT_CLAUSES_MAX; i++)
        assert_int_equal(buf_append_text(&text, "text/html,"), ST_OK);
    assert_int_equal(buf_append_text(&text, "application/json"), ST_OK);
    assert_false(kube_accept_parse(buf_slice(&text), &offer, &accept));
    assert_true(kube_accept_parse(slice_sub(buf_slice(&text), 10, text.len - 10), &offer, &accept));
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_supported_clause_with_the_highest_weight_is_used),
        cmocka_unit_test(the_router_compares_types_literally),
        cmocka_unit_test(clauses_after_the_limit_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
