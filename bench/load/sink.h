/*
 * A server that does nothing but answer: every call gets the same bytes back. It shows what the
 * generator itself can do, and misbehaves on request so that tests can see errors counted.
 * One thread; bench_sink_stop may be called from any.
 */
#ifndef VIGIL_LOAD_SINK_H
#define VIGIL_LOAD_SINK_H

#include "base/error.h"

#include <stdint.h>
#include <sys/socket.h>

enum bench_sink_fault {
    BENCH_SINK_ERROR_STATUS, /* answer with grpc-status 14 */
    BENCH_SINK_RESET,        /* reset the stream */
    BENCH_SINK_EMPTY,        /* answer well, but without a message */
    BENCH_SINK_GOAWAY,       /* tell the client to go, and close */
};

struct bench_sink_config {
    struct sockaddr_storage address; /* port 0: any */
    uint64_t response_bytes;         /* size of the message in each answer */
    enum bench_sink_fault fault;
    uint64_t fault_every; /* every nth call gets the fault; 0: none */
};

struct bench_sink;

MUST_CHECK
enum status bench_sink_new(const struct bench_sink_config *config, struct bench_sink **ret_sink,
                           struct error *error);
void bench_sink_free(struct bench_sink *sink);

/* The port it listens on. */
uint16_t bench_sink_port(const struct bench_sink *sink);

/* Serves until stopped; a thread's start function over a struct bench_sink. */
void *bench_sink_serve(void *argument);
void bench_sink_stop(struct bench_sink *sink);

#endif
