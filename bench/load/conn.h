/*
 * One connection of the generator: a socket, the calls in flight on it, and the flow control both
 * ways. Opens with windows as large as the protocol allows, so that only the server's own limits
 * and the load's closed loop hold anything back. Owned by one worker, on its thread.
 */
#ifndef VIGIL_LOAD_CONN_H
#define VIGIL_LOAD_CONN_H

#include "base/error.h"
#include "load/frame.h"
#include "load/headers.h"
#include "load/tls.h"

#include <sys/socket.h>

/* Where the server is, and how it is spoken to. */
struct bench_address {
    struct sockaddr_storage socket;
    struct bench_tls *tls; /* borrowed; NULL: openly */
};

/* One call in flight, in the ring of its connection. The pointer is valid until the call ends. */
struct bench_call {
    uint32_t stream; /* 0: free */
    uint32_t tag;    /* the caller's own */
    uint64_t start_ns;
    uint64_t data_bytes; /* received so far */
    uint64_t unreturned; /* received and not yet given back by a window update */
    int64_t send_window; /* what the server still takes on this stream */
};

struct bench_conn;

struct bench_conn_handler {
    bool plain; /* no gRPC: an answer ends with its last DATA, and any 2xx is good */
    /* The head of an answer that will be good; may be NULL. */
    void (*on_head)(struct bench_conn *conn, struct bench_call *call);
    /* A piece of the call's response bytes; may be NULL. */
    enum status (*on_data)(struct bench_conn *conn, struct bench_call *call, struct slice bytes);
    /* The call is over: error is NULL when it went well. The call is free afterwards. */
    void (*on_end)(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error);
};

struct bench_conn {
    int fd;
    struct ssl_st *ssl; /* owned; NULL: openly */
    const struct bench_conn_handler *handler;
    void *owner; /* the handler's */

    struct bench_frame_reader reader;
    struct bench_header_decoder *decoder;
    struct buf partial;  /* start of a frame whose rest has not come */
    struct buf out;      /* not yet taken by the socket */
    uint64_t unreturned; /* as in a call, for the whole connection */
    uint64_t bytes_in, bytes_out;

    int64_t send_window;
    int64_t stream_window; /* the server's initial window */
    uint32_t streams_max;  /* the server's limit, no more than ours */
    uint32_t next_stream;
    uint32_t in_flight;
    uint32_t ring_mask;
    struct bench_call *ring; /* a call's place is (stream / 2) & ring_mask */
    bool settled;            /* the server's SETTINGS have come */
    bool want_write;         /* the socket was full */
    char failure[160];       /* why a call on this connection returned an error */
};

/* Connects, sends preface and settings, and waits for the server's. in_flight_max of 0: none. */
MUST_CHECK
enum status bench_conn_open(struct bench_conn *conn, const struct bench_address *address,
                            uint32_t in_flight_max, const struct bench_conn_handler *handler,
                            void *owner, struct error *error);
void bench_conn_close(struct bench_conn *conn);

/* A new call with room for body_bytes of request, or NULL while limits or windows forbid it.
 * The caller appends the request to conn->out. */
struct bench_call *bench_conn_begin(struct bench_conn *conn, size_t body_bytes, uint64_t now_ns);

/* The open call of a stream, or NULL. */
struct bench_call *bench_conn_call(struct bench_conn *conn, uint32_t stream);

/* Room for a further message of an open call; takes it from the windows when there is. */
bool bench_conn_take_window(struct bench_conn *conn, struct bench_call *call, size_t bytes);

/* Reads once into the scratch bytes and handles what was read. Any status but ST_OK ends the
 * connection (ST_CLOSED, ST_IO, ST_MALFORMED); `failure` has the reason. */
enum { BENCH_CONN_SCRATCH_BYTES = 256 * 1024 };
MUST_CHECK
enum status bench_conn_read(struct bench_conn *conn, uint8_t *scratch);

/* Writes what the socket takes; want_write tells if anything is left. */
MUST_CHECK
enum status bench_conn_flush(struct bench_conn *conn);

/* The endpoint without http:// or https:// before it. */
const char *bench_endpoint_name(const char *endpoint, bool *ret_secure);

/* host:port, or as above. */
MUST_CHECK
enum status bench_address_resolve(const char *endpoint, struct sockaddr_storage *ret_address,
                                  struct error *error);

#endif
