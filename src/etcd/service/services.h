/* The gRPC services: each function adds the methods of one service to the table of an API. */
#ifndef VIGIL_ETCD_SERVICE_SERVICES_H
#define VIGIL_ETCD_SERVICE_SERVICES_H

#include "base/macros.h"
#include "base/status.h"

struct etcd_api;

MUST_CHECK
enum status auth_service_add(struct etcd_api *api);
MUST_CHECK
enum status cluster_service_add(struct etcd_api *api);
MUST_CHECK
enum status election_service_add(struct etcd_api *api);
MUST_CHECK
enum status health_service_add(struct etcd_api *api);
MUST_CHECK
enum status kv_service_add(struct etcd_api *api);
MUST_CHECK
enum status lease_service_add(struct etcd_api *api);
MUST_CHECK
enum status lock_service_add(struct etcd_api *api);
MUST_CHECK
enum status maintenance_service_add(struct etcd_api *api);
MUST_CHECK
enum status watch_service_add(struct etcd_api *api);

/* Called when users or roles have changed: ends watches that are no longer permitted. */
void watch_service_rights_changed(void *api);

#endif
