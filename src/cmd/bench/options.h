/* The flags of `vigil bench`: one table, for reading them and for the help. */
#ifndef VIGIL_CMD_BENCH_OPTIONS_H
#define VIGIL_CMD_BENCH_OPTIONS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_options {
    const char *endpoint;
    const char *cacert, *cert, *key; /* of TLS */
    const char *token;
    const char *prefix;
    const char *keys; /* sequential, random or shuffled */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t total;
    uint64_t key_space;
    uint64_t value_bytes;
    uint64_t server_pid, store_pid;
    uint64_t streams;
    uint64_t watchers;
    uint64_t nodes;         /* of pods */
    uint64_t stopped;       /* connections that do not read */
    const char *watch_keys; /* prefix, one or own */
    const char *behind;     /* a prefix */
    uint64_t from;
    uint64_t rate;
    uint64_t fail_every;
    uint64_t duration_ns;
    uint64_t warmup_ns;
    bool insecure;
    bool prepare;
    bool again;
    bool spread;
    bool await_events;
    bool json;
    bool help;
};

/* Sets what the flags say and leaves the rest. Both --flag value and --flag=value; times end in
 * ns, us, ms, s or m. The texts stay in argv. */
MUST_CHECK
enum status bench_options_read(int argc, char **argv, struct bench_options *options,
                               struct error *error);

/* Prints one line for each flag, with the value it has now. */
void bench_options_print(const struct bench_options *options);

#endif
