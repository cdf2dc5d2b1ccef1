/*
 * How all streams of a hub read history: revisions of this turn, and responses that several
 * watchers share, are read and encoded once. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_HUB_HUB_READ_H
#define VIGIL_WATCH_HUB_HUB_READ_H

#include "watch/hub/hub_state.h"

/* The encoded response header of a revision. Valid until the next call. */
const struct message_header *hub_header(struct watch_hub *hub, int64_t revision);

/* Moves a place over revisions of this turn that do not concern the stream, not beyond `last`.
 * Returns the last revision before many more of them. Watchers that were added in this turn begin
 * behind it, so that what concerned a stream when it was read still does. Not for cursors. */
int64_t hub_skip_others(const struct watch_hub *hub, const struct watch_stream *stream,
                        int64_t last, struct watch_place *place);

/* Like watch_history_ops.next up to the tail; revisions of this turn are not read again. */
MUST_CHECK
enum status hub_next(struct watch_hub *hub, struct watch_place *place,
                     struct watch_batch *ret_batch);
/* Exactly this revision, for a response that needs it in every fill. ST_END: it has no events. */
MUST_CHECK
enum status hub_batch(struct watch_hub *hub, int64_t revision, struct watch_batch *ret_batch);

/* Forgets hub->hits: a range was added or freed, or they are searched for something else. */
void hub_hits_drop(struct watch_hub *hub);
/* The entry of a range in hub->hits, or NULL; and a new one. */
struct watch_hit *hub_find_hit(const struct watch_hub *hub, const struct watch_range *range);
struct watch_hit *hub_add_hit(struct watch_hub *hub, struct watch_range *range);

/* The events of the batch in [first, last] that the range covers; `since` is the revision of the
 * first event, which is not the batch's in a run. NULL: too large to be kept. */
const struct encoded_events *hub_encode_events(struct watch_hub *hub,
                                               const struct watch_batch *batch, int64_t since,
                                               const struct watch_range *range, unsigned variant,
                                               size_t first, size_t last);
/* A range was freed: its encoded events must not be used for a new range at the same address. */
void hub_encoded_drop(struct watch_hub *hub);

static inline struct slice hub_prev(struct watch_hub *hub, unsigned flags,
                                    const struct watch_event *event)
{
    return flags & WATCHER_PREV_KV ? hub->history->ops->prev(hub->history, event) : SLICE_EMPTY;
}

/* The set of watchers that catch up has changed: what was read for them is incomplete. */
void hub_windows_drop(struct watch_hub *hub);
/* A turn begins or ends: forgets everything that the history handed out. */
void hub_ring_drop(struct watch_hub *hub);
/* Without live watchers the tail need not be read: it moves to the newest revision at once. */
void hub_catch_tail(struct watch_hub *hub);

#endif
