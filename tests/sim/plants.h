/*
 * Planted bugs: vigil_sim --plant=NAME breaks the server in one place, which the checks have to
 * find. Each replaces a function when the program is linked; nothing of this is in the server.
 */
#ifndef VIGIL_TESTS_SIM_PLANTS_H
#define VIGIL_TESTS_SIM_PLANTS_H

#include "plan.h"

/* name, what is wrong, the fault that it needs */
#define PLANTS_TABLE(X)                                                                            \
    X(NO_SYNC, "no-sync", "writes are answered before they are synced", "power cut")               \
    X(HALF_SYNC, "half-sync", "one sync in four is left out", "power cut")                         \
    X(NO_SYNC_DIR, "no-sync-dir", "new files are not synced into their directory", "power cut")    \
    X(TORN_RECORD, "torn-record", "a torn record is taken for a good one", "power cut")            \
    X(SYNC_ERROR, "sync-error", "a sync that fails is ignored", "I/O error")                       \
    X(WRITE_ERROR, "write-error", "a write that fails is ignored", "I/O error")                    \
    X(FULL_IGNORED, "full-ignored", "a put onto a full disk is answered", "full disk")             \
    X(LEASES_LOST, "leases-lost", "leases are forgotten by a restart", "kill")                     \
    X(AUTH_LOST, "auth-lost", "users are forgotten by a restart", "kill")                          \
    X(WATCH_GAP, "watch-gap", "a watch that resumes misses a revision", "broken connection")       \
    X(WATCH_EARLY, "watch-early", "a watch that resumes begins too early", "broken connection")    \
    X(SILENCE, "silence", "a silent connection is not noticed", "silent connection")               \
    X(WALL_CLOCK, "wall-clock", "leases end by the time of day", "jumping clock")                  \
    X(EXCHANGED, "exchanged", "a record is good if none of its sectors is missing",                \
      "misdirected sector")                                                                        \
    X(HALF_CHECKSUM, "half-checksum", "checksums ignore every other bit", "changed bit")           \
    X(SLOW_SYNC, "slow-sync", "a write that took a second is made and refused", "slow disk")       \
    X(STALL, "stall", "renewals count when the writer reads them", "pause")                        \
    X(LATE_PING, "late-ping", "a late ping means that nothing was sent", "slow connection")        \
    X(LAST_CHECKPOINT, "last-checkpoint", "the checkpoint at a stop misses keys", "clean stop")    \
    X(RENEWAL_LOST, "renewal-lost", "one renewal in four is answered but not made", "none")        \
    X(LEASE_EARLY, "lease-early", "leases end half a second too early", "none")                    \
    X(DOUBLE_APPLY, "double-apply", "one put in fifty is applied twice", "none")                   \
    X(NO_COMPARE, "no-compare", "one transaction in ten ignores its comparisons", "none")          \
    X(STALE_READ, "stale-read", "one range in ten is read a revision too early", "none")           \
    X(COMPACT_FAR, "compact-far", "a compaction goes a revision too far", "none")                  \
    X(NO_PERMISSION, "no-permission", "permissions of writes are not checked", "none")             \
    X(WRONG_PREVIOUS, "wrong-previous", "one put in ten has no previous value", "none")            \
    X(INFORMER, "informer", "an informer ignores one deletion in four", "none")                    \
    X(FRONT_STALE, "front-stale", "in front: a read does not ask for the newest revision", "none") \
    X(FRONT_RIGHTS, "front-rights", "in front: all users may read", "none")                        \
    X(FRONT_GAP, "front-gap", "in front: a revision is left out when the watch resumes",           \
      "broken connection")                                                                         \
    X(FRONT_TWICE, "front-twice", "in front: a write without an answer is sent again",             \
      "broken connection")                                                                         \
    X(FRONT_KEEPS, "front-keeps", "in front: a state that is loaded deletes no keys",              \
      "cut off during a compaction")                                                               \
    X(FRONT_FULL, "front-full", "in front: what a full disk has no room for is left out",          \
      "full disk")                                                                                 \
    X(FRONT_PAST, "front-past", "in front: the past before the mirror begins too late",            \
      "power cut")                                                                                 \
    X(TIER_LOST, "tier-lost", "in a tier: the mirror leaves out one event in ten", "none")         \
    X(TIER_GAP, "tier-gap", "in a tier: the mirror resumes some versions too late", "none")        \
    X(TIER_STALE, "tier-stale", "in a tier: a current list waits for no fence", "none")            \
    X(TIER_OLDER, "tier-older", "in a tier: a list at a version has the state before", "none")     \
    X(TIER_NEWER, "tier-newer", "in a tier: lists and bookmarks have a later version", "none")     \
    X(TIER_AGAIN, "tier-again", "in a tier: a watch repeats the event before its start", "none")   \
    X(TIER_STATE, "tier-state", "in a tier: a state that was read again is not used", "none")      \
    X(TIER_KEEPS, "tier-keeps", "in a tier: a change of roles ends no watch", "none")              \
    X(TIER_RIGHTS, "tier-rights", "in a tier: all users may read", "none")                         \
    X(TIER_UNMADE, "tier-unmade", "in a tier: a write without an answer counts as not made",       \
      "none")                                                                                      \
    X(TIER_UNPROVEN, "tier-unproven", "in a tier: a fence is any list, which may be old",          \
      "older replica")                                                                             \
    X(TIER_SHY, "tier-shy", "in a tier: a cached list waits for a fence", "none")                  \
    X(TIER_LABEL, "tier-label", "in a tier: a change that ends a selection is left out", "none")   \
    X(TIER_UNDEFINED, "tier-undefined", "in a tier: a deleted definition counts as unreachable",   \
      "none")

#define PLANT_ENUM(id, name, what, fault) PLANT_##id,
enum plant { PLANT_NONE, PLANTS_TABLE(PLANT_ENUM) PLANTS };
#undef PLANT_ENUM

extern enum plant plant_now;

static inline bool plant_is(enum plant plant)
{
    return plant_now == plant;
}
/* True with a chance of one in n, by the seed. */
bool plant_chance(enum plant plant, unsigned n);

/* PLANTS: there is no such plant. */
enum plant plant_named(const char *name);
const char *plant_name(enum plant plant);
const char *plant_what(enum plant plant);
const char *plant_fault(enum plant plant);
/* The switch of that fault; SWITCHES: it needs none. */
enum plan_switch plant_switch(enum plant plant);

/* It is in a part that only a server in front has. */
bool plant_is_of_front(enum plant plant);
/* The same for a watch tier. */
bool plant_is_of_tier(enum plant plant);

/* Whether a sector of it may be missing. */
bool plant_has_hole(const uint8_t *bytes, size_t len);

#endif
