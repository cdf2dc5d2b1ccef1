/* The Watch service, described in etcd/service/watch_service.c. */
#ifndef VIGIL_ETCD_SERVICE_WATCH_SERVICE_H
#define VIGIL_ETCD_SERVICE_WATCH_SERVICE_H

#include "base/status.h"

/* Called when users or roles have changed: ends watches that are no longer permitted. */
void watch_service_rights_changed(void *api);

/* The reason of a refused watch: like etcd, the text of a whole gRPC error. */
enum { WATCH_REFUSAL_BYTES = 256 };
const char *watch_refusal_text(enum status status, char text[WATCH_REFUSAL_BYTES]);

#endif
