#include "tier/forward/forwards.h"

#include "wire/http/exchange.h"
#include "wire/peer/peer.h"

#include <stdlib.h>

/* The lowest bits of a client's key, so that no text of one kind is that of another. */
enum { OF_TOKEN, OF_CERTIFICATE, OF_ADDRESS, KIND_BITS = 2 };

static struct slice client_of(const void *value)
{
    return slice_of(&((const struct tier_share *)value)->client, sizeof(uint64_t));
}

void tier_forwards_init(struct tier_forwards *forwards, size_t max, uint64_t seed)
{
    *forwards = (struct tier_forwards){.max = max, .share_max = max / 4 ? max / 4 : 1};
    hash_map_init(&forwards->shares, client_of, seed);
}

void tier_forwards_fini(struct tier_forwards *forwards)
{
    assert(!forwards->under_way && !forwards->shares.count);
    hash_map_fini(&forwards->shares);
}

static uint64_t key_of(const struct tier_forwards *forwards, unsigned kind, struct slice text)
{
    return hash_map_hash(&forwards->shares, text) << KIND_BITS | kind;
}

/* The one whose name the kube-apiserver will know: a certificate goes before a token. */
static uint64_t find_client(const struct tier_forwards *forwards,
                            const struct http_request *request)
{
    struct slice field;
    uint64_t peer = wire_peer_key(request->peer);
    if (request->peer_name)
        return key_of(forwards, OF_CERTIFICATE, slice_from_text(request->peer_name));
    if (http_request_get(request, SLICE_LITERAL("authorization"), &field))
        return key_of(forwards, OF_TOKEN, field);
    return key_of(forwards, OF_ADDRESS, slice_of(&peer, sizeof(peer)));
}

static enum status add(struct tier_forwards *forwards, uint64_t client,
                       struct tier_share **ret_share)
{
    void *replaced;
    struct tier_share *share = calloc(1, sizeof(*share));
    if (!share)
        return ST_NOMEM;
    share->client = client;
    if (hash_map_put(&forwards->shares, share, &replaced) != ST_OK) {
        free(share);
        return ST_NOMEM;
    }
    *ret_share = share;
    return ST_OK;
}

enum status tier_forwards_join(struct tier_forwards *forwards, const struct http_request *request,
                               struct tier_share **ret_share)
{
    if (forwards->under_way >= forwards->max)
        return ST_LIMIT;
    uint64_t client = find_client(forwards, request);
    struct tier_share *share = hash_map_get(&forwards->shares, slice_of(&client, sizeof(client)));
    if (share && share->count >= forwards->share_max)
        return ST_REQUEST_TOO_MANY_REQUESTS;
    if (!share)
        TRY(add(forwards, client, &share));
    share->count++;
    forwards->under_way++;
    *ret_share = share;
    return ST_OK;
}

void tier_forwards_leave(struct tier_forwards *forwards, struct tier_share *share)
{
    forwards->under_way--;
    if (--share->count)
        return;
    hash_map_remove(&forwards->shares, client_of(share));
    free(share);
}
