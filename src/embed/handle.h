/*
 * The part of a store that one client has: a shard of the engine and etcd's API on the client's
 * loop, and the links that the client's connections use (embed/link.h). Created by the thread that
 * opens the client, used on the thread of its loop, and freed with the client.
 */
#ifndef VIGIL_EMBED_HANDLE_H
#define VIGIL_EMBED_HANDLE_H

#include "client/call/client.h"
#include "embed/link.h"
#include "embed/stores.h"

/* Creates a client of the store, with its own reference to it. */
int embed_handle_open(struct embed_store *store, const vigil_options *options,
                      vigil_client **ret_client, vigil_error *error);

/* The store of a client; NULL: it is a client of servers. */
struct embed_store *embed_handle_store(vigil_client *client);

#endif
