/* Locks and elections as calls. */
#include "client/api/kv.h"
#include "client/api/methods.h"
#include "client/call/parts.h"
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"

#include <vigil/concurrency.h>

/* The name of a lock or an election is a prefix of keys, so the client's prefix is added to it. */
static vigil_call *named_call(vigil_client *client, enum client_method_id method, void *message,
                              struct slice *name)
{
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    struct slice no_end = SLICE_EMPTY;
    if (kv_request_prefix(client, name, &no_end, &memory) != ST_OK)
        return NULL;
    return client_request(client, method, message);
}

vigil_call *vigil_lock(vigil_client *client, vigil_bytes name, int64_t lease)
{
    struct pb_lock_request message = {.name = slice_of_bytes(name), .lease = lease};
    return client_call_wait_long(named_call(client, METHOD_LOCK, &message, &message.name));
}

const vigil_lock_response *vigil_lock_result(const vigil_call *call)
{
    return client_result(call, METHOD_LOCK);
}

vigil_call *vigil_unlock(vigil_client *client, vigil_bytes key)
{
    struct pb_unlock_request message = {.key = slice_of_bytes(key)};
    return client_request(client, METHOD_UNLOCK, &message);
}

vigil_call *vigil_campaign(vigil_client *client, vigil_bytes name, int64_t lease, vigil_bytes value)
{
    struct pb_campaign_request message = {
        .name = slice_of_bytes(name),
        .lease = lease,
        .value = slice_of_bytes(value),
    };
    return client_call_wait_long(named_call(client, METHOD_CAMPAIGN, &message, &message.name));
}

const vigil_campaign_response *vigil_campaign_result(const vigil_call *call)
{
    return client_result(call, METHOD_CAMPAIGN);
}

/* The keys of a leadership are whole: the server has returned them with the prefix. */
static struct pb_leader_key leader_key(const vigil_leader_key *leader)
{
    if (!leader)
        return (struct pb_leader_key){0};
    return (struct pb_leader_key){
        .name = slice_of_bytes(leader->name),
        .key = slice_of_bytes(leader->key),
        .rev = leader->revision,
        .lease = leader->lease,
    };
}

vigil_call *vigil_proclaim(vigil_client *client, const vigil_leader_key *leader, vigil_bytes value)
{
    struct pb_leader_key key = leader_key(leader);
    struct pb_proclaim_request message = {.leader = &key, .value = slice_of_bytes(value)};
    return client_request(client, METHOD_PROCLAIM, &message);
}

vigil_call *vigil_resign(vigil_client *client, const vigil_leader_key *leader)
{
    struct pb_leader_key key = leader_key(leader);
    struct pb_resign_request message = {.leader = &key};
    return client_request(client, METHOD_RESIGN, &message);
}

vigil_call *vigil_leader(vigil_client *client, vigil_bytes name)
{
    struct pb_leader_request message = {.name = slice_of_bytes(name)};
    return named_call(client, METHOD_LEADER, &message, &message.name);
}

const vigil_leader_response *vigil_leader_result(const vigil_call *call)
{
    return client_result(call, METHOD_LEADER);
}

/* -- Observe -- */

struct observe_call {
    struct parts_call parts;               /* first */
    int64_t create_revision, mod_revision; /* revisions of the leader that was delivered last */
};

static const void *open_leader(struct parts_call *parts, void *response)
{
    struct observe_call *observe = CONTAINER_OF(parts, struct observe_call, parts);
    const struct pb_key_value *kv = ((struct pb_leader_response *)response)->kv;
    if (!kv || (kv->create_revision == observe->create_revision &&
                kv->mod_revision == observe->mod_revision))
        return NULL; /* the call was repeated, and the user knows this leader */
    observe->create_revision = kv->create_revision;
    observe->mod_revision = kv->mod_revision;
    return response;
}

static int call_back(struct parts_call *parts, const void *part)
{
    return parts->fn.leader(&parts->call, part, parts->user);
}

static const struct client_method observe_method = {
    .path = "/v3electionpb.Election/Observe",
    .request = &pb_leader_request_table,
    .response = &pb_leader_response_table,
    .reads = true,
    .parts = &parts_stream_ops,
};
static const struct parts_hooks observe_hooks = {
    .open = open_leader,
    .call_back = call_back,
    .repeatable = true,
};

vigil_call *vigil_observe(vigil_client *client, vigil_bytes name, vigil_leader_fn fn, void *user)
{
    struct pb_leader_request message = {.name = slice_of_bytes(name)};
    AUTO(prefixed_range_fini) struct prefixed_range memory = {0};
    struct slice no_end = SLICE_EMPTY;
    if (kv_request_prefix(client, &message.name, &no_end, &memory) != ST_OK)
        return NULL;
    struct parts_call *parts =
        parts_call_new(client, &observe_method, &observe_hooks, sizeof(struct observe_call), user);
    if (!parts)
        return NULL;
    parts->fn.leader = fn;
    vigil_call *call = parts_call_with(parts, &message);
    vigil_call_set_timeout(call, 0);
    return call;
}
