/* The other end of a stream in tests: pulls its bytes and decodes the responses. */
#ifndef VIGIL_WATCH_CLIENT_TEST_H
#define VIGIL_WATCH_CLIENT_TEST_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "watch/hub.h"
#include "watch/stream/stream.h"

struct client {
    struct watch_stream *stream;
    struct buf bytes;
    bool awake;
    unsigned wakes;
    unsigned woken_at; /* its last wake, counted over all clients */
    struct arena arena;
    void *ctx;
};

static void client_wake(void *ctx)
{
    static unsigned count;
    struct client *client = ctx;
    assert(!client->awake);
    client->awake = true;
    client->wakes++;
    client->woken_at = ++count;
}

static inline void client_open(struct client *client, struct watch_hub *hub)
{
    *client = (struct client){0};
    arena_init(&client->arena, NULL, 0, SIZE_MAX);
    client->stream =
        watch_stream_new(hub, (struct watch_stream_owner){.wake = client_wake, .ctx = client});
}

static inline void client_close(struct client *client)
{
    watch_stream_free(client->stream);
    buf_fini(&client->bytes);
    arena_fini(&client->arena);
    *client = (struct client){0};
}

/* Pulls once if it was woken. Returns the number of bytes. */
static inline size_t client_pull(struct client *client, size_t room)
{
    if (!client->awake)
        return 0;
    uint8_t *dst = xmalloc(room); /* exactly, so that the sanitizer finds a byte too many */
    bool more;
    size_t len = watch_stream_fill(client->stream, dst, room, &more);
    assert(len <= room);
    client->awake = more;
    enum status status = buf_append(&client->bytes, slice_of(dst, len));
    assert(status == ST_OK);
    free(dst);
    return len;
}

/* The next whole response; NULL when there is none. Valid until the next call. */
static inline struct pb_watch_response *client_next(struct client *client)
{
    if (client->bytes.len < 5)
        return NULL;
    const uint8_t *at = client->bytes.ptr;
    assert(at[0] == 0);
    size_t len = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    if (client->bytes.len - 5 < len)
        return NULL;
    arena_fini(&client->arena);
    arena_init(&client->arena, NULL, 0, SIZE_MAX);
    struct slice message;
    enum status status = arena_dup(&client->arena, slice_of(at + 5, len), &message);
    assert(status == ST_OK);
    buf_consume(&client->bytes, 5 + len);
    struct pb_watch_response *response = arena_alloc(&client->arena, sizeof(*response));
    status = pb_decode(&pb_watch_response_table, message, &client->arena, response);
    assert(status == ST_OK);
    return response;
}

#endif
