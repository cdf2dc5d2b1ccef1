/* What hub.c and cursor.c need of stream.c. */
#ifndef VIGIL_WATCH_STREAM_STREAM_PRIVATE_H
#define VIGIL_WATCH_STREAM_STREAM_PRIVATE_H

#include "watch/stream/stream.h"
#include "watch/stream/stream_state.h"

/* Counts one more watcher among all of the server. False: the limit is reached. */
MUST_CHECK
bool stream_take_one(struct watch_hub *hub);
/* Adds a watcher for a create that was checked and counted (stream_take_one). */
struct watcher *stream_add_watcher(struct watch_stream *stream, const struct watch_create *create,
                                   struct slice key);
/* Frees as much of the hub's closing streams as this turn may. */
void stream_free_closing(struct watch_hub *hub);

#endif
