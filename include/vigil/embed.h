/*
 * The store in the program: what SQLite is for SQL, for a durable key-value store with history and
 * watch. vigil_open_embedded opens a data directory in this process and returns a client with which
 * every function of the other headers works as with a server, but without a socket and without
 * encoding: a blocking get reads on the calling thread, a blocking put is passed to the thread that
 * writes the log, and returns when it is durable.
 *
 * The program is linked with libvigil-embed (pkg-config libvigil-embed), which contains everything
 * that libvigil has; it is not linked with libvigil as well.
 *
 * A data directory is used by one process at a time, which may be this one or `vigil serve`. Within
 * a process it may be opened several times: the clients share one store, which is closed when the
 * last of them is freed.
 *
 * What differs from a client of a server: the store has threads of its own. It needs memory for its
 * keys, and unlike the client it ends the process if there is none. After fork only the parent can
 * use it: in the child its clients fail with VIGIL_ERROR_SYSTEM, and so does vigil_open_embedded
 * for a directory that the parent had open. A child that does not call exec keeps the directory
 * locked as long as it lives.
 *
 * Order: the puts, deletes, transactions and compactions that a thread begins with one client are
 * executed in this order, whether it waits for them or starts them with a callback, as long as
 * authentication is disabled. A read sees the writes that have completed.
 */
#ifndef VIGIL_EMBED_H
#define VIGIL_EMBED_H

#include <vigil/vigil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a store is opened. Set all fields with vigil_embedded_options_init, then change those you
 * need. All but client are those of the first client of a store; later ones have no effect. Texts
 * are copied. */
typedef struct vigil_embedded_options {
    size_t size; /* set by vigil_embedded_options_init; lets the struct grow */

    /* The options of the client, or NULL for the defaults. Those about endpoints, TLS, connections
     * and keepalive have no effect. user and password are needed after authentication was enabled.
     */
    const vigil_options *client;

    int64_t quota_bytes; /* limit on the size of all versions; more are refused with
                            VIGIL_ERROR_NO_SPACE; default 2 GiB; 0: no quota */
    /* History is kept for this time, or for this many revisions, and then compacted; 0 (the
     * default for both): until the program compacts. At most one of them. */
    int64_t keep_history_ms;
    int64_t keep_history_revisions;
    size_t checkpoint_bytes;   /* size of the log between two checkpoints; default 64 MiB. A start
                                  replays at most about as much. */
    size_t request_bytes_max;  /* limit on the size of one write; default 1.5 MiB, as in etcd */
    int64_t watch_progress_ms; /* how often a watch that wants progress receives it while
                                  nothing happens; default 600000, at least 100 */

    /* Called when the log cannot be written or synced, on the thread that writes it. The contents
     * of the disk are then unknown. Without a handler the process ends. With one the store stops:
     * all calls fail with VIGIL_ERROR_SYSTEM from then on, watches end, connections of
     * vigil_embedded_listen are closed, and nothing more is written or acknowledged. When the
     * program has freed all clients, it may open the store again, which examines what is on the
     * disk. Inside the handler the same is refused as inside log. */
    void (*on_failure)(void *user, const char *text);
    void *on_failure_user;

    /* Called for warnings and the like of the whole store, on any thread that uses it, also on
     * several at a time. NULL: they are dropped. level is an enum vigil_log_level. The thread may
     * be one that calls wait for, so inside the callback vigil_call_run and everything else that
     * waits for this store returns VIGIL_ERROR_WOULD_BLOCK, and so does opening it. Calls may be
     * started, clients freed, and other stores used. */
    void (*log)(void *user, int level, const char *text);
    void *log_user;
} vigil_embedded_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_embedded_options_init(vigil_embedded_options *options);

/*
 * Opens the store in a data directory, which is created if it does not exist, and returns a client
 * of it. It returns when the store is open: about 0.4 s for 1,000,000 keys. options may be NULL for
 * the defaults; error may be NULL, too. Returns a vigil_code; *ret_client is set only if that is
 * VIGIL_OK.
 *
 * vigil_client_free frees the client. If it is the last one of the store, the store is closed: what
 * was begun is finished, and a checkpoint is written. If it is called inside a callback, that
 * happens after the callback has returned. A thread that opens the directory meanwhile waits until
 * it is closed; other stores are not affected.
 *
 * Errors: VIGIL_ERROR_ARGUMENT for options that are invalid or were not set up with
 * vigil_embedded_options_init, VIGIL_ERROR_MEMORY, VIGIL_ERROR_WOULD_BLOCK inside log and
 * on_failure of the same store, and VIGIL_ERROR_SYSTEM if another process uses the directory, if it
 * cannot be read or written, if its contents are damaged or from another program, if the store has
 * stopped, or if it has VIGIL_EMBEDDED_CLIENTS_MAX clients. error->text says which.
 */
VIGIL_API int vigil_open_embedded(const char *directory, const vigil_embedded_options *options,
                                  vigil_client **ret_client, vigil_error *error);

/*
 * Serves etcd's API, and the Kubernetes API, from inside the program, for tests and debugging:
 * etcdctl, kubectl and every other client can then look at the store while the program uses it.
 *
 * Both are lists of URLs with commas, or NULL for none: "http://127.0.0.1:2379,unix:///tmp/store".
 * A port of 0 is replaced by a free one. Only addresses of this machine are accepted, without TLS,
 * because every local user can then do everything, unless authentication is enabled in the store.
 * The addresses are written to urls, which has room for size bytes, in the same order and with
 * commas; urls may be NULL.
 *
 * The store listens until its last client is freed. Returns a vigil_code: VIGIL_ERROR_ARGUMENT if
 * the client is not one of an embedded store, the store listens already, or a URL is invalid;
 * VIGIL_ERROR_SYSTEM if it cannot be listened on; VIGIL_ERROR_WOULD_BLOCK inside a callback. error
 * may be NULL.
 */
VIGIL_API int vigil_embedded_listen(vigil_client *client, const char *client_urls,
                                    const char *kube_urls, char *urls, size_t size,
                                    vigil_error *error);

/* The number of clients that one store may have at a time. */
enum { VIGIL_EMBEDDED_CLIENTS_MAX = 16 };

#ifdef __cplusplus
}
#endif

#endif
