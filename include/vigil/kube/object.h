/*
 * A Kubernetes object: the bytes that the server sent, and who it is. Objects do not change, and
 * are counted by reference: one that the program holds stays valid whatever becomes of the cache or
 * the client that it came from.
 *
 *     vigil_bytes phase;
 *     vigil_bytes json = vigil_kube_object_json(object);
 *     if (vigil_json_find(json, "status.phase", &phase))
 *         …
 *
 * An object is JSON unless the program has asked for protobuf; vigil/kube/protobuf.h reads that.
 *
 * Threads: Every function may be called on any thread.
 */
#ifndef VIGIL_KUBE_OBJECT_H
#define VIGIL_KUBE_OBJECT_H

#include <vigil/kube/json.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube_object vigil_kube_object;

/* Makes an object from its JSON, or from its protobuf in the envelope that begins with "k8s" and a
 * zero. The bytes are copied. It needs a metadata.name. Returns a vigil_code: VIGIL_ERROR_PROTOCOL,
 * VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_kube_object_new(vigil_bytes sent, vigil_kube_object **ret_object);
/* Takes another reference, and returns the object. */
VIGIL_API vigil_kube_object *vigil_kube_object_ref(const vigil_kube_object *object);
/* Gives a reference back. Accepts NULL. */
VIGIL_API void vigil_kube_object_unref(vigil_kube_object *object);

/* All of it as JSON; empty if it is protobuf. */
VIGIL_API vigil_bytes vigil_kube_object_json(const vigil_kube_object *object);
/* The message of its kind, without the envelope; empty if the object is JSON. */
VIGIL_API vigil_bytes vigil_kube_object_protobuf(const vigil_kube_object *object);
/* "Pod". It is empty if the server has not sent it with the object: in JSON, items of a list of a
 * built-in kind do not have it. */
VIGIL_API vigil_bytes vigil_kube_object_kind(const vigil_kube_object *object);
/* "apps/v1"; empty if vigil_kube_object_kind is. */
VIGIL_API vigil_bytes vigil_kube_object_api_version(const vigil_kube_object *object);
/* "namespace/name", or the name alone if the object is in no namespace: its key in work queues and
 * caches. */
VIGIL_API vigil_bytes vigil_kube_object_key(const vigil_kube_object *object);
/* metadata.name. */
VIGIL_API vigil_bytes vigil_kube_object_name(const vigil_kube_object *object);
/* metadata.namespace; empty if the object is in no namespace. */
VIGIL_API vigil_bytes vigil_kube_object_namespace(const vigil_kube_object *object);
/* metadata.uid; empty if it has none. */
VIGIL_API vigil_bytes vigil_kube_object_uid(const vigil_kube_object *object);
/* metadata.resourceVersion; empty if it has none. */
VIGIL_API vigil_bytes vigil_kube_object_version(const vigil_kube_object *object);

#ifdef __cplusplus
}
#endif

#endif
