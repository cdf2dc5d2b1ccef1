/*
 * The members of the cluster, as an engine keeps them. The local engine is one node and stays one:
 * members that were added are listed and kept, and never start. Operations as in engine/engine.h.
 */
#ifndef VIGIL_ENGINE_MEMBER_H
#define VIGIL_ENGINE_MEMBER_H

#include "engine/operation.h"

enum {
    ENGINE_MEMBERS_MAX = 32,
    ENGINE_PEER_URLS_MAX = 32,             /* of one member */
    ENGINE_PEER_URL_BYTES_MAX = 16 * 1024, /* of all of them */
};

struct engine_member {
    uint64_t id;
    bool learner;
    const struct slice *peer_urls;
    size_t peer_url_count;
};

enum engine_member_call {
    ENGINE_MEMBER_LIST,
    ENGINE_MEMBER_ADD,
    ENGINE_MEMBER_REMOVE,
    ENGINE_MEMBER_UPDATE,
    ENGINE_MEMBER_PROMOTE,
};

struct engine_members {
    struct engine_op op; /* first */
    enum engine_member_call call;
    struct engine_member member; /* in: the new one; the id of an old one, and its new URLs */
    struct engine_member *list;  /* out: all there are now, by id; in the op's arena */
    size_t count;
};

/*
 * Changes them, and lists them. ST_MEMBER_EXIST, ST_PEER_URL_EXIST, ST_MEMBER_NOT_FOUND,
 * ST_MEMBER_NOT_ENOUGH_STARTED, ST_TOO_MANY_LEARNERS, ST_LEARNER_NOT_READY, ST_MEMBER_NOT_LEARNER;
 * ST_LIMIT for more than the above.
 */
void engine_members(struct engine_shard *shard, struct engine_members *members);

#endif
