/*
 * A client of one Kubernetes API server, shared by all calls, watches and informers of a program.
 * It connects when it is first needed and again whenever a connection breaks.
 *
 *     vigil_kube *kube;
 *     vigil_error error;
 *     if (vigil_kube_new(NULL, &kube, &error) != VIGIL_OK)
 *         fprintf(stderr, "%s\n", error.text);
 *
 * Two ways to drive it:
 *
 *   own thread (the default)   the library has one thread per client; callbacks are made on it
 *   the program's loop         the program waits for vigil_kube_fd to become readable, at most
 *                              vigil_kube_timeout_ms, and then calls vigil_kube_process, which
 *                              makes the callbacks; vigil/kube/poll.h, vigil/kube/epoll.h and
 *                              vigil/kube/uv.h do this
 *
 * Threads: every function may be called on any thread and inside every callback, unless its comment
 * says otherwise. An object must not be used after it was freed. A callback is never made from
 * inside the function that caused it, and callbacks of one client are made one at a time, except
 * for handlers of informers that have a thread of their own. Inside a callback every object may be
 * freed, also the one it is about; see vigil_kube_handler_free for those handlers.
 *
 * Processes: the library never raises SIGPIPE, its threads block all signals, and its descriptors
 * are closed on exec. After fork, only the parent may use its clients. If the kubeconfig names a
 * program that prints credentials (exec), it is run as a child process, and only this process is
 * waited for; the program may ignore SIGCHLD or wait for all its children itself. A callback must
 * return: it must not leave by longjmp or a C++ exception.
 */
#ifndef VIGIL_KUBE_CLIENT_H
#define VIGIL_KUBE_CLIENT_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube vigil_kube;

/* Which version of HTTP is spoken. */
enum vigil_kube_http {
    VIGIL_KUBE_HTTP_ANY = 0, /* with TLS the server chooses; without TLS it is HTTP/1.1 */
    VIGIL_KUBE_HTTP_1 = 1,
    VIGIL_KUBE_HTTP_2 = 2 /* also without TLS: only for servers that expect it */
};

/* How a client connects and behaves. Set all fields with vigil_kube_options_init, then change those
 * you need. Texts are copied by vigil_kube_new. NULL means "not given". */
typedef struct vigil_kube_options {
    size_t size; /* set by vigil_kube_options_init; lets the struct grow */

    /*
     * Where the server is: the first of these that is given.
     *
     *     server                         "https://10.0.0.1:6443"; no file is read
     *     kubeconfig                     files of kubectl, separated by colons
     *     in_cluster                     the service account of the pod that the program runs in
     *     $KUBECONFIG, ~/.kube/config    if they exist
     *     otherwise                      the service account again
     */
    const char *server;
    const char *kubeconfig;
    int in_cluster;
    const char *context; /* context in the kubeconfig; the default is its current one */

    /* These are used instead of what the kubeconfig says. A token, password or certificate is
     * refused if the kubeconfig names a server without TLS; one that the option server names
     * without TLS gets them. */
    const char *ca_file;              /* PEM; the default is the system's authorities */
    const char *cert_file, *key_file; /* PEM: our certificate, if the server wants one */
    const char *server_name;          /* expected instead of the server's host */
    int insecure_skip_verify;         /* any certificate is accepted: only for tests */
    const char *token;
    const char *token_file;      /* read again when it may have changed */
    const char *user, *password; /* user of HTTP's basic authentication */
    const char *impersonate;     /* the user to be treated as */
    /* "http://user:password@proxy:3128", "https://…" or "socks5://…"; the default is that of the
     * environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY */
    const char *proxy_url;
    const char *name_space; /* the default of vigil_kube_namespace */
    const char *user_agent; /* the default names the library */
    int http;               /* enum vigil_kube_http */

    /* Calls, except for watches, are sent at most at this rate. The defaults are those of
     * client-go: 5 per second after a burst of 10. 0 per second: no limit. */
    uint32_t calls_per_second;
    uint32_t calls_burst;

    int64_t connect_timeout_ms; /* for one attempt; default 30000 */
    int64_t call_timeout_ms;    /* default of vigil_kube_call_set_timeout; default 60000; 0: none */
    size_t receive_bytes_max; /* limit on the size of one response that is not a stream; default 256
                                 MiB */

    int own_thread; /* default 1; 0: the program calls vigil_kube_process */

    /* Called with the text of every Warning that a server sends, on the thread that makes
     * callbacks. */
    void (*warning)(void *user, const char *text);
    /* Called for changes of the connection and the like, on the thread that makes callbacks, with
     * an enum vigil_log_level (vigil/client.h): 1 is information, 2 a warning. */
    void (*log)(void *user, int level, const char *text);
    void *log_user; /* user pointer of both functions */
} vigil_kube_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_kube_options_init(vigil_kube_options *options);

/*
 * Creates a client. It reads the configuration and does not wait for a connection. options may be
 * NULL for the defaults; error may be NULL, too. Returns a vigil_code; *ret_kube is set only if
 * that is VIGIL_OK.
 *
 * Errors: VIGIL_ERROR_ARGUMENT for options or a configuration that are invalid or missing,
 * VIGIL_ERROR_MEMORY, and VIGIL_ERROR_SYSTEM if there can be no thread or descriptor, or a file
 * cannot be read. error->text says what is wrong.
 */
VIGIL_API int vigil_kube_new(const vigil_kube_options *options, vigil_kube **ret_kube,
                             vigil_error *error);

/* Ends everything that was begun with the client: calls complete and watches and informers end with
 * VIGIL_ERROR_CANCELED. The callbacks are made as usual, later. Nothing new can be started. */
VIGIL_API void vigil_kube_shutdown(vigil_kube *kube);

/*
 * Frees the client. Ends what vigil_kube_shutdown would end, but at once. Every call that has not
 * completed completes with VIGIL_ERROR_CANCELED, and its callback is made, as in vigil_client_free
 * (vigil/client.h): before this function returns, or, if it is called inside a callback, as soon as
 * that one has returned.
 *
 * Watches, informers, handlers and candidates end without a callback. They and the calls that the
 * program holds must still be freed; they have no effect any more. Accepts NULL.
 */
VIGIL_API void vigil_kube_free(vigil_kube *kube);

/* The URL of the server, for messages. */
VIGIL_API const char *vigil_kube_server(const vigil_kube *kube);
/* The namespace of the configuration; "default" if it names none. */
VIGIL_API const char *vigil_kube_namespace(const vigil_kube *kube);

/* -- In the program's loop (own_thread is 0) -- */

/* Readable when vigil_kube_process has something to do. Stays the same. -1 if the client has its
 * own thread. */
VIGIL_API int vigil_kube_fd(const vigil_kube *kube);
/* Call vigil_kube_process after this time even if the descriptor is not readable. -1: no limit. */
VIGIL_API int vigil_kube_timeout_ms(const vigil_kube *kube);
/* Does what is due, without waiting. On one thread at a time, as all functions of this section and
 * as vigil_kube_call_run; not inside a callback. */
VIGIL_API void vigil_kube_process(vigil_kube *kube);

/* -- Statistics -- */

/* Counters of a client since it was created, unless a comment says "now". */
typedef struct vigil_kube_stats {
    uint64_t connects;       /* connections that were established */
    uint64_t connect_errors; /* attempts that failed */
    uint64_t disconnects;    /* established connections that broke */
    uint64_t connections;    /* now */
    uint64_t calls_started, calls_completed, calls_retried;
    uint64_t watches;      /* now */
    uint64_t watch_events; /* delivered */
    uint64_t watch_retries;
    uint64_t bytes_sent, bytes_received;
} vigil_kube_stats;

/* Reads the counters. size is sizeof(vigil_kube_stats), so that the struct may grow. */
VIGIL_API void vigil_kube_get_stats(const vigil_kube *kube, vigil_kube_stats *ret_stats,
                                    size_t size);

#ifdef __cplusplus
}
#endif

#endif
