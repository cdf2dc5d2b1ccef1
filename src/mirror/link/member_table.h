/*
 * What is known of the member at each endpoint of the cluster. Written by the follower's thread
 * (follow/member_poll.h), read by any.
 */
#ifndef VIGIL_MIRROR_LINK_MEMBER_TABLE_H
#define VIGIL_MIRROR_LINK_MEMBER_TABLE_H

#include "base/lock.h"
#include "base/slice.h"
#include "engine/engine.h"

struct pb_status_response;

enum { MEMBER_TABLE_ENDPOINT_BYTES = 128 };

/* The last that the member has said of itself. */
struct member_table_row {
    char endpoint[MEMBER_TABLE_ENDPOINT_BYTES]; /* as it was given; a longer one is cut */
    bool answers;
    bool has_leader, is_leader, is_learner;
    uint64_t member_id; /* 0: it has never answered, and what follows is empty */
    uint64_t raft_index, applied_index;
    struct engine_versions versions; /* cluster: the target of a downgrade, otherwise empty */
};

struct member_table {
    struct lock lock;
    struct member_table_row *rows; /* owned */
    size_t count;                  /* constant */
    uint64_t leader, term;         /* leader of the highest term that a member has named; 0: none */
    uint64_t leader_changes;
};

/* endpoints: separated by commas. Aborts without memory. */
void member_table_init(struct member_table *table, const char *endpoints);
void member_table_fini(struct member_table *table);

/* NULL: the member has not answered. */
void member_table_note(struct member_table *table, size_t at,
                       const struct pb_status_response *status);
struct member_table_row member_table_get(struct member_table *table, size_t at);
/*
 * The versions that the followed member would name. That of the cluster is the lowest of all its
 * members, with 0 as its last number, unless a downgrade is under way. False: none is known.
 */
bool member_table_versions(struct member_table *table, uint64_t followed,
                           struct engine_versions *ret);

/* What metrics say of the cluster. False: no member has answered yet. */
bool member_table_membership(struct member_table *table, uint64_t followed,
                             struct engine_membership *ret);

#endif
