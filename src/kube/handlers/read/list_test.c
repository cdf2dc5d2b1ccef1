/* Lists that are longer than their stored bytes. */
#include "kube/server/bed_test.h"

enum { OBJECTS = 12, LONG = 150 * 1024 };

static char *make_text(const char *head, size_t filler, const char *tail)
{
    size_t size = strlen(head) + filler + strlen(tail) + 1;
    char *text = malloc(size);
    snprintf(text, size, "%s", head);
    memset(text + strlen(head), 'x', filler);
    snprintf(text + strlen(head) + filler, strlen(tail) + 1, "%s", tail);
    return text;
}

static void post(const char *path, const char *head, size_t filler, const char *tail)
{
    char *text = make_text(head, filler, tail);
    struct peer *peer = send_json("POST", path, text);
    run();
    assert_answer(peer, 201, NULL);
    free(text);
}

/* Reads the whole answer. */
static void pull_all(struct peer *peer)
{
    static uint8_t bytes[1 << 16];
    for (int i = 0; i < 1000 && !peer->over; i++) {
        engine_shard_turn_begin(bed->shard);
        while (http_exchange_flows(&peer->x)) {
            size_t n = http_exchange_fill(&peer->x, bytes, sizeof(bytes));
            assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
        }
        engine_shard_turn_end(bed->shard);
        run();
    }
}

static size_t count_of(const struct peer *peer, const char *text)
{
    size_t count = 0;
    struct slice rest = buf_slice(&peer->answer);
    for (const uint8_t *at; (at = memmem(rest.ptr, rest.len, text, strlen(text))) != NULL; count++)
        rest = slice_of(at + 1, (size_t)(rest.ptr + rest.len - at - 1));
    return count;
}

static void a_gathered_list_leaves_turns_to_others(void **state)
{
    int turns = 0;
    (void)state;
    begin(1, 100);
    for (int i = 0; i < OBJECTS; i++) {
        char head[64];
        snprintf(head, sizeof(head), "{\"metadata\":{\"name\":\"c%d\"},\"data\":{\"a\":\"", i);
        post(CMS, head, LONG, "\"}}");
    }
    struct peer *list = send_with("GET", CMS, "accept", "application/vnd.kubernetes.protobuf", "");
    for (; !list->code; turns++) {
        loop_turn(bed->loop, 0);
        (void)fake_step(bed->engine);
    }
    assert_int_equal(list->code, 200);
    assert_true(turns >= OBJECTS - 2);
    end();
}

#define DEFINITION(of)                                                                        \
    "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{" \
    "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"" of
#define CLOSED                                                                      \
    "}}}}}],\"group\":\"example.com\",\"scope\":\"Cluster\",\"names\":{\"plural\":" \
    "\"hats\",\"kind\":\"Hat\"}},\"metadata\":{\"name\":\"hats.example.com\"}}"

static void a_list_that_defaults_make_long_is_made_as_it_is_sent(void **state)
{
    (void)state;
    begin(1, 100);
    post(CRDS, DEFINITION(), 0, CLOSED);
    for (int i = 0; i < OBJECTS; i++) {
        char text[128];
        snprintf(text, sizeof(text),
                 "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":"
                 "\"h%d\"}}",
                 i);
        post(HATS, text, 0, "");
    }
    char *grown = make_text(DEFINITION(",\"default\":\""), LONG, "\"" CLOSED);
    struct peer *patch = send_patch(CRDS "/hats.example.com", grown);
    run();
    assert_answer(patch, 200, NULL);
    free(grown);

    struct peer *list = send_json("GET", HATS, "");
    run();
    assert_answer(list, 200, NULL);
    assert_true(list->answer.len < 8 * LONG); /* the rest has not been made */
    pull_all(list);
    assert_int_equal(count_of(list, "\"kind\":\"Hat\""), OBJECTS);
    assert_true(list->answer.len > OBJECTS * LONG);
    assert_true(said(list, "}]}\n"));

    struct peer *yaml = send_with("GET", HATS, "accept", "application/yaml", "");
    run();
    assert_answer(yaml, 406, "NotAcceptable");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gathered_list_leaves_turns_to_others),
        cmocka_unit_test(a_list_that_defaults_make_long_is_made_as_it_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
