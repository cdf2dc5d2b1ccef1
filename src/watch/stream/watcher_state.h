/*
 * How watchers change their state, as drawn in watcher.h. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_STREAM_WATCHER_STATE_H
#define VIGIL_WATCH_STREAM_WATCHER_STATE_H

#include "watch/index/watcher.h"

void watcher_move(struct watcher *watcher, enum watcher_state next);
/* Removes the watcher from its stream and frees it. */
void watcher_close(struct watcher *watcher);
/* The same for one that was already removed from the stream's ids, or whose stream is closing. */
void watcher_destroy(struct watcher *watcher);
/* Revisions it needs are gone: a response will say so. */
void watcher_compacted(struct watcher *watcher);
/* Revisions it needs cannot be read: a response will say so. */
void watcher_damaged(struct watcher *watcher);

#endif
