/* Any bytes as what a server of HTTP/1.1 sends. The first byte is the seed for how the rest is
 * split, and for what the program does with its calls. */
#include "cost.h"

#include "base/clock.h"
#include "wire/http/http1/client.h"

#include <assert.h>

struct life {
    struct http1_client *client;
    struct http1_call call;
    uint32_t seed;
    unsigned starts, ends;
    size_t body_bytes;
};

static uint32_t random_of(struct life *life)
{
    life->seed = life->seed * 1664525u + 1013904223u;
    return life->seed >> 8;
}

static void start(struct life *life)
{
    static const struct http1_client_request request = {
        .method = {(const uint8_t *)"GET", 3},
        .target = {(const uint8_t *)"/", 1},
        .host = {(const uint8_t *)"h", 1},
    };
    uint8_t room[64];
    if (life->call.client || http1_client_start(life->client, &life->call, &request, 1) != ST_OK)
        return;
    life->starts++;
    if (random_of(life) % 8)
        assert(http1_client_fill(life->client, room, sizeof(room)) > 0);
}

static struct life *life_of(struct http1_call *call)
{
    return CONTAINER_OF(call, struct life, call);
}

static void on_head(struct http1_call *call, const struct http1_response *response)
{
    assert(response->status >= 200 && response->status <= 999);
    if (random_of(life_of(call)) % 64 == 0) {
        life_of(call)->ends++;
        http1_client_cancel(call);
    }
}

static void on_body(struct http1_call *call, struct slice bytes)
{
    assert(bytes.len > 0);
    life_of(call)->body_bytes += bytes.len;
    if (random_of(life_of(call)) % 64 == 0) {
        life_of(call)->ends++;
        http1_client_cancel(call);
    }
}

static void on_end(struct http1_call *call, enum status status, const char *reason)
{
    assert((status == ST_OK) == (*reason == '\0'));
    life_of(call)->ends++;
    if (random_of(life_of(call)) % 2)
        start(life_of(call));
}

FUZZ_INPUT()
{
    static const struct http1_call_ops ops = {on_head, on_body, on_end};
    struct http1_client_limits limits = HTTP1_CLIENT_LIMITS_DEFAULT;
    struct life life = {.call = {.ops = &ops}};
    if (size == 0)
        return 0;
    life.seed = data[0];
    limits.head_bytes_max = 2000;
    if (http1_client_new(&limits, (struct http1_client_hooks){0}, &life.client) != ST_OK)
        return 0;
    struct slice rest = slice_of(data + 1, size - 1);
    while (rest.len && !http1_client_is_over(life.client)) {
        start(&life);
        size_t n = size_min(rest.len, 1 + random_of(&life) % (random_of(&life) % 4 ? 20 : 2000));
        http1_client_feed(life.client, slice_sub(rest, 0, n), 1);
        http1_client_check(life.client);
        rest = slice_sub(rest, n, rest.len - n);
    }
    if (random_of(&life) % 2)
        http1_client_feed_end(life.client);
    http1_client_check(life.client);
    http1_client_free(life.client);
    assert(life.starts == life.ends && life.body_bytes <= size);
    return 0;
}
