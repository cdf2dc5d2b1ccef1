/*
 * One watch of a kubelet or of kube-proxy, as a reflector of client-go keeps it up: a streaming
 * list, then the events after it; when the watch has ended, another one after the last version.
 *
 *     idle ──start──► listing ──► following ──(ended)──► pausing ──► following
 *                        ▲            │                     │
 *                        └────────────┴──(410, no version)──┘
 *
 * Embedded in an array of its node. The loop's thread.
 */
#ifndef VIGIL_LOAD_SCALE_FOLLOW_H
#define VIGIL_LOAD_SCALE_FOLLOW_H

#include "load/scale/world.h"

#include <vigil/kube/watch.h>

enum { SCALE_FOLLOWS = 18, SCALE_VERSION_BYTES = 24 };

/* What the watches of a node have in common. */
struct scale_follower {
    struct scale_thread *thread; /* borrowed */
    vigil_kube *kube;            /* borrowed; NULL: the node is stopped */
    char name[SCALE_NAME_BYTES]; /* name of the node */
    /* The initial state of one more watch is complete. */
    void (*on_complete)(struct scale_follower *follower);
};

struct scale_follow {
    struct scale_follower *follower;
    vigil_kube_watch *watch; /* owned; NULL: none at present */
    struct timer pause;
    uint64_t begun_ns;                 /* when the watch was started */
    uint16_t timeout_s;                /* that it was started with */
    uint8_t row;                       /* what it watches */
    bool complete;                     /* it has had the initial state, since the start */
    bool expired;                      /* the server has forgotten the version */
    char version[SCALE_VERSION_BYTES]; /* "": none, so the next watch begins with the state */
};

/* row: from 0 to SCALE_FOLLOWS - 1. */
void scale_follow_start(struct scale_follow *follow, struct scale_follower *follower, uint8_t row);
/* Accepts one that is zeroed or stopped. */
void scale_follow_stop(struct scale_follow *follow);

#endif
