/*
 * Random clients against a model. The history is the truth: each watcher must receive exactly what
 * the history says, whatever room its stream had, when it was stopped, and what was compacted.
 *
 *   ordered, unique,   each response continues where the last one ended, with whole revisions,
 *   atomic, reliable   and nothing is left out or repeated
 *   resumable          a watcher from the past begins with the first event it asked for
 *   bookmarkable       after progress at R, nothing up to R follows
 *
 * Header only, because histories of other layers are tested in the same way: they are put between
 * the history in memory and the hub (model_hooks).
 */
#ifndef VIGIL_WATCH_MODEL_TEST_H
#define VIGIL_WATCH_MODEL_TEST_H

#include "base/clock.h"
#include "base/random.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CLIENTS = 4, WATCHES_MAX = 24, KEYS = 12, STEPS = 400 };

/* A watch as the client knows it. */
struct watch {
    struct watch_create create;
    char key[8], end[8];
    int64_t id;
    int64_t next; /* everything below was received */
    bool told_created, cancel_sent;
    struct watch *older; /* links peer.watches, newest first */
};

struct control {
    struct watch *watch; /* NULL: a create that must be refused */
    bool canceled;
};

struct peer {
    struct client client;
    struct watch *watches; /* all that were created and have not ended */
    struct control controls[4096];
    size_t control_first, control_count;
    struct watch *fragmented; /* the watch whose fragments are arriving */
    size_t fragment_events;   /* events of the current revision that arrived */
    bool stalled;
    unsigned events, progress, compactions;
};

struct world {
    struct random random;
    struct memory_history memory;
    struct watch_hub *hub;
    struct peer peers[CLIENTS];
    size_t fragment_bytes;
    bool large_values, many;
    int64_t now_ns;
};

static struct world *world;

/* What another history does in a run. A hook that is NULL has no effect. */
struct model_hooks {
    uint64_t seeds;                      /* seeds of one run; 0: 16 */
    struct watch_history *(*open)(void); /* what the hub reads; NULL: the history in memory */
    void (*opened)(void);                /* the hub exists */
    void (*closing)(void);               /* it is about to be freed */
    void (*closed)(void);
    void (*wrote)(void);      /* a revision was written, which is not published */
    void (*compact)(void);    /* instead of compacting the history in memory */
    bool (*turn)(bool drain); /* at the end of a turn; true: there is more to do */
};

static struct model_hooks model_hooks;

/* -- What a watch should receive -- */

static bool wants(const struct watch *watch, const struct memory_event *event)
{
    struct slice key = buf_slice(&event->key), from = watch->create.key;
    struct slice end = watch->create.range_end;
    if (event->tombstone ? watch->create.no_delete : watch->create.no_put)
        return false;
    if (!end.len)
        return slice_equal(key, from);
    if (slice_compare(key, from) < 0)
        return false;
    return (end.len == 1 && end.ptr[0] == 0) || slice_compare(key, end) < 0;
}

/* The first revision at or after `revision` with something for it; behind the last if none. */
static int64_t next_wanted(const struct watch *watch, int64_t revision)
{
    for (; revision <= world->memory.revision; revision++) {
        if (revision < 2)
            continue;
        const struct memory_revision *at = &world->memory.revisions[revision];
        for (size_t i = 0; i < at->count; i++)
            if (wants(watch, &at->events[i]))
                return revision;
    }
    return revision;
}

static struct slice body_of(struct slice field)
{
    /* `12 len KeyValue`: the length has as many bytes as it needs. */
    size_t at = 1;
    while (field.ptr[at] & 0x80)
        at++;
    return slice_sub(field, at + 1, field.len - at - 1);
}

static void kv_matches(const struct pb_key_value *kv, struct slice field)
{
    assert_non_null(kv);
    struct slice body = body_of(field);
    assert_int_equal(pb_size(&pb_key_value_table, kv), body.len);
    uint8_t *bytes = xmalloc(body.len);
    pb_encode(&pb_key_value_table, kv, bytes, body.len);
    assert_memory_equal(bytes, body.ptr, body.len);
    free(bytes);
}

static void event_matches(const struct watch *watch, const struct pb_event *event,
                          const struct memory_event *expected)
{
    assert_int_equal(event->type, expected->tombstone);
    kv_matches(event->kv, buf_slice(&expected->field));
    bool prev = watch->create.prev_kv && expected->prev.len;
    assert_int_equal(event->prev_kv != NULL, prev);
    if (prev)
        kv_matches(event->prev_kv, buf_slice(&expected->prev));
}

/* -- Receiving -- */

static struct watch *watch_by_id(struct peer *peer, int64_t id)
{
    for (struct watch *watch = peer->watches; watch; watch = watch->older)
        if (watch->id == id && watch->told_created)
            return watch;
    return NULL;
}

static void watch_end(struct peer *peer, struct watch *watch)
{
    struct watch **at = &peer->watches;
    while (*at != watch)
        at = &(*at)->older;
    *at = watch->older;
    for (size_t i = 0; i < peer->control_count; i++) {
        struct control *control = &peer->controls[(peer->control_first + i) % 4096];
        assert_true(control->watch != watch);
    }
    free(watch);
}

static struct control pop_control(struct peer *peer)
{
    assert_true(peer->control_count > 0);
    struct control control = peer->controls[peer->control_first++ % 4096];
    peer->control_first %= 4096;
    peer->control_count--;
    return control;
}

static void push_control(struct peer *peer, struct control control)
{
    assert_true(peer->control_count < 4096);
    peer->controls[(peer->control_first + peer->control_count++) % 4096] = control;
}

/* A cancel that was sent is not answered when the compaction was reported first. */
static void drop_cancel(struct peer *peer, const struct watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < peer->control_count; i++) {
        struct control control = peer->controls[(peer->control_first + i) % 4096];
        if (control.watch != watch)
            peer->controls[(peer->control_first + kept++) % 4096] = control;
    }
    peer->control_count = kept;
}

/* The events of a response, or of a fragment, are the next ones of the watch. */
static void take_events(struct peer *peer, struct watch *watch,
                        const struct pb_watch_response *response)
{
    size_t taken = 0;
    while (taken < response->events_count) {
        int64_t revision = next_wanted(watch, watch->next);
        assert_true(revision <= world->memory.published);
        const struct memory_revision *at = &world->memory.revisions[revision];
        size_t wanted = 0;
        for (size_t i = 0; i < at->count; i++) {
            if (!wants(watch, &at->events[i]) || wanted++ < peer->fragment_events)
                continue;
            if (taken < response->events_count) {
                event_matches(watch, &response->events[taken++], &at->events[i]);
                peer->fragment_events++;
            }
        }
        /* Only a fragment may end within a revision. */
        assert_true(peer->fragment_events == wanted || response->fragment);
        if (peer->fragment_events == wanted) {
            watch->next = revision + 1;
            peer->fragment_events = 0;
        }
    }
    peer->fragmented = response->fragment ? watch : NULL;
    assert_true(response->fragment || peer->fragment_events == 0);
    assert_true(response->header->revision >= watch->next - 1);
    peer->events += (unsigned)response->events_count;
}

static void take_progress(struct peer *peer, const struct pb_watch_response *response)
{
    int64_t revision = response->header->revision;
    for (struct watch *watch = peer->watches; watch; watch = watch->older) {
        if (response->watch_id != -1 && watch->id != response->watch_id)
            continue;
        if (!watch->told_created || watch->cancel_sent)
            continue;
        assert_true(next_wanted(watch, watch->next) > revision);
        assert_true(watch->create.start_revision <= revision + 1);
        if (watch->next <= revision)
            watch->next = revision + 1;
    }
    peer->progress++;
}

static void take_control(struct peer *peer, const struct pb_watch_response *response)
{
    struct control control = pop_control(peer);
    if (!control.watch) {
        assert_true(response->created && response->canceled);
        assert_int_equal(response->watch_id, -1);
        assert_true(response->cancel_reason.len > 0);
        return;
    }
    assert_int_equal(response->created, !control.canceled);
    assert_int_equal(response->canceled, control.canceled);
    if (control.canceled) {
        assert_int_equal(response->watch_id, control.watch->id);
        watch_end(peer, control.watch);
        return;
    }
    if (control.watch->create.watch_id)
        assert_int_equal(response->watch_id, control.watch->create.watch_id);
    control.watch->told_created = true;
    control.watch->id = response->watch_id;
    if (control.watch->create.start_revision == 0)
        control.watch->next = response->header->revision + 1;
}

static void take_response(struct peer *peer, const struct pb_watch_response *response)
{
    if (peer->fragmented)
        assert_int_equal(response->watch_id, peer->fragmented->id);
    if (response->compact_revision) {
        struct watch *watch = watch_by_id(peer, response->watch_id);
        assert_non_null(watch);
        assert_true(response->canceled && !response->created);
        assert_int_equal(response->header->revision, 0);
        assert_true(watch->next < response->compact_revision);
        peer->compactions++;
        drop_cancel(peer, watch);
        watch_end(peer, watch);
        return;
    }
    if (response->created || response->canceled) {
        assert_int_equal(response->events_count, 0);
        take_control(peer, response);
        return;
    }
    if (!response->events_count) {
        take_progress(peer, response);
        return;
    }
    struct watch *watch = watch_by_id(peer, response->watch_id);
    assert_non_null(watch);
    take_events(peer, watch, response);
}

static void receive(struct peer *peer)
{
    struct pb_watch_response *response;
    while ((response = client_next(&peer->client)) != NULL)
        take_response(peer, response);
}

/* -- Random deeds -- */

static size_t draw_key(char *key)
{
    return (size_t)sprintf(key, "k%02u", (unsigned)random_below(&world->random, KEYS));
}

static void draw_change(void)
{
    static uint8_t value[90000];
    char key[8];
    size_t len = world->large_values && random_chance(&world->random, 1, 10)
                     ? (size_t)random_below(&world->random, sizeof(value))
                     : (size_t)random_below(&world->random, 300);
    memset(value, 'v', len);
    size_t key_len = draw_key(key);
    bool tombstone = random_chance(&world->random, 1, 4);
    if (tombstone && !memory_newest(&world->memory, slice_of(key, key_len)).len)
        tombstone = false;
    for (size_t i = 0; i < world->memory.revisions[world->memory.revision].count; i++)
        if (slice_equal(buf_slice(&world->memory.revisions[world->memory.revision].events[i].key),
                        slice_of(key, key_len)))
            return; /* once in a transaction */
    memory_add(&world->memory, slice_of(key, key_len), slice_of(value, len), tombstone);
}

static void do_write(void)
{
    size_t revisions = 1 + (size_t)random_below(&world->random, 4);
    while (revisions--) {
        memory_begin(&world->memory);
        size_t events =
            random_chance(&world->random, 1, 3) ? 1 + random_below(&world->random, 6) : 1;
        while (events--)
            draw_change();
        if (model_hooks.wrote)
            model_hooks.wrote();
    }
    if (random_chance(&world->random, 4, 5))
        memory_publish(&world->memory);
}

static void do_compact(void)
{
    if (model_hooks.compact) {
        model_hooks.compact();
        return;
    }
    int64_t low = world->memory.compacted, high = world->memory.published;
    if (high > low)
        world->memory.compacted = random_between(&world->random, low, high);
}

static void draw_range(struct watch *watch)
{
    watch->create.key = slice_of(watch->key, draw_key(watch->key));
    switch (random_below(&world->random, 4)) {
    case 0:
        watch->create.range_end = slice_of("\0", 1);
        break;
    case 1:
        watch->create.range_end = slice_of(watch->end, draw_key(watch->end));
        break;
    default:
        break;
    }
}

static void do_create(struct peer *peer)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));
    draw_range(watch);
    struct watch_create *create = &watch->create;
    int64_t published = world->memory.published;
    if (random_chance(&world->random, 1, 2))
        create->start_revision = random_between(&world->random, -1, published + 5);
    create->prev_kv = random_chance(&world->random, 1, 3);
    create->fragment = random_chance(&world->random, 1, 3);
    create->no_put = random_chance(&world->random, 1, 8);
    create->no_delete = random_chance(&world->random, 1, 8);
    create->progress_notify = random_chance(&world->random, 1, 2);
    if (random_chance(&world->random, 1, 3))
        create->watch_id = random_between(&world->random, -3, 30);
    if (create->watch_id == -1)
        create->watch_id = 0; /* its progress could not be distinguished */
    size_t open = 0;
    bool refused =
        create->start_revision < 0 || (create->range_end.len && create->range_end.ptr[0] &&
                                       slice_compare(create->key, create->range_end) >= 0);
    for (struct watch *other = peer->watches; other; other = other->older) {
        open++;
        /* An id that is not known yet may be equal. */
        bool same = create->watch_id && !other->cancel_sent &&
                    (other->id == create->watch_id || !other->told_created);
        if (same) {
            free(watch);
            return;
        }
    }
    if (open >= WATCHES_MAX) {
        free(watch);
        return;
    }
    watch->next = create->start_revision;
    watch->id = create->watch_id;
    assert_int_equal(watch_stream_create(peer->client.stream, create), ST_OK);
    push_control(peer, (struct control){.watch = refused ? NULL : watch});
    if (refused) {
        free(watch);
        return;
    }
    watch->older = peer->watches;
    peer->watches = watch;
}

static void do_cancel(struct peer *peer)
{
    struct watch *watch = peer->watches;
    for (uint64_t skip = random_below(&world->random, WATCHES_MAX); watch && skip; skip--)
        watch = watch->older;
    if (!watch || watch->cancel_sent || !watch->told_created)
        return;
    watch->cancel_sent = true;
    /* Unless it has ended by a compaction whose response is on its way. */
    size_t before = watch_stream_waiting(peer->client.stream);
    assert_int_equal(watch_stream_cancel(peer->client.stream, watch->id), ST_OK);
    if (watch_stream_waiting(peer->client.stream) > before)
        push_control(peer, (struct control){.watch = watch, .canceled = true});
}

static void pull(struct peer *peer)
{
    static const size_t rooms[] = {1, 7, 100, 1000, 16384, 200000};
    size_t most = rooms[random_below(&world->random, COUNT_OF(rooms))];
    size_t times = 1 + (size_t)random_below(&world->random, most < 100 ? 50 : 3);
    while (times-- && !peer->stalled)
        client_pull(&peer->client, 1 + (size_t)random_below(&world->random, most));
    receive(peer);
}

/* Ends the call, whatever is on its way, and begins a new one. */
static void reopen(struct peer *peer)
{
    client_close(&peer->client);
    peer->control_first = peer->control_count = 0;
    while (peer->watches)
        watch_end(peer, peer->watches);
    peer->fragmented = NULL;
    peer->fragment_events = 0;
    client_open(&peer->client, world->hub);
}

/* The rest of a large message was compacted. */
static void reopen_if_broken(struct peer *peer)
{
    if (watch_stream_status(peer->client.stream) == ST_OK)
        return;
    assert_true(world->large_values || world->fragment_bytes < 1000 || world->memory.long_from);
    assert_int_equal(watch_stream_status(peer->client.stream), ST_COMPACTED);
    reopen(peer);
}

static void peer_step(struct peer *peer)
{
    if (random_chance(&world->random, 1, 40))
        peer->stalled = !peer->stalled;
    if (random_chance(&world->random, world->many ? 3 : 1, 6))
        do_create(peer);
    if (random_chance(&world->random, 1, world->many ? 40 : 12))
        do_cancel(peer);
    if (random_chance(&world->random, 1, 20))
        assert_int_equal(watch_stream_progress(peer->client.stream, INT64_MAX), ST_OK);
    pull(peer);
    if (random_chance(&world->random, 1, 150))
        reopen(peer);
    reopen_if_broken(peer);
}

static bool turn(bool drain)
{
    world->now_ns += drain ? 0 : NS_PER_S;
    bool more = watch_hub_turn_begin(world->hub, world->now_ns);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct peer *peer = &world->peers[i];
        if (drain) {
            more = client_pull(&peer->client, 65536) || more;
            receive(peer);
            reopen_if_broken(peer);
        } else {
            peer_step(peer);
        }
    }
    more = more || watch_hub_next_ns(world->hub) <= world->now_ns;
    watch_hub_turn_end(world->hub);
    memory_turn_end(&world->memory);
    if (world->memory.again_said && random_chance(&world->random, 1, 2)) {
        world->memory.again_said = false;
        watch_hub_history_ready(world->hub);
    }
    if (model_hooks.turn)
        more = model_hooks.turn(drain) || more;
    watch_hub_check(world->hub);
    return more || world->memory.again_said;
}

static void settle(void)
{
    memory_publish(&world->memory);
    /* Only clients that were woken pull; several turns without output are the end. */
    for (int quiet = 0; quiet < 10; quiet++)
        if (turn(true))
            quiet = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        struct peer *peer = &world->peers[i];
        assert_int_equal(peer->client.bytes.len, 0);
        assert_int_equal(peer->control_count, 0);
        assert_null(peer->fragmented);
        for (struct watch *watch = peer->watches; watch; watch = watch->older) {
            assert_true(watch->told_created);
            assert_true(next_wanted(watch, watch->next) > world->memory.published);
        }
    }
}

/* A past of several windows, which are read in turn. */
static void write_long_past(void)
{
    enum { REVISIONS = 9000 };
    for (int i = 0; i < REVISIONS; i++) {
        memory_begin(&world->memory);
        draw_change();
    }
    memory_publish(&world->memory);
}

static void world_open(uint64_t seed)
{
    world = xcalloc(1, sizeof(*world));
    random_init(&world->random, seed);
    static const size_t fragments[] = {150, 2000, 2 << 20};
    world->fragment_bytes = fragments[random_below(&world->random, COUNT_OF(fragments))];
    world->large_values = random_chance(&world->random, 1, 3);
    world->many = random_chance(&world->random, 1, 2);
    memory_init(&world->memory);
    if (random_chance(&world->random, 1, 3))
        world->memory.again_every = 7;
    static const size_t units[] = {1, 3, 17, 100, 0};
    static const size_t longs[] = {0, 1, 2, 4};
    world->memory.long_from = longs[random_below(&world->random, COUNT_OF(longs))];
    if (world->memory.long_from != 1 && random_chance(&world->random, 1, 8))
        write_long_past();
    world->hub = watch_hub_new(&(struct watch_hub_options){
        .history = model_hooks.open ? model_hooks.open() : &world->memory.history,
        .fragment_bytes = world->fragment_bytes,
        .watchers_max = 1000,
        .progress_interval_ns = 20 * NS_PER_S,
        .turn_units = (size_t)units[random_below(&world->random, COUNT_OF(units))],
        .seed = seed,
    });
    for (size_t i = 0; i < CLIENTS; i++)
        client_open(&world->peers[i].client, world->hub);
    if (model_hooks.opened)
        model_hooks.opened();
}

static void world_close(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        struct peer *peer = &world->peers[i];
        peer->control_count = 0;
        while (peer->watches)
            watch_end(peer, peer->watches);
        client_close(&peer->client);
    }
    if (model_hooks.closing)
        model_hooks.closing();
    watch_hub_free(world->hub);
    if (model_hooks.closed)
        model_hooks.closed();
    memory_fini(&world->memory);
    free(world);
}

static void every_watcher_receives_what_the_history_says(void **state)
{
    (void)state;
    const char *given = getenv("VIGIL_WATCH_SEEDS"), *first = getenv("VIGIL_WATCH_FIRST_SEED");
    uint64_t usual = model_hooks.seeds ? model_hooks.seeds : 16;
    uint64_t seeds = given ? strtoull(given, NULL, 10) : usual;
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    unsigned events = 0, progress = 0, compactions = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        world_open(seed);
        for (int step = 0; step < STEPS; step++) {
            if (random_chance(&world->random, 1, 2))
                do_write();
            if (random_chance(&world->random, 1, 60))
                do_compact();
            (void)turn(false);
        }
        settle();
        for (size_t i = 0; i < CLIENTS; i++) {
            events += world->peers[i].events;
            progress += world->peers[i].progress;
            compactions += world->peers[i].compactions;
        }
        world_close();
    }
    print_message("%u events, %u progress, %u compactions\n", events, progress, compactions);
    assert_true(events > 1000 * seeds / 2);
    assert_true(progress > seeds);
    assert_true(compactions > seeds);
}

#endif
