/*
 * A client library for etcd and Vigil, with a watch that resumes.
 *
 * This header includes all others of the library except the adapters for event loops. A program
 * creates one client, which keeps a connection, and with it calls, watches and leases:
 *
 *     vigil/client.h        the client, its options, threads and event loops
 *     vigil/call.h          a request and its answer, blocking or with a callback
 *     vigil/kv.h            get, put, delete, compaction
 *     vigil/txn.h           transactions
 *     vigil/watch.h         every change of a range of keys
 *     vigil/object.h        watches of objects, as Kubernetes has them
 *     vigil/v2.h            the same over the v2 keys API of etcd 3.4
 *     vigil/lease.h         keys that expire
 *     vigil/queue.h         a queue to take results from, instead of callbacks
 *     vigil/concurrency.h   locks and elections
 *     vigil/auth.h          users, roles and permissions
 *     vigil/cluster.h       the members of a cluster
 *     vigil/maintenance.h   status, alarms, defragmentation
 *     vigil/types.h         bytes, errors, key-value pairs
 *     vigil/poll.h, vigil/epoll.h, vigil/uv.h   the client in an event loop
 *
 * A program without shared libraries is linked with -static and `pkg-config --static --libs
 * libvigil`.
 *
 * Example: examples/watch.c
 */
#ifndef VIGIL_VIGIL_H
#define VIGIL_VIGIL_H

#include <vigil/auth.h>
#include <vigil/call.h>
#include <vigil/client.h>
#include <vigil/cluster.h>
#include <vigil/concurrency.h>
#include <vigil/kv.h>
#include <vigil/lease.h>
#include <vigil/maintenance.h>
#include <vigil/object.h>
#include <vigil/queue.h>
#include <vigil/txn.h>
#include <vigil/types.h>
#include <vigil/v2.h>
#include <vigil/watch.h>

#endif
