/* The Watch service. See etcd/service/watch_service.c for its shape. */
#ifndef VIGIL_ETCD_SERVICE_WATCH_SERVICE_H
#define VIGIL_ETCD_SERVICE_WATCH_SERVICE_H

#include "etcd/face.h"

MUST_CHECK
enum status watch_service_add(struct etcd_face *face);

/* Of the face: watches that are not permitted any more are ended. */
void watch_service_rights_changed(void *face);

/* Why a watch was refused, in the words of etcd, which shows its clients a whole gRPC error. */
enum { WATCH_REFUSAL_BYTES = 256 };
const char *watch_refusal_text(enum status status, char text[WATCH_REFUSAL_BYTES]);

#endif
