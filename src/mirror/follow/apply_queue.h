/*
 * Gives batches to the mirror, a limited number at a time, and returns to the follower's thread
 * when one is applied.
 *
 *     follower ── feeder_give ──► mirror's writer ── visible: raises what readers may rely on
 *         ▲                              │
 *         └───────────── done ───────────┘
 *
 * Parts of a state that the mirror refuses because the disk is full are kept, and can be given
 * again.
 *
 * The follower's thread, except where it says otherwise.
 */
#ifndef VIGIL_MIRROR_FOLLOW_APPLY_QUEUE_H
#define VIGIL_MIRROR_FOLLOW_APPLY_QUEUE_H

#include "mirror/follow/merge.h"
#include "mirror/load/load.h"

struct driver;
struct feeder;

enum {
    FEEDER_BATCHES_MAX = 4,       /* in flight: one is applied while the next ones are made */
    FEEDER_BATCH_BYTES = 1 << 20, /* about, unless a single revision has more */
};

struct feeder_options {
    struct engine *mirror;
    struct driver *driver; /* the feeder takes a reference */
    /* On the writer's thread: readers see everything up to this revision. */
    void (*visible)(void *ctx, int64_t revision);
    /* A batch is applied, and another one may be given. */
    void (*done)(void *ctx, enum status status);
    void *ctx;
};

struct feeder *feeder_new(const struct feeder_options *options); /* aborts without memory */
/* Any thread, when the driver's loop has ended: waits for the mirror. Accepts NULL. */
void feeder_free(struct feeder *feeder);

bool feeder_has_room(const struct feeder *feeder);
bool feeder_is_idle(const struct feeder *feeder);
/* Some parts of a state were refused. When the feeder is idle they can be given again. */
bool feeder_has_refused(const struct feeder *feeder);
void feeder_give_again(struct feeder *feeder);
/* Bytes in flight. */
size_t feeder_bytes(const struct feeder *feeder);

/* Each takes what it is given. */
void feeder_give(struct feeder *feeder, struct merge_taken *taken);
/* A part of a state at this revision. */
void feeder_give_part(struct feeder *feeder, struct load_part *part, int64_t revision);
/* Nothing new, but everything up to this revision is known. */
void feeder_reach(struct feeder *feeder, int64_t revision);
void feeder_compact(struct feeder *feeder, int64_t revision);

/*
 * How much the cluster may send that the mirror has not applied. Beyond one limit the watches are
 * paused until half of it is applied. Events of some prefixes that wait for others to pass the same
 * revisions are not a reason to pause, because that would keep the others from passing: beyond
 * another limit the state is loaded instead.
 */
enum {
    INTAKE_QUEUED_BYTES_MAX = 16 << 20,  /* received and not applied */
    INTAKE_WAITING_BYTES_MAX = 64 << 20, /* limit on the size of prefixes that wait for others */
};

struct intake {
    size_t queued_max, waiting_max;
    bool is_paused;
};

static inline struct intake intake_default(void)
{
    return (struct intake){.queued_max = INTAKE_QUEUED_BYTES_MAX,
                           .waiting_max = INTAKE_WAITING_BYTES_MAX};
}

/* To be called when something was received or applied. True: is_paused has changed. */
bool intake_regulate(struct intake *intake, const struct merge *merge, const struct feeder *feeder);
/* Too much waits for other prefixes. */
bool intake_is_beyond(const struct intake *intake, const struct merge *merge);

#endif
