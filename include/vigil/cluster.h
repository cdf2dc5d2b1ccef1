/*
 * The members of a cluster.
 *
 * Errors: VIGIL_ERROR_MEMBER_NOT_FOUND for an unknown id, VIGIL_ERROR_SERVER for changes that the
 * cluster refuses, and those of every call.
 */
#ifndef VIGIL_CLUSTER_H
#define VIGIL_CLUSTER_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One member of the cluster. */
typedef struct vigil_member {
    uint64_t id;
    vigil_bytes name;             /* empty until the member has started */
    const vigil_bytes *peer_urls; /* for other members */
    size_t peer_url_count;
    const vigil_bytes *client_urls; /* for clients; none until the member has started */
    size_t client_url_count;
    uint8_t is_learner; /* receives changes, but does not vote */
} vigil_member;

/* All members. After a change, as they are then. */
typedef struct vigil_members_response {
    const vigil_header *header;
    const vigil_member *members;
    size_t member_count;
} vigil_members_response;

/* A member that was added. */
typedef struct vigil_member_add_response {
    const vigil_header *header;
    const vigil_member *member;  /* the new one */
    const vigil_member *members; /* all, with the new one */
    size_t member_count;
} vigil_member_add_response;

/* Lists the members. If linearizable is not 0, the answer is not older than the call; otherwise a
 * member that is behind may answer. */
VIGIL_API vigil_call *vigil_member_list(vigil_client *client, int linearizable);
/* Adds a member, which must then be started. If learner is not 0, it does not vote yet. */
VIGIL_API vigil_call *vigil_member_add(vigil_client *client, const char *peer_url, int learner);
/* Removes a member. */
VIGIL_API vigil_call *vigil_member_remove(vigil_client *client, uint64_t id);
/* Changes the address of a member for other members. */
VIGIL_API vigil_call *vigil_member_update(vigil_client *client, uint64_t id, const char *peer_url);
/* Lets a learner vote. */
VIGIL_API vigil_call *vigil_member_promote(vigil_client *client, uint64_t id);

/* The answer to all calls above but vigil_member_add. */
VIGIL_API const vigil_members_response *vigil_members_result(const vigil_call *call);
/* The answer to vigil_member_add. */
VIGIL_API const vigil_member_add_response *vigil_member_add_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
