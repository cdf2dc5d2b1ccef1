/*
 * The members of a cluster.
 */
#ifndef VIGIL_CLUSTER_H
#define VIGIL_CLUSTER_H

#include <vigil/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_member {
    uint64_t id;
    vigil_bytes name;
    const vigil_bytes *peer_urls;
    size_t peer_url_count;
    const vigil_bytes *client_urls;
    size_t client_url_count;
    uint8_t is_learner;
} vigil_member;

typedef struct vigil_members_response {
    const vigil_header *header;
    const vigil_member *members;
    size_t member_count;
} vigil_members_response;

typedef struct vigil_member_add_response {
    const vigil_header *header;
    const vigil_member *member; /* the new one */
    const vigil_member *members;
    size_t member_count;
} vigil_member_add_response;

/* linearizable: the answer is not older than the call. */
VIGIL_API vigil_call *vigil_member_list(vigil_client *client, int linearizable);
VIGIL_API vigil_call *vigil_member_add(vigil_client *client, const char *peer_url, int learner);
VIGIL_API vigil_call *vigil_member_remove(vigil_client *client, uint64_t id);
VIGIL_API vigil_call *vigil_member_update(vigil_client *client, uint64_t id, const char *peer_url);
VIGIL_API vigil_call *vigil_member_promote(vigil_client *client, uint64_t id);

/* Of all but vigil_member_add. */
VIGIL_API const vigil_members_response *vigil_members_result(const vigil_call *call);
VIGIL_API const vigil_member_add_response *vigil_member_add_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
