/* The inside of a collection: what the follower publishes, and what readers want of it. */
#ifndef VIGIL_TIER_MIRROR_COLLECTION_PRIVATE_H
#define VIGIL_TIER_MIRROR_COLLECTION_PRIVATE_H

#include "base/lock.h"
#include "client/driver/member.h"
#include "tier/mirror/collection.h"
#include "tier/mirror/kinds.h"
#include "tier/mirror/versions.h"

struct driver;
struct engine;

struct tier_generation {
    uint64_t number; /* 0: none */
    int64_t began;   /* the state was complete at this revision */
    int64_t ended;   /* reads at this revision and later ones are not of it; 0: it has not ended */
    struct tier_versions versions;
};

/* What an I/O thread has in a collection (wait.c). */
struct tier_reader_use {
    struct tier_collection *collection;
    struct mailbox *mailbox; /* the reader's */
    struct mailbox_node node;
    /* Protected by the collection's lock: */
    struct list in_collection; /* links tier_collection.uses */
    bool posted;               /* the node is on its way; the message owns the use then */
    bool changed;              /* a generation has ended since the last message */
    unsigned waiting;          /* waits that are not done */
    /* The reader's thread: */
    struct tier_reader *reader;
    struct list in_reader;
    struct list waits, listeners;
    bool busy;    /* functions of these are being called, which may remove all of them */
    bool is_over; /* it has left the collection, and is freed when its message arrives */
};

/* For people; the follower writes, any thread reads. */
struct tier_collection_counters {
    _Atomic uint64_t objects, bytes; /* what readers see, or what is being loaded */
    _Atomic uint64_t held_bytes;     /* by all its states (usage.h) */
    _Atomic uint64_t generations, restarts, events;
    _Atomic uint64_t throttled; /* requests that were answered with 429 */
    _Atomic uint64_t fences, fences_failed, fence_ns;
    _Atomic uint64_t waits, waits_failed;
    _Atomic int64_t heard_ns; /* when the mirror was last known to be current; 0: never */
    _Atomic int64_t began_ns; /* when the generation was complete */
};

struct tier_collection {
    struct tier_name name; /* its texts are below */
    char *texts;           /* owned */
    uint32_t number;
    struct engine *engine;
    struct driver *driver; /* the follower's; it outlives all collections */
    _Atomic unsigned refs;
    _Atomic uint64_t opened;        /* how often */
    _Atomic bool is_kept;           /* it is never idle */
    _Atomic bool is_cluster_scoped; /* as in struct tier_view */

    /* Makes the follower look at what is wanted. */
    _Atomic bool is_posted;
    struct driver_command command;

    struct tier_collection_counters counters;

    /* Protected by the lock: */
    struct lock lock;
    enum tier_phase phase;
    bool has_kinds, connected, store_fails;
    bool fails;     /* the last request for the state was answered with an error of the server */
    bool may_retry; /* REFUSED: the server did not know the resource */
    bool retries;   /* a reader has opened it then, and the follower has not started it yet */
    struct tier_kinds *all_kinds;   /* owned */
    const struct tier_kinds *kinds; /* one of them; NULL: unknown */
    char reason[TIER_REASON_BYTES];
    struct tier_generation current, previous;
    uint64_t first_generation; /* that readers have seen; 0: none yet */
    unsigned early_watches;    /* passed on (tier_collection_pass_early) */
    int64_t late_ns;           /* until here they are used up (tier_collection_pass_late) */
    uint64_t void_after, void_until;
    int64_t compacted; /* history up to this revision is or will be dropped */
    /* Fences are numbered. A state that is read again counts as one. */
    uint64_t fence_wanted, fence_begun, fence_ended, fence_succeeded;
    int64_t fence_revision; /* has everything that the last one that succeeded has shown */
    uint64_t fence_version; /* the server's version then; of the current generation */
    struct list uses;       /* tier_reader_use.in_collection */
};

/* ST_NOMEM. */
MUST_CHECK
enum status collection_init(struct tier_collection *collection, const struct tier_name *name);
void collection_fini(struct tier_collection *collection);

/* Any thread, without the lock: the follower looks at the collection soon. */
void collection_wake_follower(struct tier_collection *collection);

/* Any thread, without the lock: it is being opened. If the server did not know the resource, it may
 * have been defined since: it is started again, and its readers wait for that. */
void collection_reopen(struct tier_collection *collection);

/* With the lock held: the prefix of the keys of a generation. */
void collection_prefix(const struct tier_collection *collection, uint64_t generation,
                       uint8_t ret_prefix[TIER_PREFIX_BYTES]);

/* Without the lock. More is visible to readers: those who wait look at it. Changed: a generation
 * has ended, and all look at it. */
void collection_notify(struct tier_collection *collection, bool changed);

/* With the lock held: what readers see at this moment. 0: nothing. */
uint64_t collection_visible_version(const struct tier_collection *collection);

#endif
