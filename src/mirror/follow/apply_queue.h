/*
 * Gives batches to the mirror, a limited number at a time, and returns to the follower's thread
 * when one is applied.
 *
 *     follower ── apply_queue_push ──► mirror's writer ── visible: raises what readers may rely on
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
struct apply_queue;

enum {
    APPLY_QUEUE_BATCHES_MAX = 4,       /* in flight: one is applied while the next ones are made */
    APPLY_QUEUE_BATCH_BYTES = 1 << 20, /* about, unless a single revision has more */
};

struct apply_queue_options {
    struct engine *mirror;
    struct driver *driver; /* the queue takes a reference */
    /* On the writer's thread: readers see everything up to this revision. */
    void (*visible)(void *ctx, int64_t revision);
    /* A batch is applied, and another one may be given. */
    void (*done)(void *ctx, enum status status);
    void *ctx;
};

struct apply_queue *apply_queue_new(
    const struct apply_queue_options *options); /* aborts without memory */
/* Any thread, when the driver's loop has ended: waits for the mirror. Accepts NULL. */
void apply_queue_free(struct apply_queue *queue);

bool apply_queue_has_room(const struct apply_queue *queue);
bool apply_queue_is_idle(const struct apply_queue *queue);
/* Some parts of a state were refused. When the queue is idle they can be given again. */
bool apply_queue_has_refused(const struct apply_queue *queue);
void apply_queue_retry(struct apply_queue *queue);
/* Bytes in flight. */
size_t apply_queue_bytes(const struct apply_queue *queue);

/* Each takes what it is given. */
void apply_queue_push(struct apply_queue *queue, struct merge_taken *taken);
/* A part of a state at this revision. */
void apply_queue_push_part(struct apply_queue *queue, struct load_part *part, int64_t revision);
/* Nothing new, but everything up to this revision is known. */
void apply_queue_reach(struct apply_queue *queue, int64_t revision);
void apply_queue_compact(struct apply_queue *queue, int64_t revision);

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
bool intake_regulate(struct intake *intake, const struct merge *merge,
                     const struct apply_queue *queue);
/* Too much waits for other prefixes. */
bool intake_is_beyond(const struct intake *intake, const struct merge *merge);

#endif
