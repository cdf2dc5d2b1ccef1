#include "kubeclient/watch/watch_query.h"

#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The query, or the error. */
static const char *query(const struct watch_params *params)
{
    static char text[1024];
    struct buf to = {0};
    struct error error;
    if (watch_query_append(&to, params, &error) == ST_OK)
        snprintf(text, sizeof(text), "%.*s", (int)to.len, (const char *)to.ptr);
    else
        snprintf(text, sizeof(text), "%s", error.text);
    buf_fini(&to);
    return text;
}

static const struct vigil_kube_target pods = {.version = "v1", .resource = "pods"};

static void parameters_are_those_of_client_go(void **state)
{
    (void)state;
    struct watch_params params = {.target = &pods};
    assert_string_equal(query(&params), "/api/v1/pods?watch=true");
    params.version = "12";
    params.bookmarks = true;
    params.timeout_s = 300;
    assert_string_equal(query(&params), "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=12"
                                        "&timeoutSeconds=300&watch=true");
    params.version = "";
    params.initial_events = true;
    params.label_selector = "app=web,tier in (a, b)";
    params.timeout_s = 0;
    assert_string_equal(query(&params),
                        "/api/v1/pods?allowWatchBookmarks=true"
                        "&labelSelector=app%3Dweb%2Ctier%20in%20%28a%2C%20b%29"
                        "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true");
}

static void one_object_is_selected_in_its_collection(void **state)
{
    (void)state;
    struct vigil_kube_target one = {.group = "apps",
                                    .version = "v1",
                                    .resource = "deployments",
                                    .name_space = "a",
                                    .name = "b"};
    struct watch_params params = {.target = &one};
    assert_string_equal(query(&params), "/apis/apps/v1/namespaces/a/deployments"
                                        "?fieldSelector=metadata.name%3Db&watch=true");
    params.field_selector = "spec.x=1";
    assert_string_equal(query(&params), "/apis/apps/v1/namespaces/a/deployments"
                                        "?fieldSelector=metadata.name%3Db%2Cspec.x%3D1&watch=true");
}

static void a_target_that_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    struct vigil_kube_target target = {
        .version = "v1", .resource = "pods", .name = "a", .subresource = "log"};
    struct watch_params params = {.target = &target};
    assert_string_equal(query(&params), "a subresource cannot be watched");
    target.subresource = NULL;
    target.name = "a,b=c";
    assert_string_equal(query(&params), "\"a,b=c\" cannot be the name of an object");
    target.name = NULL;
    target.resource = "..";
    assert_string_equal(query(&params), "the resource \"..\" cannot be a part of a path");
}

static void append(void *ctx)
{
    struct buf to = {0};
    struct error error;
    bool fails = memory_fail_at > 0;
    enum status status = watch_query_append(&to, ctx, &error);
    assert_int_equal(status, fails ? ST_NOMEM : ST_OK);
    buf_fini(&to);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct vigil_kube_target one = {.version = "v1", .resource = "pods", .name = "b"};
    struct watch_params params = {.target = &one, .version = "1", .timeout_s = 1};
    assert_true(each_allocation_fails(append, &params) > 2);
}

/* "json", "protobuf", or the error. */
static const char *format(const char *type)
{
    static struct error error;
    enum framer_format format;
    if (watch_format_read(slice_from_text(type), &format, &error) != ST_OK)
        return error.text;
    return format == FRAMER_JSON ? "json" : "protobuf";
}

static void the_media_type_decides_the_format(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"application/json", "json"},
        {"", "json"}, /* as in client-go */
        {"application/json;stream=watch", "json"},
        {" Application/JSON ; charset=utf-8; Stream=\"watch\" ", "json"},
        {"application/vnd.kubernetes.protobuf;stream=watch", "protobuf"},
        {"application/vnd.kubernetes.protobuf", "protobuf"},
        {"application/json;stream=table",
         "the server answered a watch with \"application/json;stream=table\""},
        {"application/json;stream", "the server answered a watch with \"application/json;stream\""},
        {"text/html; charset=utf-8",
         "the server answered a watch with the unknown media type \"text/html; charset=utf-8\""},
        {"application/json2",
         "the server answered a watch with the unknown media type \"application/json2\""},
        {";stream=watch", "json"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(format(rows[i][0]), rows[i][1]);
}

static void an_unknown_media_type_is_shown_in_part(void **state)
{
    (void)state;
    char type[2000];
    memset(type, 'x', sizeof(type) - 1);
    type[sizeof(type) - 1] = 0;
    assert_in_range(strlen(format(type)), 100, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_client_go),
        cmocka_unit_test(one_object_is_selected_in_its_collection),
        cmocka_unit_test(a_target_that_cannot_be_watched_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_media_type_decides_the_format),
        cmocka_unit_test(an_unknown_media_type_is_shown_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
