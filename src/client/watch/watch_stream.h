/*
 * A gRPC stream that watches share: one for each set of metadata. It exists at the server while it
 * has watches. Create and cancel requests are pipelined, but only a limited number of them waits
 * for the server's answer; answers to create requests come in order. After a break all watches are
 * created again on a new stream, each from its own next revision.
 *
 * Owned by a client; the loop's thread. Mirrors watchGrpcStream of etcd's clientv3.
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_STREAM_H
#define VIGIL_CLIENT_WATCH_WATCH_STREAM_H

#include "base/status.h"

#include <stdbool.h>

struct client_metadata;
struct vigil_client;
struct vigil_watch;
struct client_watch_stream;

/* The stream with these properties. It is a part of the client, which frees it. Takes the metadata
 * only if it sets *metadata to NULL. ST_NOMEM. */
MUST_CHECK
enum status client_watch_stream_get(struct vigil_client *client, bool require_leader,
                                    struct client_metadata **metadata,
                                    struct client_watch_stream **ret_stream);
/* For iterating over vigil_client.watch_streams; NULL at the end. */
struct client_watch_stream *client_watch_stream_next(const struct client_watch_stream *stream);

/* The watch is new: it is created as soon as possible. */
void client_watch_stream_add(struct client_watch_stream *stream, struct vigil_watch *watch);
/* The watch is parked, and the user has resumed it: it is created again. */
void client_watch_stream_resume(struct client_watch_stream *stream, struct vigil_watch *watch);
/* The watch delivers nothing any more. It is cancelled at the server if necessary, and released at
 * once or after that. */
void client_watch_stream_remove(struct client_watch_stream *stream, struct vigil_watch *watch);
/* Sent when the stream is open; otherwise the request is dropped. */
void client_watch_stream_request_progress(struct client_watch_stream *stream);

/* Asserts every invariant; for tests. */
void client_watch_stream_check(const struct client_watch_stream *stream);

#endif
