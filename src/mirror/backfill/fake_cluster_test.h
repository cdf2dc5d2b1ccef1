/*
 * A cluster for tests of the past: watches over a history in memory (watch/history_test.h). It
 * sends what the test lets it send, in messages and fragments of any size, breaks off where the
 * test wants, compacts, and answers progress requests as etcd does: an old one at once, a new one
 * only if everything was sent. Header only.
 */
#ifndef VIGIL_MIRROR_BACKFILL_FAKE_CLUSTER_TEST_H
#define VIGIL_MIRROR_BACKFILL_FAKE_CLUSTER_TEST_H

#include "base/memory/arena.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/backfill/backfill.h"
#include "watch/history_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct upstream_call {
    struct backfill_source *source;
    struct list in_cluster;
    struct buf key, end;
    int64_t next;   /* the first revision that was not sent completely */
    size_t next_at; /* events of it that were sent, in fragments */
    bool created, created_sent, paused, progress, ended;
};

static struct {
    const struct memory_history *memory; /* all revisions up to memory->revision */
    struct list calls;
    size_t count, opened, started_at_most;
    int64_t compacted;
    bool refuses;    /* calls cannot be opened */
    bool denies;     /* watches are refused until a token is renewed */
    int64_t damaged; /* this revision cannot be read: watches that need it are canceled; 0: none */
    bool damaged_ends; /* or their calls end */
    size_t progress_asked, renewals;

    /* As in mirror_state. */
    _Atomic int64_t known_oldest, known_compacted;
    _Atomic bool progress_reliable, connected;
    _Atomic uint64_t cluster_id, times_connected;
} fake;

static inline void fake_begin(const struct memory_history *memory)
{
    memset(&fake, 0, sizeof(fake));
    fake.memory = memory;
    atomic_store(&fake.cluster_id, 7);
    atomic_store(&fake.connected, true);
    atomic_store(&fake.times_connected, 1);
    list_init(&fake.calls);
}

static inline struct backfill_cluster fake_known(void)
{
    return (struct backfill_cluster){.oldest = &fake.known_oldest,
                                     .compacted = &fake.known_compacted,
                                     .progress_reliable = &fake.progress_reliable,
                                     .cluster_id = &fake.cluster_id,
                                     .connected = &fake.connected,
                                     .times_connected = &fake.times_connected};
}

static inline void fake_compacted(void *ctx, int64_t revision)
{
    (void)ctx;
    assert_true(revision > 0 && revision <= fake.compacted);
    if (revision > atomic_load(&fake.known_compacted))
        atomic_store(&fake.known_compacted, revision);
}

/* -- Calls -- */

static inline void fake_drop(struct upstream_call *call)
{
    list_remove(&call->in_cluster);
    fake.count--;
    buf_fini(&call->key);
    buf_fini(&call->end);
    free(call);
}

static struct upstream_call *fake_open(void *ctx, struct backfill_source *source)
{
    (void)ctx;
    if (fake.refuses)
        return NULL;
    struct upstream_call *call = xcalloc(1, sizeof(*call));
    call->source = source;
    list_push_back(&fake.calls, &call->in_cluster);
    fake.opened++;
    if (++fake.count > fake.started_at_most)
        fake.started_at_most = fake.count;
    return call;
}

static enum status fake_send(struct upstream_call *call, struct slice message)
{
    struct arena arena;
    struct pb_watch_request request;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(pb_decode(&pb_watch_request_table, message, &arena, &request), ST_OK);
    if (request.request_union_case == PB_WATCH_REQUEST_PROGRESS_REQUEST) {
        call->progress = true;
        fake.progress_asked++;
    } else {
        const struct pb_watch_create_request *create = request.create_request;
        assert_false(call->created);
        assert_true(create->prev_kv && create->fragment && create->start_revision > 0);
        call->created = true;
        call->next = create->start_revision;
        assert_int_equal(buf_append(&call->key, create->key), ST_OK);
        assert_int_equal(buf_append(&call->end, create->range_end), ST_OK);
    }
    arena_fini(&arena);
    return ST_OK;
}

static void fake_pause(struct upstream_call *call, bool paused)
{
    call->paused = paused;
}

static void fake_renew_token(struct upstream_call *call)
{
    call->paused = true; /* it still exists */
    fake.denies = false;
    fake.renewals++;
}

static void fake_cancel(struct upstream_call *call)
{
    fake_drop(call);
}

static inline struct backfill_calls fake_calls(void)
{
    return (struct backfill_calls){fake_open,        fake_send,   fake_pause,
                                   fake_renew_token, fake_cancel, NULL};
}

/* -- What the cluster sends -- */

#define FAKE_DAMAGE slice_from_text(status_text(ST_CORRUPT))

static inline void fake_respond(struct upstream_call *call, struct pb_watch_response response)
{
    struct pb_response_header header = {.cluster_id = 7, .revision = fake.memory->revision};
    struct buf message = {0};
    response.header = &header;
    assert_int_equal(pb_append(&pb_watch_response_table, &response, &message), ST_OK);
    backfill_source_received(call->source, buf_slice(&message));
    buf_fini(&message);
}

/* The call breaks. */
static inline void fake_break(struct upstream_call *call)
{
    struct backfill_source *source = call->source;
    fake_drop(call);
    backfill_source_ended(source, fake.damaged_ends ? FAKE_DAMAGE : SLICE_EMPTY);
}

static inline bool fake_wants(const struct upstream_call *call, const struct memory_event *event)
{
    struct slice key = buf_slice(&event->key), end = buf_slice(&call->end);
    return slice_compare(buf_slice(&call->key), key) <= 0 &&
           (slice_equal(end, slice_of("\0", 1)) || slice_compare(key, end) < 0);
}

static inline void fake_decode(struct slice field, struct arena *arena,
                               struct pb_key_value **ret_kv)
{
    struct pb_event event;
    assert_int_equal(pb_decode(&pb_event_table, field, arena, &event), ST_OK);
    *ret_kv = event.kv;
}

/*
 * Sends the next events: those of at most `revisions` revisions, and at most `events` of them,
 * which may end within a revision. Returns whether there were any.
 */
static inline bool fake_send_events(struct upstream_call *call, size_t revisions, size_t events)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct pb_event *made = arena_calloc(&arena, events, sizeof(*made));
    size_t count = 0;
    while (call->next <= fake.memory->revision && revisions && count < events) {
        const struct memory_revision *at = &fake.memory->revisions[call->next < 2 ? 0 : call->next];
        size_t before = count;
        while (call->next_at < at->count && count < events) {
            const struct memory_event *event = &at->events[call->next_at++];
            if (!fake_wants(call, event))
                continue;
            made[count].type = event->tombstone ? PB_EVENT_TYPE_DELETE : 0;
            fake_decode(buf_slice(&event->field), &arena, &made[count].kv);
            if (event->prev.len)
                fake_decode(buf_slice(&event->prev), &arena, &made[count].prev_kv);
            count++;
        }
        if (call->next_at < at->count)
            break;
        call->next_at = 0;
        call->next++;
        revisions -= count > before;
    }
    if (count)
        fake_respond(call, (struct pb_watch_response){
                               .events = made,
                               .events_count = count,
                               .fragment = call->next_at > 0,
                           });
    arena_fini(&arena);
    return count > 0;
}

/* Sends what comes next. Returns whether it was anything. */
static inline bool fake_step(struct upstream_call *call, size_t revisions, size_t events)
{
    if (call->ended || !call->created)
        return false;
    if (!call->created_sent) {
        call->created_sent = true;
        fake_respond(call, (struct pb_watch_response){.created = true});
        return true;
    }
    if (fake.denies) {
        call->ended = true;
        fake_respond(call, (struct pb_watch_response){.canceled = true});
        return true;
    }
    if (call->next < fake.compacted && !call->next_at) {
        call->ended = true;
        fake_respond(
            call, (struct pb_watch_response){.canceled = true, .compact_revision = fake.compacted});
        return true;
    }
    if (fake.damaged && call->next <= fake.damaged &&
        fake.damaged - call->next < (int64_t)revisions) {
        revisions = (size_t)(fake.damaged - call->next);
        if (!revisions && fake.damaged_ends) {
            fake_break(call);
            return true;
        }
        if (!revisions) {
            call->ended = true;
            fake_respond(
                call, (struct pb_watch_response){.canceled = true, .cancel_reason = FAKE_DAMAGE});
            return true;
        }
    }
    bool asked = call->progress;
    call->progress = false;
    if (asked && !atomic_load(&fake.progress_reliable)) {
        fake_respond(call, (struct pb_watch_response){.watch_id = -1}); /* it may be wrong */
        return true;
    }
    if (fake_send_events(call, revisions, events))
        return true;
    if (asked && call->next > fake.memory->revision)
        fake_respond(call, (struct pb_watch_response){.watch_id = -1});
    return asked;
}

static inline struct upstream_call *fake_call(size_t i)
{
    struct list *link = fake.calls.next;
    assert_true(i < fake.count);
    for (; i; i--)
        link = link->next;
    return LIST_ENTRY(link, struct upstream_call, in_cluster);
}

#endif
