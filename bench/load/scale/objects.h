/* The objects of a run: their names, and their texts, which are about as long as real ones. */
#ifndef VIGIL_LOAD_SCALE_OBJECTS_H
#define VIGIL_LOAD_SCALE_OBJECTS_H

#include "base/buf.h"
#include "load/scale/world.h"

#define SCALE_CONFIG_MAP SCALE_PREFIX "settings"
#define SCALE_SECRET SCALE_PREFIX "access"
#define SCALE_NODE_PREFIX SCALE_PREFIX "node-"
#define SCALE_POD_PREFIX SCALE_PREFIX "pod-"
#define SCALE_LEASES "kube-node-lease"

/* The prefix and seven digits. */
void scale_name_write(char name[static SCALE_NAME_BYTES], const char *prefix, uint32_t number);
/* The number after the prefix, of seven digits; something may follow it. False: there is none. */
bool scale_name_number(vigil_bytes name, const char *prefix, uint32_t *ret_number);

/* When the change was sent that made this version of a service or slice; false: it is not ours. */
bool scale_object_sent(const vigil_kube_object *object, uint64_t *ret_sent_ns);

/* Each clears the buffer and writes a text into it. The process stops if there is no memory. */
void scale_node_write(struct buf *to, const char *name, uint32_t number);
/* uid: that of the node; version: "" for one that is created. */
void scale_lease_write(struct buf *to, const char *node, const char *uid, const char *version);
void scale_node_status_write(struct buf *to);
void scale_pod_write(struct buf *to, const char *name);
void scale_binding_write(struct buf *to, const char *pod, const char *node);
/* Patches of the status. */
void scale_pod_pending_write(struct buf *to, uint32_t node);
void scale_pod_ready_write(struct buf *to, uint32_t node);
void scale_pod_ended_write(struct buf *to);
/* version: "" for one that is created. */
void scale_service_write(struct buf *to, uint32_t number, const char *version, uint64_t sent_ns);
void scale_slice_write(struct buf *to, uint32_t number, const char *version, uint64_t sent_ns);

#endif
