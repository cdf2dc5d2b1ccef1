/*
 * Answers of a call: a status, JSON bytes in the format that the request accepts, or the head of a
 * body that is sent as it is made. An answer in another format, indented or compressed may be made
 * on the worker (kube/call/call_offload.h); it is sent on the thread of the API.
 */
#ifndef VIGIL_KUBE_CALL_RESPOND_H
#define VIGIL_KUBE_CALL_RESPOND_H

#include "kube/call/call.h"

/* Answers with call->status. */
void kube_call_fail(struct kube_call *call);
/* Returns false: call->status is that of an error of the engine, with the cluster's text. */
bool kube_call_set_engine(struct kube_call *call, enum status status);
/* Answers with the status of an error of the engine. */
void kube_call_fail_engine(struct kube_call *call, enum status status);
/* The end of an operation, as kube_call_done. True: it has succeeded and the call continues. False:
 * the client has disconnected, or the error of the operation was answered. */
MUST_CHECK
bool kube_call_succeeded(struct kube_call *call, enum status status);
/* Returns false: the object of the path does not exist; call->status says so. */
bool kube_call_not_found(struct kube_call *call);
/* Answers with JSON bytes, which are copied, in the requested format. An object that cannot be
 * represented in it is sent as JSON. */
void kube_call_respond(struct kube_call *call, unsigned code, struct slice json);
/* Sends the head of an answer whose body follows as it is made. */
void kube_call_begin(struct kube_call *call, unsigned code, struct slice content_type);

/* A stored object in the requested shape, in the arena. False: call->status says why. */
MUST_CHECK
bool kube_call_object(struct kube_call *call, struct slice json, int64_t revision,
                      struct slice *ret_json);

/* For kube_call_work: how many bytes of an object are processed before it is answered; 0 if it is
 * answered as it is stored. */
size_t kube_call_answer_work(const struct kube_call *call, size_t bytes, int64_t revision);
/* The same for JSON that has been made already. */
size_t kube_call_format_work(const struct kube_call *call, size_t bytes);

#endif
