/*
 * Subresources that connect a client with a container, a kubelet or a service: pods/log, exec,
 * attach, portforward and proxy, nodes/proxy, services/proxy. Nothing runs here, so every request
 * ends in the error that kube-apiserver gives: what is missing in the objects, or that the
 * connection was refused. No connection is attempted.
 */
#ifndef VIGIL_KUBE_HANDLERS_CONNECT_CONNECT_H
#define VIGIL_KUBE_HANDLERS_CONNECT_CONNECT_H

#include "kube/call/call.h"

/* Whether the path names one of them. */
bool kube_is_connect(const struct kube_call *call);
void kube_connect(struct kube_call *call);

#endif
