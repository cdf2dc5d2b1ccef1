/*
 * A job that does the work of one of kube-controller-manager's controllers: it reads some objects
 * and then follows what happens to all of them, unless kube-controller-manager does this itself.
 *
 *     UNUSED ─────────► STANDING_BACK ─────────► LOADING ──────► FOLLOWING
 *     there is no       kube-controller-manager  reads its       takes events, and does
 *     default           holds its lease          objects         what follows from them
 *     namespace            ▲                       ▲  │            │
 *                          └── the lease is held ──┼──┴────────────┤
 *                                                  └── events are lost to compaction
 *
 * A store that is used only through the etcd API has no default namespace, and only that key is
 * watched. While kube-controller-manager is at work only its lease is watched.
 *
 * Objects and events are taken in turns of a bounded length. On the thread of the API.
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_FOLLOWER_H
#define VIGIL_KUBE_JOBS_FOLLOWER_FOLLOWER_H

#include "base/buf.h"
#include "kube/jobs/job.h"
#include "kube/jobs/manager_lease.h"
#include "watch/cursor.h"
#include "watch/index/history.h"

struct kube_follower;

enum {
    KUBE_FOLLOWER_ARENA_BYTES_MAX = 8 << 20, /* memory of the engine for one read */
    /* Size of the objects in one turn; the last may be longer. */
    KUBE_FOLLOWER_LOOKED_BYTES_MAX = 256 << 10,
};

struct kube_follower_type {
    struct kube_job_type job; /* .step = kube_follower_step; .fini calls kube_follower_fini */
    const char *first, *end;  /* the keys of the objects that are loaded */
    bool follows_loaded;      /* only the events of these keys are taken, and not of all objects */
    const char *stands_back;  /* the line in the log */
    /* Makes the state that objects and events are taken into; `drop` frees it, if it was made. */
    void (*begin)(struct kube_follower *follower);
    void (*drop)(struct kube_follower *follower);
    void (*object)(struct kube_follower *follower, struct kube_kv kv);
    void (*loaded)(struct kube_follower *follower); /* may be NULL */
    /* False: what was lost with an older revision must be loaded again. */
    bool (*event)(struct kube_follower *follower, const struct watch_event *event,
                  int64_t revision);
    /* Called after some events were taken, once there is nothing newer among the loaded objects.
     * True: the job has an operation under way, or its next step. False: it is called again after
     * the next event, or at *ret_next_ns, which is CLOCK_NEVER if it is not set. */
    bool (*work)(struct kube_follower *follower, int64_t *ret_next_ns);
};

enum kube_follower_state {
    KUBE_FOLLOWER_UNUSED,
    KUBE_FOLLOWER_STANDING_BACK,
    KUBE_FOLLOWER_LOADING,
    KUBE_FOLLOWER_FOLLOWING,
};

/* The first member of its job. All of it except `job` is private. */
struct kube_follower {
    struct kube_job job;
    const struct kube_follower_type *type;
    enum kube_follower_state state;
    struct watch_cursor *cursor;
    struct watch_cursor *lease_cursor; /* follows_loaded: the lease, which is not among its keys */
    struct kube_manager_lease lease;
    struct buf from; /* LOADING: the first key of the next page */
    bool page_open;  /* its range has objects that have not been taken */
    bool loaded;     /* every page was read */
    bool failed;     /* the last read */
    bool noted;      /* STANDING_BACK: the lease was read since it last changed */
    bool used;       /* UNUSED: the default namespace exists */
    int64_t read_at; /* the revision of the newest page */
};

/* A zeroed follower. */
void kube_follower_start(struct kube_follower *follower, const struct kube_follower_type *type,
                         struct kube_api *api);
void kube_follower_step(struct kube_job *job);
void kube_follower_fini(struct kube_follower *follower);

static inline struct kube_follower *kube_follower_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct kube_follower, job);
}

/* How much of a turn an object of this length takes. */
static inline size_t kube_follower_cost(struct slice field)
{
    return size_max(field.len, 256);
}

#endif
