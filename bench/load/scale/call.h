/*
 * A call whose duration is measured. It is started on the thread of the loop of its client, and
 * freed after its completion.
 */
#ifndef VIGIL_LOAD_SCALE_CALL_H
#define VIGIL_LOAD_SCALE_CALL_H

#include "load/scale/world.h"

#include <vigil/kube/call.h>

/* code: the HTTP status of a refusal, 0 if the call succeeded; -1: it failed otherwise, or was
 * cancelled because its client was freed, in which case nothing new is started. */
typedef void scale_done(void *owner, vigil_kube_call *call, int code);

enum { SCALE_CALL_FAILED = -1 };

/* Takes the call. A refusal with the status `expected` is not an error; 0: none. */
void scale_call_start(struct scale_thread *thread, enum scale_measure measure,
                      vigil_kube_call *call, int expected, scale_done *done, void *owner);

/* The resourceVersion of the object that was answered is copied; unchanged if there is none. */
void scale_call_version(const vigil_kube_call *call, char *version, size_t size);

#endif
