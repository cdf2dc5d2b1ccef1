/*
 * A client library for Kubernetes, whose objects are JSON texts and need no generated code.
 *
 * This header includes all others of libvigil-kube except the adapters for event loops. The library
 * is one beside libvigil, whose types and allocator it shares:
 *
 *     vigil/kube/client.h       the client, its options, threads and event loops
 *     vigil/kube/target.h       what a request is about: group, version, resource, namespace, name
 *     vigil/kube/call.h         a request and its answer, blocking or with a callback
 *     vigil/kube/discovery.h    the resources that a server has
 *     vigil/kube/watch.h        every change of a collection
 *     vigil/kube/informer.h     a copy of a collection that is kept up to date, with indexes
 *     vigil/kube/leader.h       leader election
 *     vigil/kube/object.h       objects, counted by reference
 *     vigil/kube/json.h         values of an object, without parsing the rest of it
 *     vigil/kube/protobuf.h     fields of an object that was sent in protobuf
 *     vigil/kube/edit.h         changing an object's JSON, finalizers, owners
 *     vigil/kube/selector.h     selectors of labels and of fields
 *     vigil/kube/status.h       why a request has failed
 *     vigil/kube/work_queue.h   a work queue of keys for controllers
 *     vigil/kube/poll.h, vigil/kube/epoll.h, vigil/kube/uv.h   the client in an event loop
 *
 * A program without shared libraries is linked with -static and `pkg-config --static --libs
 * libvigil-kube`.
 */
#ifndef VIGIL_KUBE_H
#define VIGIL_KUBE_H

#include <vigil/kube/call.h>
#include <vigil/kube/client.h>
#include <vigil/kube/discovery.h>
#include <vigil/kube/edit.h>
#include <vigil/kube/informer.h>
#include <vigil/kube/json.h>
#include <vigil/kube/leader.h>
#include <vigil/kube/object.h>
#include <vigil/kube/protobuf.h>
#include <vigil/kube/selector.h>
#include <vigil/kube/status.h>
#include <vigil/kube/target.h>
#include <vigil/kube/watch.h>
#include <vigil/kube/work_queue.h>

#endif
