/*
 * The v2 API of etcd 3.4 and earlier (--enable-v2): /v2/keys over the nodes of etcd/v2/node.h, and
 * what etcdctl with ETCDCTL_API=2 needs in addition. Every request becomes operations of the
 * engine; the API itself keeps no state between requests. It belongs to one shard and its thread.
 *
 *     GET              one range                                    list.c
 *     GET ?wait=true   a cursor over history                        wait.c
 *     PUT POST DELETE  a read of the node and its parents, then     write.c
 *                      one transaction that fails if any of them
 *                      has changed
 *     /v2/members, /v2/machines, /v2/stats                          members.c
 *     /v2/auth         users and roles of v2 (policy.h)             auth.c
 *
 * guard.c checks the permissions of v2 by the head of every request, before its body is read.
 */
#ifndef VIGIL_ETCD_V2_ROUTES_H
#define VIGIL_ETCD_V2_ROUTES_H

#include "base/macros.h"
#include "base/status.h"

struct etcd_api;

/* Adds the v2 API to the HTTP routes of an API. */
MUST_CHECK
enum status v2_routes_add(struct etcd_api *api);

#endif
