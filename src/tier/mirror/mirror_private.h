/* The inside of the mirror. */
#ifndef VIGIL_TIER_MIRROR_MIRROR_PRIVATE_H
#define VIGIL_TIER_MIRROR_MIRROR_PRIVATE_H

#include "tier/mirror/follow.h"
#include "tier/mirror/mirror.h"

enum {
    TIER_SAMPLES = 40, /* they cover the history that is kept */
    /* A sample is taken when so much of the history has passed: as time, or as bytes. Both together
     * fit, with a few to spare. */
    TIER_SAMPLES_TIME = 14,
    TIER_SAMPLES_BYTES = 16,
};

struct tier_mirror {
    struct tier_follower follower;
    struct vigil_kube *kube; /* owned */
    unsigned collections_max;
    int64_t idle_ns, history_ns;
    struct turn *turn; /* borrowed; may be NULL */
    struct driver_command start;

    struct lock lock;      /* protects what follows */
    struct hash_map names; /* struct tier_follow, by name */
    struct list all;       /* tier_follow.in_mirror: those in the map, and others that end */
    unsigned count;        /* how many they are */
    uint32_t last_number;  /* the number of the last collection */
    struct random random;

    /* The follower's thread. */
    struct driver_part part;
    bool started, ended;
    struct timer tick;
    struct tier_sample { /* a revision that was visible at that time, the oldest first */
        int64_t at_ns, revision;
        uint64_t replaced; /* usage.replaced then */
    } samples[TIER_SAMPLES];
    unsigned sample_count;
    int64_t compacted;
    uint64_t compacted_replaced;    /* the sample's at which the history begins */
    uint64_t history_bytes_max;     /* 0: no limit */
    _Atomic uint64_t history_bytes; /* for people; any thread reads it */
};

#endif
