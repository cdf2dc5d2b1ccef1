#include "kube/server/bed_test.h"

#include "codec/json/tree.h"
#include "kube/server/custom_openapi.h"

enum { KINDS = 6, LONG = 60 * 1024 };

#define DOCUMENT "/openapi/v3/apis/example.com/v1"

static void define(int number)
{
    static char text[LONG + 1024];
    int len = snprintf(text, sizeof(text),
                       "{\"metadata\":{\"name\":\"k%d.example.com\"},\"spec\":{\"group\":"
                       "\"example.com\",\"scope\":\"Cluster\",\"names\":{\"plural\":\"k%d\","
                       "\"kind\":\"K%d\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
                       "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
                       "\"description\":\"",
                       number, number, number);
    memset(text + len, 'x', LONG);
    snprintf(text + len + LONG, sizeof(text) - (size_t)len - LONG, "\"}}}]}}");
    struct peer *peer = send_json("POST", CRDS, text);
    run();
    assert_answer(peer, 201, NULL);
}

static struct json_node *schemas_of(struct arena *arena, const struct peer *peer)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, buf_slice(&peer->answer), &root, &error), ST_OK);
    struct json_node *paths = json_node_named(root, "paths");
    assert_true(paths && paths->count >= KINDS);
    return json_node_path(root, "components.schemas");
}

static void the_document_of_custom_kinds_is_made_as_it_is_sent(void **state)
{
    uint8_t bytes[512];
    struct arena arena;
    (void)state;
    begin(1, 100);
    for (int i = 0; i < KINDS; i++)
        define(i);
    struct peer *peer = send_json("GET", DOCUMENT, "");
    struct peer *gone = send_json("GET", DOCUMENT, "");
    run();
    assert_answer(peer, 200, NULL);
    assert_int_equal(peer->answer.len, 0); /* nothing is made before it is read */
    (void)http_exchange_fill(&gone->x, bytes, sizeof(bytes));
    leave(gone);
    while (http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
    }
    arena_init(&arena, NULL, 0, 16 << 20);
    struct json_node *schemas = schemas_of(&arena, peer);
    for (int i = 0; i < KINDS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "com.example.v1.K%d", i);
        assert_non_null(json_node_path(json_node_named(schemas, name), "properties.metadata"));
    }
    arena_fini(&arena);
    end();
}

static void an_unchanged_document_is_not_sent_again(void **state)
{
    char hash[KUBE_CUSTOM_HASH_BYTES], tag[64];
    (void)state;
    begin(1, 100);
    define(1);
    assert_non_null(send_json("GET", "/openapi/v3", "")); /* reads the definitions */
    run();
    kube_custom_openapi_hash(kube_registry_kinds(bed->api->registry),
                             SLICE_LITERAL("example.com/v1"), hash);
    snprintf(tag, sizeof(tag), "\"%s\"", hash);
    struct peer *known = send_with("GET", DOCUMENT, "if-none-match", tag, "");
    struct peer *other = send_json("GET", "/openapi/v3/apis/example.com/v2", "");
    run();
    assert_answer(known, 304, NULL);
    assert_answer(other, 404, "NotFound");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_of_custom_kinds_is_made_as_it_is_sent),
        cmocka_unit_test(an_unchanged_document_is_not_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
