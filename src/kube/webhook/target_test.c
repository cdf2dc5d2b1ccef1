/* Targets: what clientConfig says, and what follows from it. */
#include "kube/webhook/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ' stands for ". */
static const struct kube_webhook_target *read_target(struct arena *arena, const char *config)
{
    size_t size = strlen(config) + 1;
    char *text = arena_alloc(arena, size);
    struct json_node *root;
    struct error error;
    memcpy(text, config, size);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return kube_webhook_target_read(arena, root);
}

static void expect_text(struct slice text, const char *expected)
{
    char copy[512];
    snprintf(copy, sizeof(copy), "%.*s", SLICE_ARGS(text));
    assert_string_equal(copy, expected);
}

static void url_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host;
        unsigned port;
        const char *authority, *path;
        bool local;
    } rows[] = {
        {"https://a.example", "a.example", 443, "a.example", "/", false},
        {"https://a.example:8443/", "a.example", 8443, "a.example:8443", "/", false},
        {"https://a.example:/x", "a.example", 443, "a.example", "/x", false},
        {"https://10.0.0.1:1/a/b/", "10.0.0.1", 1, "10.0.0.1:1", "/a/b", false},
        {"https://[::1]/a//b/../c/.", "::1", 443, "[::1]", "/a/c", true},
        {"https://[2001:db8::1]:9/", "2001:db8::1", 9, "[2001:db8::1]:9", "/", false},
        {"https://LocalHost:9/../..", "LocalHost", 9, "LocalHost:9", "/", true},
        {"https://127.1.2.3/a%2Fb%20c", "127.1.2.3", 443, "127.1.2.3", "/a/b%20c", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char config[256];
        struct arena arena;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        snprintf(config, sizeof(config), "{'url':'%s','caBundle':'YWJj'}", rows[i].url);
        const struct kube_webhook_target *t = read_target(&arena, config);
        assert_non_null(t);
        expect_text(t->url, rows[i].url);
        expect_text(t->host, rows[i].host);
        expect_text(t->authority, rows[i].authority);
        expect_text(t->path, rows[i].path);
        expect_text(t->ca_pem, "abc");
        assert_int_equal(t->port, rows[i].port);
        assert_false(kube_webhook_target_is_service(t));
        assert_int_equal(kube_webhook_target_is_local(t), rows[i].local);
        arena_fini(&arena);
    }
}

static void service_is_read(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct kube_webhook_target *t =
        read_target(&arena, "{'service':{'namespace':'a','name':'b'}}");
    assert_true(kube_webhook_target_is_service(t) && !kube_webhook_target_is_local(t));
    expect_text(t->host, "b.a.svc");
    expect_text(t->authority, "b.a.svc:443");
    expect_text(t->path, "/");
    assert_int_equal(t->service_port, 443);
    assert_int_equal(t->ca_pem.len, 0);
    t = read_target(
        &arena, "{'service':{'namespace':'a','name':'b','path':'/x/y','port':8443},'url':null}");
    expect_text(t->authority, "b.a.svc:8443");
    expect_text(t->path, "/x/y");
    arena_fini(&arena);
}

static void what_is_not_valid_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "[]",
        "{'url':''}",
        "{'url':'http://a.example'}",
        "{'url':'https://'}",
        "{'url':'https://a.example:65536'}",
        "{'url':'https://a b'}",
        "{'url':5}",
        "{'url':'https://a.example','caBundle':'*'}",
        "{'service':{'name':'b'}}",
        "{'service':{'namespace':'a'}}",
        "{'service':{'namespace':'a','name':'b','port':65536}}",
        "{'service':{'namespace':'a','name':'b','port':'x'}}",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        if (read_target(&arena, rows[i]))
            fail_msg("%s", rows[i]);
        arena_fini(&arena);
    }
}

/* A host that no connection could name. */
static void long_host_is_refused(void **state)
{
    (void)state;
    char config[512];
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (int len = 253; len <= 254; len++) {
        snprintf(config, sizeof(config), "{'url':'https://%0*d.example'}", len - 8, 0);
        assert_int_equal(read_target(&arena, config) != NULL, len == 253);
    }
    arena_fini(&arena);
}

static void targets_are_equal_in_all_their_parts(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{'url':'https://a.example/x'}",
        "{'url':'https://a.example/y'}",
        "{'url':'https://a.example/x','caBundle':'YQ=='}",
        "{'url':'https://a.example/x','caBundle':'Yg=='}",
        "{'service':{'namespace':'a','name':'b'}}",
        "{'service':{'namespace':'b','name':'a'}}",
        "{'service':{'namespace':'a','name':'b','path':'/x'}}",
        "{'service':{'namespace':'a','name':'b','port':8443}}",
        "{'service':{'namespace':'a','name':'b'},'caBundle':'YQ=='}",
    };
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            const struct kube_webhook_target *a = read_target(&arena, rows[i]);
            const struct kube_webhook_target *b = read_target(&arena, rows[k]);
            assert_int_equal(kube_webhook_target_equal(a, b), i == k);
            assert_int_equal(a->hash == b->hash, i == k);
        }
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(url_is_read),
        cmocka_unit_test(service_is_read),
        cmocka_unit_test(what_is_not_valid_is_refused),
        cmocka_unit_test(long_host_is_refused),
        cmocka_unit_test(targets_are_equal_in_all_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
