/*
 * What the watch engine costs without a server: watch_bench [TEXT], in processor time. With a text,
 * only rows whose name contains it. The figures show the effect of a change. The history is in
 * memory, so reading it costs next to nothing.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "watch/hub.h"
#include "watch/stream/stream.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIELD_BYTES = 300, KEYS_MAX = 10000, ROOM = 16384, STREAMS_MAX = 10000 };

/* Every revision changes one key; which one, a function says. */
struct synthetic {
    struct watch_history history;
    int64_t revision;
    unsigned keys; /* revision r changes key r % keys */
    struct watch_event events[KEYS_MAX];
    char names[KEYS_MAX][40];
    uint8_t field[FIELD_BYTES];
};

static struct synthetic synthetic;
static const char *wanted; /* part of the names of the rows to run */

static enum status synthetic_next(struct watch_history *history, struct watch_place *place,
                                  int64_t last, struct watch_batch *ret_batch)
{
    (void)history;
    if (place->revision > last) {
        place->revision = last + 1;
        return ST_END;
    }
    const struct watch_event *event = &synthetic.events[(unsigned)place->revision % synthetic.keys];
    *ret_batch = (struct watch_batch){place->revision++, event, 1};
    return ST_OK;
}

static struct slice synthetic_prev(struct watch_history *history, const struct watch_event *event)
{
    (void)history;
    (void)event;
    return SLICE_EMPTY;
}

static int64_t synthetic_revision(struct watch_history *history)
{
    (void)history;
    return synthetic.revision;
}

static int64_t synthetic_compact_revision(struct watch_history *history)
{
    (void)history;
    return 0;
}

static const struct watch_history_ops synthetic_ops = {
    .next = synthetic_next,
    .prev = synthetic_prev,
    .revision = synthetic_revision,
    .compact_revision = synthetic_compact_revision,
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t resident_bytes(void)
{
    char line[128];
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || !fgets(line, sizeof(line), file))
        exit(1);
    fclose(file);
    char *resident; /* the second number; the first is the size */
    strtoul(line, &resident, 10);
    return strtoul(resident, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t key_name(char name[40], unsigned key)
{
    return (size_t)sprintf(name, "/registry/pods/default/%06u", key);
}

static struct watch_hub *hub_new(unsigned keys)
{
    synthetic = (struct synthetic){.history.ops = &synthetic_ops, .revision = 1, .keys = keys};
    synthetic.field[0] = 0x12;
    for (unsigned i = 0; i < keys; i++) {
        size_t len = key_name(synthetic.names[i], i);
        synthetic.events[i].key = slice_of(synthetic.names[i], len);
        synthetic.events[i].field = slice_of(synthetic.field, FIELD_BYTES);
    }
    return watch_hub_new(&(struct watch_hub_options){
        .history = &synthetic.history,
        .identity = {.cluster_id = UINT64_C(0xcdf818194e3a8c32),
                     .member_id = UINT64_C(0x8e9e05c52164694d),
                     .raft_term = 2},
        .fragment_bytes = 2 << 20,
        .watchers_max = 2000000,
        .progress_interval_ns = 600 * NS_PER_S,
        .seed = 1,
    });
}

struct peer {
    struct watch_stream *stream;
    bool awake;
};

static struct peer peers[STREAMS_MAX];
static uint8_t room[1 << 20];

static struct peer *woken[STREAMS_MAX];
static size_t woken_count;

static void peer_wake(void *ctx)
{
    struct peer *peer = ctx;
    peer->awake = true;
    if (woken_count < STREAMS_MAX)
        woken[woken_count++] = peer;
}

static void pull(struct peer *peer, size_t bytes)
{
    while (peer->awake)
        (void)watch_stream_fill(peer->stream, room, bytes, &peer->awake);
}

static void peer_open(struct watch_hub *hub, struct peer *peer)
{
    *peer = (struct peer){0};
    woken_count = 0;
    peer->stream =
        watch_stream_new(hub, (struct watch_stream_owner){.wake = peer_wake, .ctx = peer});
}

static void peer_watch(struct peer *peer, unsigned key, int64_t start)
{
    char name[40];
    struct watch_create create = {
        .key = slice_of(name, key_name(name, key)),
        .start_revision = start,
    };
    if (watch_stream_create(peer->stream, &create) != ST_OK)
        exit(1);
    if (watch_stream_waiting(peer->stream) >= 500)
        pull(peer, ROOM);
}

static void turn_begin(struct watch_hub *hub)
{
    bool more = watch_hub_turn_begin(hub, 0);
    (void)more; /* the loop calls it again in any case */
}

/* Adds revisions, some at a time, and serves all streams after each step. */
static double measure(struct watch_hub *hub, size_t revisions, size_t at_a_time)
{
    double start = now_s();
    for (size_t i = 0; i < revisions; i += at_a_time) {
        synthetic.revision += (int64_t)at_a_time;
        turn_begin(hub);
        for (size_t k = 0; k < woken_count; k++)
            pull(woken[k], ROOM);
        woken_count = 0;
        watch_hub_turn_end(hub);
    }
    return now_s() - start;
}

static void fan_out(const char *name, size_t streams, size_t watchers, unsigned keys,
                    size_t revisions, size_t at_a_time)
{
    if (!strstr(name, wanted))
        return;
    struct watch_hub *hub = hub_new(keys);
    for (size_t i = 0; i < streams; i++) {
        peer_open(hub, &peers[i]);
        for (unsigned k = 0; k < watchers; k++)
            peer_watch(&peers[i], (unsigned)(k * streams + i) % keys, 0);
        pull(&peers[i], ROOM);
    }
    woken_count = 0;
    (void)measure(hub, at_a_time * 2, at_a_time);
    struct watch_stats before = watch_hub_scan_stats(hub)->stats;
    double took = measure(hub, revisions, at_a_time);
    struct watch_stats after = watch_hub_scan_stats(hub)->stats;
    uint64_t sent = after.events_sent - before.events_sent;
    printf("%-58s %8.3f us per event (%llu in %llu responses)\n", name, took / (double)sent * 1e6,
           (unsigned long long)sent,
           (unsigned long long)(after.responses_sent - before.responses_sent));
    for (size_t i = 0; i < streams; i++)
        watch_stream_free(peers[i].stream);
    watch_hub_free(hub);
}

static void catch_up(const char *name, size_t watchers, unsigned keys, int64_t revisions)
{
    if (!strstr(name, wanted))
        return;
    struct watch_hub *hub = hub_new(keys);
    synthetic.revision = revisions;
    peer_open(hub, &peers[0]);
    double start = now_s();
    for (unsigned i = 0; i < watchers; i++)
        peer_watch(&peers[0], i % keys, 1);
    do {
        turn_begin(hub);
        pull(&peers[0], ROOM);
        watch_hub_turn_end(hub);
    } while (watch_hub_scan_stats(hub)->stats.watchers_catching_up);
    double took = now_s() - start;
    struct watch_stats stats = watch_hub_scan_stats(hub)->stats;
    printf("%-58s %8.3f us per event, %.3f per revision (%llu)\n", name,
           took / (double)stats.events_sent * 1e6, took / (double)revisions * 1e6,
           (unsigned long long)stats.events_sent);
    watch_stream_free(peers[0].stream);
    watch_hub_free(hub);
}

static void idle(const char *name, size_t streams, size_t watchers, unsigned keys)
{
    if (!strstr(name, wanted))
        return;
    struct watch_hub *hub = hub_new(1);
    size_t before = resident_bytes();
    double start = now_s();
    for (size_t i = 0; i < streams; i++) {
        peer_open(hub, &peers[i]);
        for (size_t k = 0; k < watchers; k++)
            peer_watch(&peers[i], (unsigned)(i * watchers + k) % keys, 0);
        pull(&peers[i], ROOM);
    }
    double took = now_s() - start;
    size_t grown = resident_bytes() - before;
    size_t all = streams * size_max(watchers, 1);
    printf("%-58s %8.1f bytes each, %.1f MB, made in %.2f s\n", name, (double)grown / (double)all,
           (double)grown / 1e6, took);
    start = now_s();
    for (size_t i = 0; i < streams; i++)
        watch_stream_free(peers[i].stream);
    printf("%-58s freed in %.2f s\n", "", now_s() - start);
    watch_hub_free(hub);
    malloc_trim(0);
}

int main(int argc, char **argv)
{
    wanted = argc > 1 ? argv[1] : "";
    idle("100,000 idle watchers, a key each (29 bytes), one stream", 1, 100000, 1000000);
    idle("100,000 idle watchers of one key, one stream", 1, 100000, 1);
    idle("1,000,000 idle watchers, a key each, 1,000 streams", 1000, 1000, 1000000);
    idle("1,000,000 idle watchers of 1,000 keys, 1,000 streams", 1000, 1000, 1000);
    idle("10,000 idle streams", 10000, 0, 1);
    fan_out("1,000 watchers of one key, one stream, 1 at a time", 1, 1000, 1, 5000, 1);
    fan_out("1,000 watchers of one key, one stream, 16 at a time", 1, 1000, 1, 4800, 16);
    fan_out("100,000 watchers of one key, one stream", 1, 100000, 1, 50, 1);
    fan_out("one watcher of each of 10,000 keys, one stream", 1, 10000, 10000, 2000000, 100);
    fan_out("100 streams with 100 watchers of one key, 1 at a time", 100, 100, 1, 500, 1);
    fan_out("100 streams with 100 watchers of one key, 4 at a time", 100, 100, 1, 480, 4);
    fan_out("100 streams with 100 watchers of one key, 16 at a time", 100, 100, 1, 480, 16);
    fan_out("10,000 streams with a watcher of one key, 1 at a time", 10000, 1, 1, 500, 1);
    fan_out("10,000 streams with a watcher of one key, 16 at a time", 10000, 1, 1, 480, 16);
    fan_out("10,000 streams with a watcher of a key each, 16 at a time", 10000, 1, 10000, 160000,
            16);
    fan_out("10 streams with 1,000 watchers of a key each, 200 at a time", 10, 1000, 10000, 100000,
            200);
    fan_out("1,000 streams with 10 watchers of a key each, 200 at a time", 1000, 10, 10000, 100000,
            200);
    fan_out("100 streams with a watcher of one key, 16 at a time", 100, 1, 1, 48000, 16);
    catch_up("one watcher from the past, every revision", 1, 1, 2000000);
    catch_up("one watcher from the past, each 1,000th revision", 1, 1000, 2000000);
    catch_up("1,000 watchers of 1,000 keys from the past, one stream", 1000, 1000, 1000000);
    catch_up("100 watchers of one key from the past, one stream", 100, 1, 20000);
    return 0;
}
