/*
 * Keeps the mirror equal to the cluster: one thread with its own client.
 *
 *      ┌───────────────────────────── pausing ◄── failed (from any but giving)
 *      ▼
 *     connecting ──► comparing ──► following     broken or compacted: connecting again
 *      ▲    ▲            │ │           │
 *      │    └────────────┼─┼───────────┘
 *      │                 │ └► draining ──► loading ──► giving ──┐
 *      │                 │        ▲           │ compacted       │
 *      │                 │        └───────────┘                 │
 *      └─────────────────┼──────────────────────────────────────┘
 *                        └──► reset: another history, or stored bytes of the mirror are damaged (also
 *                             from loading and following); nothing follows
 *
 * Connecting opens the stream of the watches; every new one begins with a comparison of the
 * histories. What the mirror was given is applied (draining) before a state is loaded and then
 * given to it.
 *
 * Loading reads the whole state at one revision, in pages, compares it with what the mirror has,
 * and gives the mirror the difference: changed keys at their own revisions, in order, and the keys
 * that are gone as tombstones of the state's revision. History up to that revision is dropped.
 *
 * Following watches everything after the mirror's revision, one watch for each prefix or one for
 * all keys. Revisions are given to the mirror once they are complete in every watch.
 *
 * It uses libvigil (include/vigil/).
 */
#ifndef VIGIL_MIRROR_FOLLOW_FOLLOWER_H
#define VIGIL_MIRROR_FOLLOW_FOLLOWER_H

#include "base/error.h"
#include "mirror/link/options.h"
#include "mirror/link/state.h"

struct engine;
struct follower;
struct mirror_directory;

struct follower_options {
    const struct mirror_options *cluster; /* borrowed */
    struct mirror_directory *mirror;      /* borrowed */
    struct mirror_state *state;           /* borrowed; its owner is this thread */
};

/* Starts the thread, and does not wait for the cluster. ST_INVALID: an option is wrong. */
MUST_CHECK
enum status follower_start(const struct follower_options *options, struct follower **ret_follower,
                           struct error *error);
/* Stops the thread. Accepts NULL. */
void follower_stop(struct follower *follower);

/* Any thread: asks the cluster for progress, because a reader waits for a revision that may not
 * concern the mirrored prefixes. Cheap to call often. */
void follower_request_progress(struct follower *follower);
/* Any thread: a compaction was forwarded and answered. */
void follower_note_compaction(struct follower *follower, int64_t revision);

#endif
