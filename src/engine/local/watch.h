/*
 * The watches of one shard of the local engine: its hub, the history under it, and what makes the
 * loop turn for them. Made when the first watch comes to the shard; before, it costs nothing.
 */
#ifndef VIGIL_ENGINE_LOCAL_WATCH_H
#define VIGIL_ENGINE_LOCAL_WATCH_H

#include "engine/local/local_private.h"
#include "watch/hub.h"

struct local_watch;

struct local_watch *local_watch_new(struct local_shard *shard); /* aborts without memory */
void local_watch_free(struct local_watch *watch); /* accepts NULL; no stream is left */

struct watch_hub *local_watch_hub(struct local_watch *watch);

/* After input was read: takes in what was published. */
void local_watch_turn_begin(struct local_watch *watch);
/* After what was to be sent was sent. */
void local_watch_flushed(struct local_watch *watch);

#endif
