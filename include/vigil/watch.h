/*
 * A watch: every change of a key or a range of keys, in order, from a revision on. It survives
 * broken connections: it resumes after the last revision that was delivered, if necessary at
 * another endpoint, and nothing is lost, repeated or reordered.
 *
 *     waiting ──► creating ──► live ──► ended
 *        ▲            │          │ ▲
 *        └─ broken ───┴──────────┤ └── creating ◄── resumed ──┐
 *                                └──► paused, buffer full ────┘
 *
 * What ends a watch, and what does not (status of the stream, or reason of a cancelled watch):
 *
 *     connection broken, GOAWAY, reset         resumes
 *     OK: the server has closed the stream     resumes
 *     calls at its endpoint are Unavailable    resumes at another endpoint if there is one
 *     Unavailable, Internal                    resumes, at another endpoint if there is one
 *     Unavailable "etcdserver: no leader"      ends with require_leader, and a new watch begins at
 *                                              another endpoint if there is one; otherwise resumes
 *     "rpc not supported for learner"          resumes at another endpoint; ends if there is none
 *     Unauthenticated, "invalid auth token"    gets a new token and resumes, if there is a user
 *     "revision of auth store is old"          gets a new token and resumes, if there is a user
 *     every other status                       ends
 *     a response exceeds receive_bytes_max     ends: VIGIL_ERROR_TOO_LARGE
 *     cancelled with a compact revision        ends: VIGIL_ERROR_COMPACTED
 *     cancelled with another reason            ends with that reason
 *
 * This is what etcd's clientv3 does, with these deliberate differences:
 *
 * - clientv3 does not renew a token for a watch; here it is renewed.
 * - clientv3 ends a watch when the server closes the stream with OK; here it resumes.
 * - clientv3 ends without an error when the server cancels a watch without a compact revision; here
 *   every end has an error.
 * - clientv3 resumes a watch from revision 0 at the revision of its creation and may deliver a
 *   change again; here it resumes after that revision.
 * - clientv3 sends one create request at a time; here thousands wait for their answers.
 *
 * A watch that resumes at exactly the compacted revision does not end. etcd before 3.4.34, and from
 * 3.5.0 to 3.5.15, has then forgotten the deletes of that revision, and the watch does not deliver
 * them; newer ones and Vigil send them.
 *
 * Threads: as in vigil/client.h. The callbacks of one watch are made one at a time and in order.
 *
 * Errors: vigil_watch_new fails with VIGIL_ERROR_ARGUMENT for invalid options and with
 * VIGIL_ERROR_MEMORY. Everything else is delivered as VIGIL_WATCH_ENDED: VIGIL_ERROR_COMPACTED with
 * compact_revision, VIGIL_ERROR_PERMISSION_DENIED, VIGIL_ERROR_CANCELED when the client is shut
 * down, and the others of the table.
 *
 * Example: examples/watch.c
 */
#ifndef VIGIL_WATCH_H
#define VIGIL_WATCH_H

#include <vigil/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_watch vigil_watch;

/* What happened to a key. */
enum vigil_event_type { VIGIL_PUT = 0, VIGIL_DELETE = 1 };

/* One change of one key. */
typedef struct vigil_event {
    int32_t type;       /* enum vigil_event_type */
    const vigil_kv *kv; /* a delete has only the key and the revision of the delete */
    /* NULL unless requested; also if the key did not exist, or if what it was before has been
     * compacted: etcd looks it up when it sends the event. */
    const vigil_kv *prev_kv;
} vigil_event;

/* The kinds of batches that a watch delivers. */
enum vigil_watch_what {
    VIGIL_WATCH_CREATED,  /* the server has the watch; delivered once, with created_notify */
    VIGIL_WATCH_EVENTS,   /* all events of one or more revisions */
    VIGIL_WATCH_PROGRESS, /* everything up to batch->revision has been delivered */
    VIGIL_WATCH_ENDED     /* nothing follows; error says why */
};

/* What a watch delivers. It and everything that it points to are valid during the callback. */
typedef struct vigil_watch_batch {
    int what;         /* enum vigil_watch_what */
    int64_t revision; /* revision of the newest event, or up to which all was delivered; the watch
                         would resume after it */
    const vigil_header *header; /* header of the response; NULL for VIGIL_WATCH_ENDED without one */
    const vigil_event *events;
    size_t event_count;
    /* With VIGIL_ERROR_COMPACTED: the oldest that can be watched. etcd before 3.4.34, and
     * from 3.5.0 to 3.5.15, does not send deletes of that very revision. */
    int64_t compact_revision;
    const vigil_error *error; /* with VIGIL_WATCH_ENDED; otherwise NULL */
} vigil_watch_batch;

/* What the callback of a watch returns. */
enum vigil_watch_answer {
    VIGIL_WATCH_CONTINUE = 0,
    VIGIL_WATCH_PAUSE = 1 /* no more until vigil_watch_resume; only an end because of missing memory
                             or of vigil_client_shutdown is delivered to a paused watch */
};

/* Receives what a watch delivers; returns enum vigil_watch_answer. */
typedef int (*vigil_watch_fn)(vigil_watch *watch, const vigil_watch_batch *batch, void *user);

/* A field of metadata for the server or a proxy before it. The name is in lower case and none of
 * gRPC's own ("grpc-…", "content-type", "te", "user-agent"); the value has visible characters and
 * spaces. Binary values ("…-bin") are not supported. */
typedef struct vigil_metadata {
    const char *name;
    const char *value;
} vigil_metadata;

/* What to watch, and how. Set all fields with vigil_watch_options_init. */
typedef struct vigil_watch_options {
    size_t size;
    vigil_bytes key;
    vigil_bytes range_end;     /* as in vigil_range_request */
    uint8_t prefix;            /* all keys with the prefix `key`; range_end is not used */
    int64_t revision;          /* the first one to be delivered; 0: from now on */
    uint8_t prev_kv;           /* deliver also what the key was before */
    uint8_t progress_notify;   /* progress now and then while nothing changes */
    uint8_t created_notify;    /* deliver VIGIL_WATCH_CREATED */
    uint8_t no_put, no_delete; /* leave these events out */
    uint8_t require_leader;    /* ends if the server loses its leader */
    uint8_t no_fragment;       /* do not let the server cut large revisions into pieces */
    /* While the watch is paused, up to this many bytes are kept; beyond that the watch is cancelled
     * at the server and created again when it is resumed. Default 1 MiB. */
    size_t buffer_bytes;
    /* Watches with the same metadata and the same require_leader share one stream to the server,
     * those with different ones do not. Events of watches with different metadata thus do not wait
     * for each other in one stream. */
    const vigil_metadata *metadata; /* copied */
    size_t metadata_count;
} vigil_watch_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_watch_options_init(vigil_watch_options *options);

/* Begins to watch. The key and the range end are copied. fn is called later, also for errors of the
 * server; *ret_watch is set before. Returns a vigil_code; if that is not VIGIL_OK, fn is not called
 * and *ret_watch is not set. */
VIGIL_API int vigil_watch_new(vigil_client *client, const vigil_watch_options *options,
                              vigil_watch_fn fn, void *user, vigil_watch **ret_watch);

/* Ends the watch in any state. fn is not called any more; if it is running on another thread just
 * now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_watch_free(vigil_watch *watch);

/* Continues a watch whose callback has returned VIGIL_WATCH_PAUSE: what was kept meanwhile is
 * delivered, and then whatever follows. It has no effect on other watches. */
VIGIL_API void vigil_watch_resume(vigil_watch *watch);

/* Asks the server for progress: every watch that shares the stream of this one (see metadata) and
 * was live before gets a VIGIL_WATCH_PROGRESS; a paused one when it is resumed, unless its buffer
 * is full. The request is lost if there is no connection. etcd does not answer it while one of the
 * watches has not yet received the past, or has a start revision above that of the store: so not
 * after a reconnection either, until something is written. A program that needs the answer asks
 * again.
 *
 * etcd before 3.4.31, and from 3.5.0 to 3.5.12, answers before it has sent everything. Its answer
 * is delivered with the revision that the watch has reached; only header->revision is what the
 * server has said. The same happens if the server does not tell its version, which is
 * requested once per connection, with Maintenance.Status. */
VIGIL_API void vigil_watch_request_progress(vigil_watch *watch);

/* The revision after which the watch would resume now; -1 before it is known. */
VIGIL_API int64_t vigil_watch_revision(const vigil_watch *watch);

/* Where a watch is, and how it got there. */
typedef struct vigil_watch_stats {
    int64_t revision; /* as vigil_watch_revision */
    /* By at most how many revisions it is behind, now: the newest revision that the client has
     * received for any watch, minus that of this watch. 0 if everything that was received has been
     * delivered and the server has the watch. */
    uint64_t lag;
    uint64_t queued_bytes; /* received and not yet delivered or released, now */
    uint64_t resumes;      /* how often it was created again after a break or a pause */
} vigil_watch_stats;

/* Reads the statistics of a watch. size is sizeof(vigil_watch_stats), so that the struct may grow.
 */
VIGIL_API void vigil_watch_get_stats(const vigil_watch *watch, vigil_watch_stats *ret_stats,
                                     size_t size);
/* The user pointer of vigil_watch_new. */
VIGIL_API void *vigil_watch_user(const vigil_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
