/*
 * The numbers a member and its cluster are known by, made as etcd makes them at first start: of
 * the peer URLs in order and the cluster's token. Everybody's single node with default flags is
 * 8e9e05c52164694d in cluster cdf818194e3a8c32.
 */
#ifndef VIGIL_ETCD_MEMBER_ID_H
#define VIGIL_ETCD_MEMBER_ID_H

#include "base/slice.h"

uint64_t member_id_make(const struct slice *peer_urls, size_t count, struct slice token);

/* Of one that is added later, at that time. */
uint64_t member_id_make_at(const struct slice *peer_urls, size_t count, int64_t unix_seconds);

/* Of a cluster with this one member. */
uint64_t cluster_id_make(uint64_t member_id);

#endif
