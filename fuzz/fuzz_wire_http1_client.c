/* Any bytes as what a server of HTTP/1.1 sends. The first byte is the seed for how the rest is
 * split, and for what the program does with its calls. */
#include "cost.h"

#include "base/clock.h"
#include "wire/http/http1/client.h"

#include <assert.h>

struct life {
    struct http1_client *client;
    struct http1_call call;
    struct http_source source; /* gives a body, or what follows a 101 */
    bool upgrades, input_ended;
    uint32_t seed;
    unsigned starts, ends;
    size_t body_bytes;
};

static uint32_t random_of(struct life *life)
{
    life->seed = life->seed * 1664525u + 1013904223u;
    return life->seed >> 8;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct life *life = CONTAINER_OF(source, struct life, source);
    uint32_t choice = random_of(life) % 8;
    *ret_len = choice < 2 ? 0 : size_min(room, 1 + random_of(life) % 300);
    memset(dst, 'x', *ret_len);
    return choice == 0 ? HTTP_FILL_DONE : choice < 4 ? HTTP_FILL_PARKED : HTTP_FILL_MORE;
}

static void start(struct life *life)
{
    uint8_t room[512];
    struct http1_client_request request = {
        .method = SLICE_LITERAL("GET"),
        .target = SLICE_LITERAL("/"),
        .host = SLICE_LITERAL("h"),
    };
    uint32_t choice = random_of(life) % 8;
    if (life->call.client)
        return;
    life->upgrades = choice < 2;
    life->input_ended = false;
    if (choice < 2)
        request.upgrade = SLICE_LITERAL("raw");
    if (choice < 4)
        request.source = &life->source;
    request.source_bytes = choice == 2 ? 100 : HTTP1_UNKNOWN;
    if (http1_client_start(life->client, &life->call, &request, 1) != ST_OK)
        return;
    life->starts++;
    if (random_of(life) % 8)
        assert(http1_client_fill(life->client, room, sizeof(room), 1) > 0);
}

/* What the owner of the call does, and what is sent. */
static void act(struct life *life)
{
    uint8_t room[600];
    uint32_t choice = random_of(life) % 8;
    if (choice < 2)
        http1_client_wake(&life->call, 1);
    else if (choice == 2)
        http1_client_withhold(&life->call, random_of(life) % 2, 1);
    else if (choice == 3 && http1_client_timeout(life->client) != CLOCK_NEVER)
        assert(!http1_client_is_idle(life->client));
    if (choice < 6)
        (void)http1_client_fill(life->client, room, random_of(life) % sizeof(room), 1);
    http1_client_check(life->client);
}

static struct life *life_of(struct http1_call *call)
{
    return CONTAINER_OF(call, struct life, call);
}

static void on_head(struct http1_call *call, const struct http1_response *response)
{
    bool raw = response->status == 101 && life_of(call)->upgrades;
    assert(raw || (response->status >= 200 && response->status <= 999));
    if (random_of(life_of(call)) % 64 == 0) {
        life_of(call)->ends++;
        http1_client_cancel(call);
    }
}

static void on_body(struct http1_call *call, struct slice bytes)
{
    assert(!life_of(call)->input_ended);
    assert(bytes.len > 0 || life_of(call)->upgrades);
    life_of(call)->input_ended = bytes.len == 0;
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
    struct life life = {.call = {.ops = &ops}, .source.fill = fill};
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
        act(&life);
        rest = slice_sub(rest, n, rest.len - n);
    }
    if (random_of(&life) % 2)
        http1_client_feed_end(life.client);
    act(&life);
    http1_client_free(life.client);
    assert(life.starts == life.ends && life.body_bytes <= size);
    return 0;
}
