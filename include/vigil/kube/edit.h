/*
 * Helpers for controllers: changing a value of an object's JSON, finalizers, and owners. They read
 * what an object says and make texts to send; nothing is sent here.
 *
 *     vigil_bytes json = vigil_kube_object_json(object), changed;
 *     if (vigil_json_set(json, "spec.replicas", vigil_text("3"),
 *                        &changed) == VIGIL_OK) {
 *         … send it with vigil_kube_update …
 *         vigil_json_free(changed);
 *     }
 *
 * Texts that a function returns in a ret_json or ret_patch belong to the program, which frees them
 * with vigil_json_free. All functions about objects accept those in protobuf, too; what they make
 * is JSON.
 *
 * Threads: Every function may be called on any thread.
 */
#ifndef VIGIL_KUBE_EDIT_H
#define VIGIL_KUBE_EDIT_H

#include <vigil/kube/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frees a text that a function of this header has returned. Accepts an empty one. */
VIGIL_API void vigil_json_free(vigil_bytes text);

/* -- JSON -- */

/*
 * Copies a JSON text with another value at a path, which is written as in vigil/kube/json.h.
 * Members that do not exist are added, with the objects around them; items of an array must exist.
 * Returns a vigil_code: VIGIL_ERROR_ARGUMENT if json or value is not valid JSON, or if the path is
 * malformed or leads into a value that cannot have such a part; VIGIL_ERROR_MEMORY.
 */
VIGIL_API int vigil_json_set(vigil_bytes json, const char *path, vigil_bytes value,
                             vigil_bytes *ret_json);
/* The same for a text in UTF-8, which becomes a JSON string. */
VIGIL_API int vigil_json_set_text(vigil_bytes json, const char *path, const char *text,
                                  vigil_bytes *ret_json);

/* -- Finalizers -- */

/* Whether the object is being deleted: it has a deletionTimestamp, and only its finalizers keep
 * it. */
VIGIL_API int vigil_kube_object_is_deleting(const vigil_kube_object *object);
/* Whether the object has this finalizer. */
VIGIL_API int vigil_kube_object_has_finalizer(const vigil_kube_object *object,
                                              const char *finalizer);
/*
 * Makes a merge patch that adds a finalizer to the object. It contains the uid and resourceVersion,
 * so that it fails with a conflict if the object has changed: the program then tries again with the
 * new version. *ret_patch is empty if the object has the finalizer already. Returns a vigil_code:
 * VIGIL_ERROR_ARGUMENT if the object has no uid or no resourceVersion, VIGIL_ERROR_MEMORY.
 */
VIGIL_API int vigil_kube_add_finalizer(const vigil_kube_object *object, const char *finalizer,
                                       vigil_bytes *ret_patch);
/* The same, to remove a finalizer. *ret_patch is empty if the object does not have it. */
VIGIL_API int vigil_kube_remove_finalizer(const vigil_kube_object *object, const char *finalizer,
                                          vigil_bytes *ret_patch);

/* -- Owners -- */

/* An owner as an object names it. The texts belong to the object; one that is absent, or that is
 * written in JSON with escapes, is empty. */
typedef struct vigil_kube_owner {
    vigil_bytes api_version; /* "apps/v1" */
    vigil_bytes kind;        /* "ReplicaSet" */
    vigil_bytes name;        /* in the namespace of the object, or in none */
    vigil_bytes uid;
} vigil_kube_owner;

/* The owner that is the object's controller. Returns 0 if it has none. */
VIGIL_API int vigil_kube_object_controller(const vigil_kube_object *object,
                                           vigil_kube_owner *ret_owner);
/* Whether the controller of the object is this other object, which is decided by its uid. */
VIGIL_API int vigil_kube_object_is_controlled_by(const vigil_kube_object *object,
                                                 const vigil_kube_object *owner);
/*
 * Makes an item for the metadata.ownerReferences of an object that `owner` owns. With controller =
 * 1 it is the controller, and blocks the deletion of the owner in the foreground. api_version and
 * kind are those of the owner, or NULL if vigil_kube_object_kind knows them. Returns a vigil_code:
 * VIGIL_ERROR_ARGUMENT if something of the owner is missing, VIGIL_ERROR_MEMORY.
 */
VIGIL_API int vigil_kube_owner_reference(const vigil_kube_object *owner, const char *api_version,
                                         const char *kind, int controller, vigil_bytes *ret_json);

#ifdef __cplusplus
}
#endif

#endif
