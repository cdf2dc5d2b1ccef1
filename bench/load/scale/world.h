/* What the parts of a run have in common: all of them, and those of one thread. */
#ifndef VIGIL_LOAD_SCALE_WORLD_H
#define VIGIL_LOAD_SCALE_WORLD_H

#include "base/buf.h"
#include "base/random.h"
#include "io/loop.h"
#include "load/options.h"
#include "load/scale/measures.h"

#include <vigil/kube/object.h>

struct scale_follower;

enum {
    SCALE_NAMESPACES = 3, /* that pods are in: "scale-0" … */
    SCALE_DIGITS = 7,     /* length of the numbers in names */
    SCALE_NAME_BYTES = 40,
};
#define SCALE_PREFIX "scale-"

/* What the threads do; set by the main thread. */
enum scale_phase {
    SCALE_STARTING, /* nodes are started, services do not change */
    SCALE_FILLING,  /* all nodes are started; pods are created until there are enough */
    SCALE_STEADY,   /* pods come and go, and services and endpoint slices change */
    SCALE_SETTLING, /* nothing new begins, and what has begun is finished */
};

/* An endpoint slice's latest change. */
struct scale_change {
    _Atomic uint64_t sent_ns;
    _Atomic uint32_t seen; /* by so many nodes */
};

struct scale_world {
    /* Constant. */
    const struct bench_options *options;
    uint32_t nodes, pods;
    double lives_per_second; /* how many pods are replaced */
    double services_per_second;
    struct scale_change *slices; /* one for each */

    _Atomic uint32_t phase;    /* enum scale_phase */
    _Atomic uint32_t restarts; /* that were ordered; each thread restarts its part of the nodes */
    _Atomic uint32_t started, synced, pods_ready;
    _Atomic uint32_t calls; /* under way */
};

/* Used only by the thread. */
struct scale_thread {
    struct scale_world *world;
    struct loop *loop;
    struct random random;
    struct scale_measures *measures;
    struct buf scratch; /* for the object of the next call */
    /* A node has received a pod that is bound to it: by an event about a change, or in a list. */
    void (*on_pod)(struct scale_follower *follower, const vigil_kube_object *pod, bool is_change);
};

/* Paces what happens so many times per second. Zeroed, it begins with the first question. */
struct scale_pace {
    int64_t begun_ns; /* 0: it has not begun */
    uint64_t done;
};

/* How many are due now; the caller counts in `done` those that it has done. */
static inline uint64_t scale_pace_due(struct scale_pace *pace, double per_second, int64_t now_ns)
{
    if (!pace->begun_ns)
        pace->begun_ns = now_ns;
    double due = (double)(now_ns - pace->begun_ns) / 1e9 * per_second;
    return due > (double)pace->done ? (uint64_t)due - pace->done : 0;
}

#endif
