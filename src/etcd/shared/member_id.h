/*
 * The ids of a member and its cluster, derived as etcd derives them at the first start: from the
 * sorted peer URLs and the cluster token. Every single node with default flags has the member id
 * 8e9e05c52164694d in the cluster cdf818194e3a8c32.
 */
#ifndef VIGIL_ETCD_SHARED_MEMBER_ID_H
#define VIGIL_ETCD_SHARED_MEMBER_ID_H

#include "base/slice.h"

uint64_t member_id_make(const struct slice *peer_urls, size_t count, struct slice token);

/* The id of a member that is added to a running cluster at this time. */
uint64_t member_id_make_at(const struct slice *peer_urls, size_t count, int64_t unix_seconds);

/* The id of the cluster whose only member this is. */
uint64_t cluster_id_make(uint64_t member_id);

#endif
