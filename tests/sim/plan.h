/*
 * What a seed does: derived from the seed alone, and reduced by switching parts of it off.
 */
#ifndef VIGIL_TESTS_SIM_PLAN_H
#define VIGIL_TESTS_SIM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_switch {
    /* Faults. */
    SWITCH_CUT,       /* power fails, at any action of the disk */
    SWITCH_KILL,      /* the process is killed */
    SWITCH_STOP,      /* it is stopped and started again */
    SWITCH_ERRORS,    /* disk calls fail */
    SWITCH_FULL,      /* the disk is full for a while */
    SWITCH_SLOW,      /* some syncs take a second */
    SWITCH_MISDIRECT, /* power cuts put sectors in the wrong place */
    SWITCH_ROT,       /* a bit changes on the disk while the server is stopped */
    SWITCH_BREAK,     /* connections break */
    SWITCH_SILENCE,   /* connections fall silent */
    SWITCH_DELAY,     /* connections become slow */
    SWITCH_PAUSE,     /* actors do not run for a while */
    SWITCH_CLOCK,     /* the clock jumps: the machine was suspended, or was set */
    /* Requests. */
    SWITCH_LEASES,
    SWITCH_WATCHES,
    SWITCH_COMPACTION,
    SWITCH_MAINTENANCE, /* snapshots, hashes, defragmentation */
    SWITCH_AUTH,
    SWITCH_KUBE,  /* the Kubernetes API */
    SWITCH_LARGE, /* values that fill segments of the log */
    SWITCH_TLS,
    SWITCH_FRONT,   /* a second server in front of the first one */
    SWITCH_TIER,    /* the watch tier in front of its Kubernetes API instead */
    SWITCH_REPLICA, /* the tier reaches two servers by one address, of which one is older */
    SWITCHES
};

struct plan {
    uint64_t seed;
    bool on[SWITCHES];
    unsigned clients, operations; /* operations of each */
    unsigned shards;
};

/* What the plan of a seed is reduced to. */
struct plan_limits {
    bool off[SWITCHES];
    unsigned operations; /* operations of each client; 0: as many as the seed says */
    unsigned clients;    /* 0: as many as the seed says */
};

struct plan plan_make(uint64_t seed, const struct plan_limits *limits);
const char *switch_name(enum plan_switch which);
/* What a seed with it has, for people who do not know the names. */
const char *switch_text(enum plan_switch which);
/* SWITCHES: there is none with this name. */
enum plan_switch switch_named(const char *name, size_t len);

#endif
