/*
 * The list of members with etcd's rules for its changes. One of them is this server; it is the only
 * one that ever starts. Used by the writer of the local engine, and by the fake.
 */
#ifndef VIGIL_ENGINE_MEMBER_LIST_H
#define VIGIL_ENGINE_MEMBER_LIST_H

#include "engine/operation.h"

/* Embedded. One thread. */
struct member_list {
    uint64_t self;
    bool lax;              /* voters may be added and removed whatever comes of the majority */
    unsigned learners_max; /* at a time */
    /* Owned, one block each; by id. One more than may be added: a disk may hold so many, and this
     * server is one in any case. */
    struct engine_member *members[ENGINE_MEMBERS_MAX + 1];
    size_t count;
};

void member_list_fini(struct member_list *list); /* also a zeroed one */
void member_list_check(const struct member_list *list);

/* Whether it may be done, in etcd's order. */
MUST_CHECK
enum status member_list_allows(const struct member_list *list, const struct engine_members *change);

/* Does it, if it may be done. ST_NOMEM. */
MUST_CHECK
enum status member_list_change(struct member_list *list, const struct engine_members *change);

/* -- In its parts, for who has something to write between them -- */

/* What the member will be. */
struct engine_member member_list_after(const struct member_list *list,
                                       const struct engine_members *change);
/* A copy; NULL without memory. */
struct engine_member *member_dup(const struct engine_member *member);

/* NULL: there is none. Borrowed until the next change. */
const struct engine_member *member_list_find(const struct member_list *list, uint64_t id);
/* In place of the one of that id, or as a new one, of which there is room. Takes what member_dup
 * gave. */
void member_list_put(struct member_list *list, struct engine_member *member);
void member_list_drop(struct member_list *list, uint64_t id); /* if it is there */

/* Fills in the answer. */
MUST_CHECK
enum status member_list_copy(const struct member_list *list, struct engine_members *answer);

#endif
