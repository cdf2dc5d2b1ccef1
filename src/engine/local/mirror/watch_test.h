/* A client's watch of all keys of a mirror, on the fixture's shard. */
#ifndef VIGIL_ENGINE_LOCAL_MIRROR_WATCH_TEST_H
#define VIGIL_ENGINE_LOCAL_MIRROR_WATCH_TEST_H

#include "base/buf.h"
#include "engine/local/mirror/fixture_test.h"
#include "watch/hub.h"
#include "watch/stream/stream.h"

struct watching {
    struct fixture *f;
    struct watch_stream *stream;
    struct buf bytes;
    bool woken, created, canceled;
    int64_t compact_revision;  /* compact revision of the response that canceled it */
    int64_t progress_revision; /* revision of the last response without events */
    void (*on_event)(struct watching *watching, const struct pb_event *event);
    void *ctx;
};

static inline void watching_wake(void *ctx)
{
    ((struct watching *)ctx)->woken = true;
}

static inline void watching_begin(struct watching *w, int64_t start_revision)
{
    w->stream = watch_stream_new(engine_watch_hub(w->f->shard),
                                 (struct watch_stream_owner){.wake = watching_wake, .ctx = w});
    struct watch_create create = {.key = SLICE_LITERAL("\0"),
                                  .range_end = SLICE_LITERAL("\0"),
                                  .prev_kv = true,
                                  .start_revision = start_revision};
    assert_int_equal(watch_stream_create(w->stream, &create), ST_OK);
}

static inline void watching_end(struct watching *w)
{
    watch_stream_free(w->stream);
    buf_fini(&w->bytes);
}

static inline void watching_take(struct watching *w, struct slice message)
{
    struct arena arena;
    struct pb_watch_response r;
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(pb_decode(&pb_watch_response_table, message, &arena, &r), ST_OK);
    w->created |= r.created;
    if (r.canceled) {
        w->canceled = true;
        w->compact_revision = r.compact_revision;
    }
    if (!r.created && !r.canceled && !r.events_count)
        w->progress_revision = r.header->revision;
    for (size_t i = 0; i < r.events_count; i++)
        w->on_event(w, &r.events[i]);
    arena_fini(&arena);
}

static inline void watching_fill(struct watching *w)
{
    uint8_t room[4096];
    bool more = true;
    while (w->woken && more) {
        size_t n = watch_stream_fill(w->stream, room, sizeof(room), &more);
        assert_int_equal(buf_append(&w->bytes, slice_of(room, n)), ST_OK);
        w->woken = more;
    }
    while (w->bytes.len >= 5) {
        const uint8_t *p = w->bytes.ptr;
        size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (w->bytes.len < 5 + len)
            return;
        watching_take(w, slice_of(p + 5, len));
        buf_consume(&w->bytes, 5 + len);
    }
}

static inline void watching_turn(struct watching *w, int64_t wait_ns)
{
    loop_turn(w->f->loop, wait_ns);
    engine_shard_turn_begin(w->f->shard);
    watching_fill(w);
    engine_shard_turn_end(w->f->shard);
    engine_shard_flushed(w->f->shard);
}

#endif
