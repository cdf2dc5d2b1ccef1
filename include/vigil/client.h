/*
 * A client: a connection to an etcd cluster or to Vigil, shared by all calls, watches and leases of
 * a program. It connects when it is first needed and again whenever the connection breaks.
 *
 * Two ways to drive it:
 *
 *   own thread (the default)   the library has one thread per client; callbacks are made on it
 *   the program's loop         the program waits for vigil_client_fd to become readable, at most
 *                              vigil_client_timeout_ms, and then calls vigil_client_process, which
 *                              makes the callbacks; vigil/poll.h, vigil/epoll.h and vigil/uv.h do
 *                              this for common loops
 *
 * Threads: every function may be called on any thread and inside every callback, unless its comment
 * says otherwise. An object must not be used after it was freed. A callback is never made from
 * inside the function that caused it, and callbacks of one client are made one at a time. Inside a
 * callback every object may be freed, also the one it is about.
 *
 * Processes: the library never raises SIGPIPE, its threads block all signals, and its descriptors
 * are closed on exec. After fork, only the parent can use its clients: in the child calls, watches,
 * leases and queues fail with VIGIL_ERROR_SYSTEM, and freeing a client has no effect. A callback
 * must return: it must not leave by longjmp or a C++ exception.
 */
#ifndef VIGIL_CLIENT_H
#define VIGIL_CLIENT_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_client vigil_client;

/* How important a line for vigil_options.log is. */
enum vigil_log_level { VIGIL_LOG_DEBUG, VIGIL_LOG_INFO, VIGIL_LOG_WARN };

/* How a client connects and behaves. Set all fields with vigil_options_init, then change those you
 * need. Texts are copied by vigil_client_new. NULL means "not given". */
typedef struct vigil_options {
    size_t size; /* set by vigil_options_init; lets the struct grow */

    /* "https://a:2379,https://b:2379". Also "unix:///path", "unixs:///path", and "host:port", which
     * is http unless a TLS option is given. The default is "http://127.0.0.1:2379". */
    const char *endpoints;
    /* The domain whose SRV records name the endpoints, instead of endpoints. */
    const char *srv_domain;
    const char *srv_name; /* appended to the service: "_etcd-client-NAME._tcp.DOMAIN" */

    /* For https. Changed files are used for the next connection. */
    const char *ca_file;   /* PEM; the default is the system's authorities */
    const char *cert_file; /* PEM, with key_file: our certificate, if the server wants one */
    const char *key_file;
    const char *server_name;  /* expected instead of the endpoint's host */
    int insecure_skip_verify; /* any certificate is accepted: only for tests */

    const char *user, *password; /* user of etcd's authentication; the token is renewed as needed */
    const char *token;           /* a JWT or another fixed token, instead of user and password */

    /* Prefix of all keys: added to keys in requests, removed from keys in results. */
    const char *prefix;

    /* For one attempt; default 5000. Getting a token with user and password is not a part of it and
     * may take 5 seconds, or this time if it is longer. */
    int64_t connect_timeout_ms;
    int64_t call_timeout_ms; /* default of vigil_call_set_timeout; default 5000; 0: none */
    int64_t keepalive_ms;    /* a ping after this long without input; default 10000; 0: never */
    int64_t keepalive_timeout_ms; /* without an answer for this long the connection is given up;
                                     default 5000 */
    /* The time between two attempts to connect, which doubles up to the maximum, with jitter. The
     * defaults are 25 and 3000; 0 counts as 1. */
    int64_t backoff_min_ms, backoff_max_ms;
    /* Limit on the size of one response; default 64 MiB. Decoded, it may take four times as much;
     * one that takes more fails in the same way. */
    size_t receive_bytes_max;
    /* Limit on the size of one request; default 2 MiB, as in etcd. A larger one fails with
     * VIGIL_ERROR_REQUEST_TOO_LARGE and is not sent. */
    size_t send_bytes_max;

    int own_thread; /* default 1; 0: the program calls vigil_client_process */

    /* Called for changes of the connection and the like, on the thread that makes callbacks. */
    void (*log)(void *user, int level, const char *text);
    void *log_user;
} vigil_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_options_init(vigil_options *options);

/*
 * Creates a client. It does not wait for a connection, so it also succeeds while no server can be
 * reached; calls then wait for one until their timeout. options may be NULL for the defaults; error
 * may be NULL, too. Returns a vigil_code; *ret_client is set only if that is VIGIL_OK.
 *
 * Errors: VIGIL_ERROR_ARGUMENT for options that are invalid or were not set up with
 * vigil_options_init, VIGIL_ERROR_MEMORY, and VIGIL_ERROR_SYSTEM if there can be no thread or
 * descriptor, or a file of certificates cannot be read. error->text says which option is wrong.
 */
VIGIL_API int vigil_client_new(const vigil_options *options, vigil_client **ret_client,
                               vigil_error *error);

/* Ends everything that was begun with the client: calls complete and watches end with
 * VIGIL_ERROR_CANCELED. The callbacks are made as usual, later. Nothing new can be started. */
VIGIL_API void vigil_client_shutdown(vigil_client *client);

/*
 * Frees the client. Ends what vigil_client_shutdown would end, but at once. Every call that has not
 * completed completes with VIGIL_ERROR_CANCELED, and its callback is made in the usual place: on
 * the client's own thread, which this waits for, or by this function in the program's loop. So what
 * these callbacks use must be freed afterwards; calls that were freed before have none. They may do
 * what callbacks may do, for instance free calls, but cannot start any. After this function has
 * returned, no callback follows, unless it was called inside a callback: the others are then made
 * as soon as that one has returned.
 *
 * Watches and leases end without a callback. They and the calls that the program holds must still
 * be freed; they have no effect any more. A thread that waits in vigil_call_run returns. Accepts
 * NULL.
 */
VIGIL_API void vigil_client_free(vigil_client *client);

/* -- In the program's loop (own_thread is 0) -- */

/* Readable when vigil_client_process has something to do. Stays the same. -1 if the client has its
 * own thread. */
VIGIL_API int vigil_client_fd(const vigil_client *client);
/* Call vigil_client_process after this time even if the descriptor is not readable. -1: no limit.
 */
VIGIL_API int vigil_client_timeout_ms(const vigil_client *client);
/* Does what is due, without waiting. On one thread at a time, as all functions of this section and
 * as vigil_call_run; not inside a callback. */
VIGIL_API void vigil_client_process(vigil_client *client);

/* -- Statistics -- */

/* Counters of a client since it was created, unless a comment says "now". */
typedef struct vigil_client_stats {
    uint64_t connects;       /* connections that were established */
    uint64_t connect_errors; /* attempts that failed */
    uint64_t disconnects;    /* established connections that broke */
    uint64_t calls_started, calls_completed, calls_retried;
    uint64_t watches;       /* open now */
    uint64_t watch_resumes; /* watches that were created again after a break or a pause */
    uint64_t watch_events;  /* delivered */
    uint64_t queued_bytes;  /* received and not yet delivered, now */
    uint64_t bytes_sent, bytes_received;
} vigil_client_stats;

/* Reads the counters. size is sizeof(vigil_client_stats), so that the struct may grow. */
VIGIL_API void vigil_client_get_stats(const vigil_client *client, vigil_client_stats *ret_stats,
                                      size_t size);

/* -- Process-wide -- */

/* Replaces the memory functions of the library. To be called before any other function. All three
 * may be called on any thread. */
VIGIL_API void vigil_set_allocator(void *(*allocate)(size_t bytes),
                                   void *(*resize)(void *memory, size_t bytes),
                                   void (*release)(void *memory));

/* The version of the library that the program runs with, for instance "1.0.0". */
VIGIL_API const char *vigil_version(void);

#ifdef __cplusplus
}
#endif

#endif
