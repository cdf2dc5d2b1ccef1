/*
 * Many watchers on many streams, and one connection that puts what they watch. Everything runs on
 * the caller's thread, in its calls of bench_watch_client_turn.
 */
#ifndef VIGIL_LOAD_WATCH_CLIENT_H
#define VIGIL_LOAD_WATCH_CLIENT_H

#include "load/load.h"

enum bench_watch_keys {
    BENCH_WATCH_PREFIX,   /* every watcher watches all keys under the prefix */
    BENCH_WATCH_ONE_KEY,  /* all watch the first key */
    BENCH_WATCH_OWN_KEYS, /* each watches a key of its own, the first the first */
};

struct bench_watch_config {
    const struct bench_target *target;
    const char *prefix;
    enum bench_watch_keys keys;
    uint32_t connections;
    uint32_t streams;       /* on each connection */
    uint32_t watchers;      /* on each stream */
    int64_t start_revision; /* 0: from now */
    const char *behind;     /* one more on each stream, of this prefix; "": none */
    int64_t behind_start;
    uint64_t key_space; /* number of keys of the puts */
    bool random_puts;   /* puts of any key; otherwise one key after the other */
    size_t value_bytes; /* size of the value of a put; at least 8, because it carries the time it
                           was sent */
    uint32_t pipeline;  /* puts in flight */
};

struct bench_watch_counts {
    uint64_t created;
    uint64_t events;
    uint64_t puts_sent, puts_done;
    uint64_t behind_events,
        behind_bytes; /* events and bytes of those that are behind; not among the others */
    uint64_t bytes_in;
    uint64_t last_event_ns;
    struct bench_histogram event_latency; /* from the put's time to sent event */
    struct bench_histogram put_latency;
    struct bench_outcome trouble; /* errors, first_error */
};

struct bench_watch_client;

/* Opens all connections; the turns create streams and watchers as windows allow. */
MUST_CHECK
enum status bench_watch_client_new(const struct bench_watch_config *config,
                                   struct bench_watch_client **ret_client, struct error *error);
void bench_watch_client_free(struct bench_watch_client *client);

/* Begins one put that carries at_ns as its time; false when all of the pipeline is in flight. */
bool bench_watch_client_put(struct bench_watch_client *client, uint64_t at_ns);

/* Waits for the sockets up to wait_ns and handles what arrived. */
MUST_CHECK
enum status bench_watch_client_turn(struct bench_watch_client *client, uint64_t wait_ns,
                                    struct error *error);

/* Latencies are kept from here on; before, events and puts are only counted. */
void bench_watch_client_record(struct bench_watch_client *client, bool record);

const struct bench_watch_counts *bench_watch_client_counts(const struct bench_watch_client *client);

DEFINE_CLEANUP(struct bench_watch_client *, bench_watch_client_free)

#endif
