/*
 * Watches without a start revision, which must not begin before the mirror shows what was written
 * through this server: the client has seen the answer, and so its watch begins after that write.
 * One list for each shard, on its thread.
 *
 * The history of a shard shows one state of the mirror in a turn, and that may have been taken
 * before the client has sent its request. So what the mirror had in the turn before counts.
 */
#ifndef VIGIL_MIRROR_MIRROR_WAIT_H
#define VIGIL_MIRROR_MIRROR_WAIT_H

#include "base/container/list.h"
#include "io/loop.h"

struct mirror_state;
struct follower;

/* Embedded by its owner. */
struct mirror_wait {
    void (*done)(struct mirror_wait *wait, bool reached); /* false: not in time */
    int64_t patience_ns;                                  /* 0: the usual */
    int64_t needed, until_ns;                             /* private */
    struct list in_waits;                                 /* private */
};

struct mirror_waits {
    struct loop *loop;
    struct mirror_state *state;
    struct follower *follower;
    struct list all;   /* the first to end in vain first */
    struct timer look; /* set while something waits */
    int64_t looked_at; /* the mirror's revision at the last look */
    int64_t shown;     /* this turn's histories have at least this revision */
};

void mirror_waits_init(struct mirror_waits *waits, struct loop *loop, struct mirror_state *state,
                       struct follower *follower);
void mirror_waits_fini(struct mirror_waits *waits); /* nothing may wait */

/* done may be called from within. */
void mirror_wait_start(struct mirror_waits *waits, struct mirror_wait *wait);
#endif
