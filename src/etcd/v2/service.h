/* The v2 API among the routes of a face: see etcd/v2/v2.h. */
#ifndef VIGIL_ETCD_V2_SERVICE_H
#define VIGIL_ETCD_V2_SERVICE_H

#include "base/status.h"

struct etcd_face;

MUST_CHECK
enum status v2_service_add(struct etcd_face *face);

#endif
