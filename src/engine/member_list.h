/*
 * The list of members, with etcd's rules for changes. One of them is this server, the only one that
 * ever starts. Used by the writer of the local engine, and by the fake.
 */
#ifndef VIGIL_ENGINE_MEMBER_LIST_H
#define VIGIL_ENGINE_MEMBER_LIST_H

#include "engine/maintenance.h"

/* Embedded. One thread. */
struct member_list {
    uint64_t self;
    bool lax;              /* voters may be added and removed without regard to the quorum */
    unsigned learners_max; /* at a time */
    /* Owned, one block each; sorted by id. One more than the limit: the store may have the maximum
     * without this server. */
    struct engine_member *members[ENGINE_MEMBERS_MAX + 1];
    size_t count;
};

void member_list_fini(struct member_list *list); /* also a zeroed one */
void member_list_check(const struct member_list *list);

/* Whether the change is allowed, with etcd's checks in its order. */
MUST_CHECK
enum status member_list_allows(const struct member_list *list, const struct engine_members *change);

/* Makes the change, if it is allowed. ST_NOMEM. */
MUST_CHECK
enum status member_list_change(struct member_list *list, const struct engine_members *change);

/* -- The steps of a change, for callers that write to a log in between -- */

/* The member after the change. */
struct engine_member member_list_after(const struct member_list *list,
                                       const struct engine_members *change);
/* A copy; NULL without memory. */
struct engine_member *member_dup(const struct engine_member *member);

/* NULL if it does not exist. Borrowed until the next change. */
const struct engine_member *member_list_find(const struct member_list *list, uint64_t id);
/* Replaces the member of the same id, or adds one, for which there must be room. Takes ownership of
 * a member from member_dup. */
void member_list_put(struct member_list *list, struct engine_member *member);
void member_list_drop(struct member_list *list, uint64_t id); /* if it exists */

/* Fills in the answer with all members. */
MUST_CHECK
enum status member_list_copy(const struct member_list *list, struct engine_members *answer);

#endif
